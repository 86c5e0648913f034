//! The SQL of trace filters.

use std::fmt::Write;

use api::trace_filter::{FilterValue, Tag, TraceConditions, TraceFilter};
use entities::dialect::Dialect;
use sea_orm::{IdenStatic, Value};
use uuid::Uuid;

use super::{
    ListPosition, SessionScope,
    access::{Comparison, FilterAccess, access, limits},
    bit_of,
};

/// Adds the conditions to a `WHERE` that already names the tenant. `t` is the table's alias.
pub fn add_conditions(conditions: &TraceConditions, sql: &mut Sql, t: &str, dialect: Dialect) {
    for filter in TraceFilter::ALL {
        let Some(value) = conditions.value(*filter) else { continue };
        match (access(*filter), value) {
            (FilterAccess::Column(column, Comparison::Present), FilterValue::Switch(is_present)) => {
                let test = if is_present { "IS NOT NULL" } else { "IS NULL" };
                sql.push(&format!(" AND {t}.{} {test}", column.as_str()));
            }
            (FilterAccess::Column(column, comparison), value) => {
                sql.and(t, column.as_str(), operator(comparison), scalar(value));
            }
            (FilterAccess::FailureBits(column), FilterValue::Failure(failure)) => {
                let (column, bit) = (column.as_str(), bit_of(failure));
                sql.push(&format!(" AND ({t}.{column} & {bit}) <> 0"));
            }
            (FilterAccess::Range(column), FilterValue::Range(bounds)) => {
                let (min, max) = limits(bounds);
                sql.and(t, column.as_str(), ">=", min);
                sql.and(t, column.as_str(), "<=", max);
            }
            (FilterAccess::Tags, FilterValue::Tags(tags)) => {
                for tag in tags {
                    let condition = tag_condition(tag, sql, t, dialect);
                    sql.push(&format!(" AND {condition}"));
                }
            }
            // Texts are searched after the rows were read.
            (FilterAccess::Texts, _) => {}
            // The unit test excludes these pairs. A condition that cannot be stated must not select all rows.
            (FilterAccess::FailureBits(_) | FilterAccess::Range(_) | FilterAccess::Tags, _) => {
                sql.push(" AND FALSE");
            }
        }
    }
}

fn operator(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal | Comparison::Present => "=",
        Comparison::AtLeast => ">=",
        Comparison::AtMost => "<=",
    }
}

/// Returns a value that is compared with a column; null, which is equal to nothing, for other values.
fn scalar(value: FilterValue<'_>) -> Value {
    match value {
        FilterValue::Id(id) => id.into(),
        FilterValue::Text(text) => text.into(),
        FilterValue::Time(micros) => micros.into(),
        FilterValue::Switch(is_set) => is_set.into(),
        FilterValue::Failure(_) | FilterValue::Range(_) | FilterValue::Tags(_) | FilterValue::Words(_) => {
            Value::String(None)
        }
    }
}

/// Returns the condition on the tags of a row of `t`.
fn tag_condition(tag: &Tag, sql: &mut Sql, t: &str, dialect: Dialect) -> String {
    match tag {
        Tag::Pair(key, value) => has_member(&tag_member(key, Some(value)), sql, t, dialect),
        Tag::Key(key) => has_member(&tag_member(key, None), sql, t, dialect),
        Tag::Written(text) => {
            let mut divisions = vec![has_member(&tag_member(text, None), sql, t, dialect)];
            let colons = text.match_indices(':');
            divisions.extend(colons.map(|(at, _)| {
                let member = tag_member(&text[..at], Some(&text[at + 1..]));
                has_member(&member, sql, t, dialect)
            }));
            format!("({})", divisions.join(" OR "))
        }
    }
}

/// Returns a tag as it is in the tags of a row, which are a JSON object that this program wrote; with any value if none
/// is given.
fn tag_member(key: &str, value: Option<&str>) -> String {
    let key = serde_json::Value::from(key);
    value.map_or_else(|| format!("{key}:"), |it| format!("{key}:{}", serde_json::Value::from(it)))
}

