//! The filters of traces as conditions on rows, and the order of lists.

mod access;
mod class;
mod conditions;
mod encoding;

use entities::trace;

pub use access::list_index;
pub(crate) use access::overlapping_classes;
pub use class::{class, classes};
pub use conditions::{Sql, add_conditions};
pub use encoding::{bit_of, failure_of, tags_of};

/// Position of a trace in lists: start in microseconds, key.
pub type ListPosition = (i64, i64);

/// Returns the position of a trace in lists.
pub fn position(row: &trace::Model) -> ListPosition {
    (row.started_at, row.key)
}
