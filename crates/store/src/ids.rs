//! Ids of rows, and hashes of texts in index columns.

use uuid::Uuid;

/// Returns a new time-ordered id. Ids of one process keep their order, also within a microsecond.
#[expect(clippy::disallowed_methods, reason = "the one place that makes ids")]
pub fn new_id() -> Uuid {
    Uuid::now_v7()
}

/// Derives an id from a text within `namespace` (UUID version 5): the same text gives the same id.
pub fn derived_id(namespace: Uuid, text: &str) -> Uuid {
    Uuid::new_v5(&namespace, text.as_bytes())
}

/// Hashes a text for an index column: the first 8 bytes of a name-based UUID, the same in every process and
/// version.
pub fn text_hash(text: &str) -> i64 {
    let bytes = Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).into_bytes();
    i64::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]])
}
