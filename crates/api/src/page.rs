//! Pagination: the fields that every list response has.

use serde::{Deserialize, Serialize};

/// Largest `limit` of a list.
pub const MAX_LIMIT: u32 = 200;
/// `limit` of a list when none is given.
pub const DEFAULT_LIMIT: u32 = 50;

/// Whether there is a next page, and its cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PageInfo {
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