fn has_member(member: &str, sql: &mut Sql, t: &str, dialect: Dialect) -> String {
    // Quotes within the texts of the object are escaped, so these two strings occur only where the member is.
    let (first, later) = (sql.arg(format!("{{{member}")), sql.arg(format!(",{member}")));
    let tags = format!("{t}.tags");
    let (first, later) = (dialect.position(&tags, &first), dialect.position(&tags, &later));
    format!("({first} > 0 OR {later} > 0)")
}

/// Adds the condition of a session scope. `t` is the table's alias.
pub fn add_session_condition(sessions: SessionScope<'_>, sql: &mut Sql, t: &str) {
    match sessions {
        SessionScope::AllTraces => {}
        SessionScope::InAnySession => sql.push(&format!(" AND {t}.session_id IS NOT NULL")),
        SessionScope::InSessions(ids) => {
            let places: Vec<String> = ids.iter().map(|it| sql.arg(it.as_str())).collect();
            sql.push(&format!(" AND {t}.session_id IN ({})", places.join(",")));
        }
    }
}

/// SQL under construction. The first parameter is the tenant.
#[derive(Clone, Debug)]
pub struct Sql {
    /// The text so far.
    pub text: String,
    /// The parameters so far.
    pub values: Vec<Value>,
}

impl Sql {
    /// Begins a statement with the tenant as `$1`.
    pub fn new(tenant: Uuid) -> Self {
        Self { text: String::new(), values: vec![tenant.into()] }
    }

    /// Adds a parameter. Returns its placeholder.
    pub fn arg(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("${}", self.values.len())
    }

    /// Adds text.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds ` AND t.column op value`.
    pub fn and(&mut self, t: &str, column: &str, op: &str, value: impl Into<Value>) {
        let placeholder = self.arg(value);
        // Writing to a `String` cannot fail.
        _ = write!(self.text, " AND {t}.{column} {op} {placeholder}");
    }

    /// Adds the condition that a row comes after a position in the order of the list.
    pub fn and_older(&mut self, t: &str, key: &str, after: Option<ListPosition>) {
        if let Some((at, last)) = after {
            let (at, last) = (self.arg(at), self.arg(last));
            // The second condition implies the first, which gives the range of the index.
            _ = write!(
                self.text,
                " AND {t}.started_at <= {at} AND ({t}.started_at < {at} OR {t}.{key} < {last})"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use api::{FailureType, trace_filter::ValueType};

    use super::*;

    #[test]
    fn access_of_every_filter_fits_the_type_of_its_value() {
        for filter in TraceFilter::ALL {
            let expected = match access(*filter) {
                FilterAccess::Column(_, Comparison::Present) => &[ValueType::Switch][..],
                FilterAccess::Column(..) => {
                    &[ValueType::Id, ValueType::Text, ValueType::Switch, ValueType::Time]
                }
                FilterAccess::FailureBits(_) => &[ValueType::Failure],
                FilterAccess::Range(_) => &[ValueType::Duration, ValueType::Count, ValueType::Money],
                FilterAccess::Tags => &[ValueType::Tags],
                FilterAccess::Texts => &[ValueType::Words],
            };
            assert!(expected.contains(&filter.definition().value_type), "{filter:?}");
        }
    }

    #[test]
    fn conditions_of_all_filters_name_their_columns() {
        let conditions = TraceConditions {
            model: Some("m".into()),
            error: Some(false),
            failure_type: Some(FailureType::RateLimit),
            from: Some(5),
            cost: (None, Some(7)),
            tags: vec![Tag::Pair("k".into(), "v".into())],
            ..TraceConditions::default()
        };
        let mut sql = Sql::new(Uuid::nil());
        add_conditions(&conditions, &mut sql, "t", Dialect::Sqlite);
        let bit = bit_of(FailureType::RateLimit);
        assert_eq!(
            sql.text,
            format!(
                " AND t.model = $2 AND t.error IS NULL AND (t.failure_types & {bit}) <> 0 AND t.started_at >= $3 \
                 AND t.cost >= $4 AND t.cost <= $5 AND (instr(t.tags, $6) > 0 OR instr(t.tags, $7) > 0)"
            )
        );
        assert_eq!(sql.values[5..], ["{\"k\":\"v\"".into(), ",\"k\":\"v\"".into()]);
    }
}
