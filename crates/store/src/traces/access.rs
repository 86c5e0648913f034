//! The columns and indexes of trace filters.
//!
//! Every filter of the list has an index that ends with the sort order of the list, so that a page is read along
//! the index of its most selective filter. The other filters are conditions on the rows that the index returns.

use api::{
    FailureType,
    trace_filter::{Bounds, FilterValue, TraceConditions, TraceFilter},
};
use entities::trace::Column;

use super::class::classes;

/// How the rows that a filter selects are recognized and found.
#[derive(Clone, Copy, Debug)]
pub enum FilterAccess {
    /// A column of `trace` is compared with the value.
    Column(Column, Comparison, Option<&'static str>),
    /// A column of bits contains the value's bit; each bit has a partial index.
    FailureBits(Column),
    /// A column of `trace` is within a range. The index is on the class of the column.
    Range(RangeColumns),
    /// Rows of `trace_tag`, whose primary key is the index.
    TagRows,
    /// The texts of the trace, which are searched after the row was read.
    Texts,
}

/// How a column is compared with the value of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The column is equal to the value.
    Equal,
    /// The column is not null (true) or null (false). The index contains the rows that are not null.
    Present,
    /// The column is at least the value.
    AtLeast,
    /// The column is at most the value.
    AtMost,
}

/// The columns and the index of a range filter.
#[derive(Clone, Copy, Debug)]
pub struct RangeColumns {
    /// The column of the value.
    pub value: Column,
    /// The column of its class.
    pub class: Column,
    /// The name of the index on the class.
    pub index: &'static str,
}

/// The index along which pages are read when no filter has one.
pub const TIME_INDEX: &str = "ix_trace_time";

/// Filters with an index, the most selective kind first. The first one that is set determines the index.
pub const MOST_SELECTIVE_FIRST: &[TraceFilter] = &[
    TraceFilter::ExternalId,
    TraceFilter::SessionId,
    TraceFilter::UserId,
    TraceFilter::Tags,
    TraceFilter::FailureType,
    TraceFilter::Error,
    TraceFilter::Name,
    TraceFilter::Model,
    TraceFilter::Latency,
    TraceFilter::Cost,
    TraceFilter::Tokens,
    TraceFilter::ProjectId,
];

/// Returns the columns and the index of a filter.
pub fn access(filter: TraceFilter) -> FilterAccess {
    use Comparison::{AtLeast, AtMost, Equal, Present};
    use FilterAccess::{Column as Compared, FailureBits, Range, TagRows, Texts};
    match filter {
        TraceFilter::ProjectId => Compared(Column::ProjectId, Equal, Some("ix_trace_project")),
        TraceFilter::Model => Compared(Column::Model, Equal, Some("ix_trace_model")),
        TraceFilter::Error => Compared(Column::Error, Present, Some("ix_trace_error")),
        TraceFilter::FailureType => FailureBits(Column::FailureTypes),
        TraceFilter::From => Compared(Column::StartedAt, AtLeast, None),
        TraceFilter::To => Compared(Column::StartedAt, AtMost, None),
        TraceFilter::StoredUntil => Compared(Column::CreatedAt, AtMost, None),
        TraceFilter::Latency => Range(RangeColumns {
            value: Column::LatencyMs,
            class: Column::LatencyClass,
            index: "ix_trace_latency",
        }),
        TraceFilter::Tokens => Range(RangeColumns {
            value: Column::TotalTokens,
            class: Column::TokenClass,
            index: "ix_trace_tokens",
        }),
        TraceFilter::Cost => {
            Range(RangeColumns { value: Column::Cost, class: Column::CostClass, index: "ix_trace_cost" })
        }
        TraceFilter::Tags => TagRows,
        TraceFilter::SessionId => Compared(Column::SessionId, Equal, Some("ix_trace_session")),
        TraceFilter::UserId => Compared(Column::UserId, Equal, Some("ix_trace_user")),
        TraceFilter::Name => Compared(Column::Name, Equal, Some("ix_trace_name")),
        TraceFilter::ExternalId => Compared(Column::ExternalId, Equal, Some("ix_trace_external")),
        TraceFilter::Words => Texts,
    }
}

/// Returns the index with exactly the rows that a filter with this value selects, in the order of the list.
pub fn index_of(filter: TraceFilter, value: FilterValue<'_>) -> Option<&'static str> {
    match (access(filter), value) {
        (FilterAccess::Column(_, Comparison::Present, _), FilterValue::Switch(false)) => None,
        (FilterAccess::Column(_, _, index), _) => index,
        (FilterAccess::FailureBits(_), FilterValue::Failure(failure)) => failure_index(failure),
        _ => None,
    }
}

/// Returns the index of the most selective filter that has one of its own, else the index by time.
pub fn best_index(conditions: &TraceConditions) -> &'static str {
    let set = MOST_SELECTIVE_FIRST.iter().filter_map(|it| Some((*it, conditions.value(*it)?)));
    set.filter_map(|(filter, value)| index_of(filter, value)).next().unwrap_or(TIME_INDEX)
}

fn failure_index(failure: FailureType) -> Option<&'static str> {
    match failure {
        FailureType::Timeout => Some("ix_trace_timeout"),
        FailureType::RateLimit => Some("ix_trace_rate_limit"),
        FailureType::InvalidResponse => Some("ix_trace_invalid_response"),
        FailureType::ContextLength => Some("ix_trace_context_length"),
        FailureType::Other | FailureType::RemediationRegression => None,
    }
}

/// Returns smallest and largest value of a range.
pub fn limits((min, max): Bounds) -> (i64, i64) {
    (min.unwrap_or(0), max.unwrap_or(i64::MAX))
}

/// Returns the classes that a range overlaps.
pub fn overlapping_classes(bounds: Bounds) -> std::ops::RangeInclusive<i16> {
    let (min, max) = limits(bounds);
    classes(min, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_with_an_index_is_in_the_order_of_selectivity() {
        for filter in TraceFilter::ALL {
            let has_index = match access(*filter) {
                FilterAccess::Column(_, _, index) => index.is_some(),
                FilterAccess::FailureBits(_) | FilterAccess::Range(_) | FilterAccess::TagRows => true,
                FilterAccess::Texts => false,
            };
            let places = MOST_SELECTIVE_FIRST.iter().filter(|it| *it == filter).count();
            assert_eq!(places, usize::from(has_index), "{filter:?}");
        }
    }
}
