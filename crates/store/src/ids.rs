//! Ids of rows, and hashes of texts in index columns.

use uuid::Uuid;

/// Returns a new time-ordered id. Ids of one process keep their order, also within a microsecond.
#[expect(clippy::disallowed_methods, reason = "the one place that makes ids")]
pub fn new_id() -> Uuid {
    Uuid::now_v7()
}

/// Returns a new id that is ordered by a time in microseconds. Ids of the same microsecond have no order.
pub fn new_id_at(micros: i64) -> Uuid {
    id_at(micros, new_id().as_u64_pair().1)
}

/// Returns the lowest id that [`new_id_at`] gives for a time in microseconds.
pub fn first_id_at(micros: i64) -> Uuid {
    id_at(micros, 1 << 63)
}

/// Builds an id of version 7 with the microseconds after the milliseconds (RFC 9562, section 6.2, method 3).
fn id_at(micros: i64, low: u64) -> Uuid {
    let micros = u64::try_from(micros).unwrap_or(0);
    let milliseconds = (micros / 1_000).min((1 << 48) - 1);
    Uuid::from_u64_pair((milliseconds << 16) | (7 << 12) | (micros % 1_000), low)
}

/// Derives an id from a text within `namespace` (UUID version 5): the same text gives the same id.
pub fn derived_id(namespace: Uuid, text: &str) -> Uuid {
    Uuid::new_v5(&namespace, text.as_bytes())
}

/// Derives an id from bytes like [`derived_id`].
pub fn derived_id_of_bytes(namespace: Uuid, bytes: &[u8]) -> Uuid {
    Uuid::new_v5(&namespace, bytes)
}

/// Derives the ID of a span from the 16 hexadecimal digits of its OpenTelemetry ID, within its trace.
pub fn otel_span_id(trace: Uuid, otel: [u8; 8]) -> Uuid {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0_u8; 16];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(otel) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
    Uuid::new_v5(&trace, &digits)
}

/// Hashes a text for an index column: the first 8 bytes of a name-based UUID, the same in every process and
/// version.
pub fn text_hash(text: &str) -> i64 {
    let bytes = Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).into_bytes();
    i64::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_time_are_ordered_by_it() {
        let at = 1_781_524_800_123_456;
        let (id, next) = (new_id_at(at), new_id_at(at + 1));
        assert!(first_id_at(at) <= id && id < first_id_at(at + 1) && first_id_at(at + 1) <= next);
        assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
        assert!(new_id_at(at) != id);
        // Times outside of the range of an id.
        assert!(first_id_at(i64::MIN) < id && id < first_id_at(i64::MAX));
    }
}
