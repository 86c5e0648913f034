//! Reads the filters of trace lists from query strings.

use api::{
    ErrorCode, FailureType,
    trace_filter::{Bounds, FilterDefinition, FilterSource, Tag, TraceConditions},
};
use uuid::Uuid;

use super::query::{Query, invalid};
use crate::error::{Error, Result, problem};

/// Maximum number of tag filters of a list.
const MAX_TAG_FILTERS: usize = 20;

/// Parses the filters of a query string.
///
/// # Errors
///
/// Fails with `invalid_query` or `tags_filter_incomplete`.
pub fn conditions(query: &Query) -> Result<TraceConditions> {
    let conditions = TraceConditions::read_from(query)?;
    Query::ordered(("from", "to"), (conditions.from, conditions.to))?;
    Ok(conditions)
}

impl FilterSource for Query {
    type Error = Error;

    fn id(&self, filter: &FilterDefinition) -> Result<Option<Uuid>> {
        self.of_filter(filter, Self::uuid)
    }

    fn text(&self, filter: &FilterDefinition) -> Result<Option<String>> {
        self.of_filter(filter, |query, name| Ok(query.text(name)))
    }

    fn switch(&self, filter: &FilterDefinition) -> Result<Option<bool>> {
        self.of_filter(filter, Self::boolean)
    }

    fn failure(&self, filter: &FilterDefinition) -> Result<Option<FailureType>> {
        self.of_filter(filter, |query, name| match query.get(name).map(str::parse::<FailureType>) {
            None => Ok(None),
            Some(Ok(failure)) if failure.is_filterable() => Ok(Some(failure)),
            Some(_) => Err(invalid(name, "must be timeout, rate_limit, invalid_response or context_length")),
        })
    }

    fn time(&self, filter: &FilterDefinition) -> Result<Option<i64>> {
        self.of_filter(filter, Self::time)
    }

    fn number_range(&self, filter: &FilterDefinition) -> Result<Bounds> {
        self.bounds(filter, Self::natural)
    }

    fn money_range(&self, filter: &FilterDefinition) -> Result<Bounds> {
        self.bounds(filter, Self::money)
    }

    fn tags(&self, filter: &FilterDefinition) -> Result<Vec<Tag>> {
        let [key, value, written] = filter.parameters else { return Ok(Vec::new()) };
        let mut tags = Vec::new();
        // A tag's value may be empty, its key may not.
        match (self.get(key.name), self.get(value.name)) {
            (Some(key), Some(value)) if !key.is_empty() => {
                tags.push(Tag::Pair(key.to_owned(), value.to_owned()));
            }
            (None, None) => {}
            _ => {
                let (key, value) = (key.name, value.name);
                return Err(problem(
                    ErrorCode::TagsFilterIncomplete,
                    format!("{key} and {value} must be given together, and {key} must not be empty"),
                ));
            }
        }
        if self.all(written.name).any(str::is_empty) {
            return Err(invalid(written.name, "must not be empty"));
        }
        tags.extend(self.all(written.name).map(|it| match it.split_once(':') {
            Some((key, value)) => Tag::Pair(key.to_owned(), value.to_owned()),
            None => Tag::Key(it.to_owned()),
        }));
        // No trace has more tags, and each filter is a condition of the statement, whose size is bounded.
        if tags.len() > MAX_TAG_FILTERS {
            let message = format!("must not be repeated more than {MAX_TAG_FILTERS} times");
            return Err(invalid(written.name, &message));
        }
        Ok(tags)
    }

    fn words(&self, filter: &FilterDefinition) -> Result<Vec<String>> {
        let words = self.of_filter(filter, |query, name| {
            let words = query.get(name).map(|text| text.split_whitespace().map(str::to_lowercase).collect());
            match words {
                Some(words) if Vec::is_empty(&words) => Err(invalid(name, "must have at least one word")),
                words => Ok(words),
            }
        })?;
        Ok(words.unwrap_or_default())
    }
}

impl Query {
    /// Reads the only parameter of a filter.
    fn of_filter<T>(
        &self,
        filter: &FilterDefinition,
        read: impl Fn(&Self, &str) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        filter.parameters.first().map_or(Ok(None), |it| read(self, it.name))
    }

    /// Reads minimum and maximum of a filter.
    fn bounds(
        &self,
        filter: &FilterDefinition,
        read: impl Fn(&Self, &str) -> Result<Option<i64>>,
    ) -> Result<Bounds> {
        match filter.range_parameters() {
            None => Ok((None, None)),
            Some((min, max)) => Self::ordered((min, max), (read(self, min)?, read(self, max)?)),
        }
    }
}
