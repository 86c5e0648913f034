//! Resolves records by the end of their id, because tables show only that.

use uuid::Uuid;

/// Minimum length of the end of an id.
const MIN_SUFFIX_LEN: usize = 4;
/// Length of a whole id.
const ID_LEN: usize = 36;

/// The end of an id that names no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdError {
    /// No loaded record has an id with this ending.
    NotFound,
    /// More than one loaded record has an id with this ending.
    Ambiguous,
}

impl IdError {
    /// Returns the error as a sentence; `what` is the kind of record, `end` the text.
    pub fn message(self, what: &str, end: &str) -> String {
        match self {
            Self::NotFound => format!("no loaded {what} has an id that ends in {end}"),
            Self::Ambiguous => {
                format!("more than one loaded {what} has an id that ends in {end}; type more of it")
            }
        }
    }
}

/// Returns whether a word can be the end of an id, in lower or upper case.
pub fn is_suffix(word: &str) -> bool {
    (MIN_SUFFIX_LEN..ID_LEN).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// Returns the id with the given ending. The same id can occur more than once.
///
/// # Errors
/// Fails when no id or more than one ends with it.
pub fn resolve_suffix(ids: impl IntoIterator<Item = Uuid>, end: &str) -> Result<Uuid, IdError> {
    let end = end.to_ascii_lowercase();
    let fits = |id: &Uuid| id.to_string().ends_with(&end) || id.simple().to_string().ends_with(&end);
    let mut found = ids.into_iter().filter(|id| is_suffix(&end) && fits(id));
    let first = found.next().ok_or(IdError::NotFound)?;
    if found.all(|id| id == first) { Ok(first) } else { Err(IdError::Ambiguous) }
}

/// The ids of loaded records, which the end of an id is resolved against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedIds {
    /// Traces that are listed, evaluated or opened.
    pub traces: Vec<Uuid>,
    /// Spans that are evaluated or belong to the opened trace.
    pub spans: Vec<Uuid>,
    /// Rules.
    pub rules: Vec<Uuid>,
    /// Records that the console can create: a record that is not among them is new.
    pub records: Vec<Uuid>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::id;

    #[test]
    fn id_suffix_resolves_to_one_id_or_fails() {
        let ids = [id(0xab_cdef), id(0x12_cdef), id(0xab_cdef)];
        assert_eq!(resolve_suffix(ids, "abcdef"), Ok(id(0xab_cdef)));
        assert_eq!(resolve_suffix(ids, "ABCDEF"), Ok(id(0xab_cdef)), "capitals are the same digits");
        assert_eq!(resolve_suffix(ids, "8000-000000abcdef"), Ok(id(0xab_cdef)), "dashes may be there");
        assert_eq!(resolve_suffix(ids, "8000000000abcdef"), Ok(id(0xab_cdef)), "or not");
        assert_eq!(resolve_suffix(ids, "cdef"), Err(IdError::Ambiguous));
        assert_eq!(resolve_suffix(ids, "0000"), Err(IdError::NotFound));
        assert_eq!(resolve_suffix(ids, "def"), Err(IdError::NotFound), "three digits name nothing");
    }
}
