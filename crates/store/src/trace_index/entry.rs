//! Entries of the trace index, their order, and the encoding of sorted entries.

use std::cmp::Ordering;

use prost::{DecodeError, Message};

/// States that the trace with a key has the property that a term stands for, and when the trace started.
///
/// Entries are hints: the row of the trace decides. A trace that changed or was removed leaves its entries behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IndexEntry {
    /// The hash of the property; see [`super::terms`].
    pub term: u64,
    /// Start of the trace, microseconds.
    pub at: i64,
    /// The key of the trace.
    pub key: i64,
}

impl IndexEntry {
    /// Returns the position of the trace in a list.
    pub fn position(&self) -> (i64, i64) {
        (self.at, self.key)
    }
}

impl Ord for IndexEntry {
    /// By term; entries of a term are ordered like a list, newest first.
    fn cmp(&self, other: &Self) -> Ordering {
        self.term.cmp(&other.term).then_with(|| other.position().cmp(&self.position()))
    }
}

impl PartialOrd for IndexEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Sorted entries by column, as differences between consecutive values: about nine bytes an entry.
#[derive(Clone, PartialEq, Message)]
struct EntriesMessage {
    #[prost(uint64, repeated, tag = "1")]
    term: Vec<u64>,
    #[prost(sint64, repeated, tag = "2")]
    at: Vec<i64>,
    #[prost(sint64, repeated, tag = "3")]
    key: Vec<i64>,
}

/// Encodes sorted entries.
pub fn encode(entries: &[IndexEntry]) -> Vec<u8> {
    let mut message = EntriesMessage::default();
    let mut last = IndexEntry::default();
    for entry in entries {
        message.term.push(entry.term.wrapping_sub(last.term));
        message.at.push(last.at.wrapping_sub(entry.at));
        message.key.push(last.key.wrapping_sub(entry.key));
        last = *entry;
    }
    message.encode_to_vec()
}

/// Decodes entries that [`encode`] encoded.
///
/// # Errors
/// Fails when the bytes are not such an encoding.
pub fn decode(bytes: &[u8]) -> Result<Vec<IndexEntry>, DecodeError> {
    let message = EntriesMessage::decode(bytes)?;
    let mut last = IndexEntry::default();
    let columns = message.term.iter().zip(&message.at).zip(&message.key);
    let entries = columns.map(|((term, at), key)| {
        last = IndexEntry {
            term: last.term.wrapping_add(*term),
            at: last.at.wrapping_sub(*at),
            key: last.key.wrapping_sub(*key),
        };
        last
    });
    Ok(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_term_are_ordered_like_a_list() {
        let entry = |term, at, key| IndexEntry { term, at, key };
        let mut entries = [entry(1, 5, 1), entry(0, 1, 1), entry(1, 7, 1), entry(1, 5, 2)];
        entries.sort_unstable();
        assert_eq!(entries, [entry(0, 1, 1), entry(1, 7, 1), entry(1, 5, 2), entry(1, 5, 1)]);
    }

    #[test]
    fn entries_with_extreme_values_round_trip() {
        let mut entries = vec![
            IndexEntry { term: u64::MAX, at: i64::MIN, key: i64::MAX },
            IndexEntry { term: 0, at: i64::MAX, key: i64::MIN },
            IndexEntry { term: 7, at: 1_700_000_000_000_000, key: 9 },
        ];
        entries.sort_unstable();
        assert_eq!(decode(&encode(&entries)).unwrap(), entries);
        assert_eq!(decode(&encode(&[])).unwrap(), []);
        assert!(decode(b"\xff").is_err());
    }
}
