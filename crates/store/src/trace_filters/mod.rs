//! The filters of traces as conditions on rows, and the order of lists.

mod access;
mod class;
mod conditions;
mod encoding;

use entities::trace;

pub(crate) use access::overlapping_classes;
pub use class::{class, classes};
pub use conditions::{Sql, add_conditions, add_session_condition};
pub use encoding::{bit_of, failure_of, tags_of};

/// The index by project and day of start. It is for statements that select the oldest traces; lists use the trace index.
///
/// Within a day its order is that of arrival: with the exact start, traces that do not arrive in the order of their
/// starts would change a page of the index each.
pub const PROJECT_DAY_INDEX: &str = "ix_trace_project_day";
/// The day of the start in [`PROJECT_DAY_INDEX`], as SQL over a row of `trace`.
pub const STARTED_DAY: &str = "(started_at / 86400000000)";
/// Length of this day in microseconds.
pub const STARTED_DAY_MICROS: i64 = 86_400_000_000;

/// Selects traces by their session, in addition to the filter of a list.
#[derive(Clone, Copy, Debug, Default)]
pub enum SessionScope<'a> {
    /// All traces.
    #[default]
    AllTraces,
    /// Traces that belong to a session.
    InAnySession,
    /// Traces of these sessions. There is at least one.
    InSessions(&'a [String]),
}

/// Position of a trace in lists: start in microseconds, key.
pub type ListPosition = (i64, i64);

/// Returns the position of a trace in lists.
pub fn position(row: &trace::Model) -> ListPosition {
    (row.started_at, row.key)
}
