//! Records told by the end of their id, which is all that a table has room for.

use uuid::Uuid;

/// Digits that the end of an id has at least, so that it names one.
const SHORTEST: usize = 4;
/// Characters of a whole id.
const WHOLE: usize = 36;

/// Why the end of an id names no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// None of the loaded ones ends so.
    Nothing,
    /// More than one does.
    Several,
}

impl Unknown {
    /// The reason as a sentence; `what` is the kind of record, `end` what was typed.
    pub fn why(self, what: &str, end: &str) -> String {
        match self {
            Self::Nothing => format!("no loaded {what} has an id that ends in {end}"),
            Self::Several => {
                format!("more than one loaded {what} has an id that ends in {end}; type more of it")
            }
        }
    }
}

/// Whether a word may be the end of an id, in small letters or capitals.
pub fn is_end(word: &str) -> bool {
    (SHORTEST..WHOLE).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// The one id that ends so. It may be there more than once.
///
/// # Errors
/// Whether there is none, or more than one.
pub fn ending(ids: impl IntoIterator<Item = Uuid>, end: &str) -> Result<Uuid, Unknown> {
    let end = end.to_ascii_lowercase();
    let fits = |id: &Uuid| id.to_string().ends_with(&end) || id.simple().to_string().ends_with(&end);
    let mut found = ids.into_iter().filter(|id| is_end(&end) && fits(id));
    let first = found.next().ok_or(Unknown::Nothing)?;
    if found.all(|id| id == first) { Ok(first) } else { Err(Unknown::Several) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::id;

    #[test]
    fn an_end_names_one_id_or_none() {
        let ids = [id(0xab_cdef), id(0x12_cdef), id(0xab_cdef)];
        assert_eq!(ending(ids, "abcdef"), Ok(id(0xab_cdef)));
        assert_eq!(ending(ids, "ABCDEF"), Ok(id(0xab_cdef)), "capitals are the same digits");
        assert_eq!(ending(ids, "8000-000000abcdef"), Ok(id(0xab_cdef)), "dashes may be there");
        assert_eq!(ending(ids, "8000000000abcdef"), Ok(id(0xab_cdef)), "or not");
        assert_eq!(ending(ids, "cdef"), Err(Unknown::Several));
        assert_eq!(ending(ids, "0000"), Err(Unknown::Nothing));
        assert_eq!(ending(ids, "def"), Err(Unknown::Nothing), "three digits name nothing");
    }
}
