//! The columns of trace filters. Lists find traces by the [trace index](crate::trace_index) and compare the columns.

use api::trace_filter::{Bounds, TraceFilter};
use entities::trace::Column;

use super::class::classes;

/// How the rows that a filter selects are recognized.
#[derive(Clone, Copy, Debug)]
pub enum FilterAccess {
    /// A column of `trace` is compared with the value.
    Column(Column, Comparison),
    /// A column of bits contains the value's bit.
    FailureBits(Column),
    /// A column of `trace` is within a range.
    Range(Column),
    /// The tags of the trace contain the value's tags.
    Tags,
    /// The texts of the trace, which are searched after the row was read.
    Texts,
}

/// How a column is compared with the value of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The column is equal to the value.
    Equal,
    /// The column is not null (true) or null (false).
    Present,
    /// The column is at least the value.
    AtLeast,
    /// The column is at most the value.
    AtMost,
}

/// Returns the column of a filter and how it is compared with the value.
pub fn access(filter: TraceFilter) -> FilterAccess {
    use Comparison::{AtLeast, AtMost, Equal, Present};
    use FilterAccess::{Column as Compared, FailureBits, Range, Tags, Texts};
    match filter {
        TraceFilter::ProjectId => Compared(Column::ProjectId, Equal),
        TraceFilter::Model => Compared(Column::Model, Equal),
        TraceFilter::Error => Compared(Column::Error, Present),
        TraceFilter::FailureType => FailureBits(Column::FailureTypes),
        TraceFilter::From => Compared(Column::StartedAt, AtLeast),
        TraceFilter::To => Compared(Column::StartedAt, AtMost),
        TraceFilter::StoredUntil => Compared(Column::CreatedAt, AtMost),
        TraceFilter::Latency => Range(Column::LatencyMs),
        TraceFilter::Tokens => Range(Column::TotalTokens),
        TraceFilter::Cost => Range(Column::Cost),
        TraceFilter::Tags => Tags,
        TraceFilter::SessionId => Compared(Column::SessionId, Equal),
        TraceFilter::UserId => Compared(Column::UserId, Equal),
        TraceFilter::Name => Compared(Column::Name, Equal),
        TraceFilter::ExternalId => Compared(Column::ExternalId, Equal),
        TraceFilter::Words => Texts,
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
