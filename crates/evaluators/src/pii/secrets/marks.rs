//! Finds the marks of secrets in texts that are redacted: the prefixes that issuers assign, and the names of secrets. Most
//! texts have none, so the search skips what cannot contain one.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, Input, packed};
use memchr::memmem;

use super::{ISSUED_KEYS, issued_marks, named_marks};

/// The minimum length in bytes of a prefix and its secret without a separator, as in `AKIA` and sixteen letters.
pub(in super::super) const MIN_ISSUED_BYTES: usize = 20;
/// Prefixes of secrets that may be shorter, or contain other characters.
const SHORT_MARKS: [&str; 2] = ["://", "-----BEGIN "];
/// Parts of the names of secrets. Each name has one of them, or is [`SHORT_NAME`]. No two begin with the same four bytes. A
/// search for at most 32 patterns of at least four bytes reads more bytes at once than one for all names.
const NAME_PARTS: [&str; 25] = [
    "_key", "-key", "apik", "api ", "sske", "s ke", "atek", "secr", "toke", "cred", "oriz", "arer", "assw",
    "assp", "assc", "_pas", "-pas", "kenn", "señ", "mot ", "senh", "wach", "роль", "密码", "スワ",
];
/// The name that is shorter than [`NAME_PARTS`].
const SHORT_NAME: &str = "pwd";
/// The shortest text in which names are searched with vector instructions, in bytes: the start of that search costs more
/// than it saves in shorter ones.
const MIN_PACKED_BYTES: usize = 64;

/// A name of secrets that is found by one of its parts.
struct NameWithPart {
    name: &'static str,
    /// The number in [`super::all_marks`].
    mark: usize,
    /// The byte of the name at which the part begins.
    offset: usize,
}

struct MarkSearch {
    /// For each of [`SHORT_MARKS`], its number in [`super::all_marks`].
    short: Vec<(usize, memmem::Finder<'static>)>,
    issued: AhoCorasick,
    names: AhoCorasick,
    /// [`NAME_PARTS`]; none on processors without vector instructions.
    name_parts: Option<packed::Searcher>,
    /// For each part, the names that are found by it.
    names_of_parts: Vec<Vec<NameWithPart>>,
    /// The number of [`SHORT_NAME`] in [`super::all_marks`], and its search.
    short_name: (usize, memmem::Finder<'static>),
}

static MARK_SEARCH: LazyLock<Option<MarkSearch>> = LazyLock::new(|| {
    let mut builder = AhoCorasickBuilder::new();
    builder.kind(Some(AhoCorasickKind::DFA));
    let issued = builder.build(issued_marks()).ok()?;
    let names = builder.ascii_case_insensitive(true).build(named_marks()).ok()?;
    let short = issued_marks().enumerate().filter(|it| SHORT_MARKS.contains(&it.1));
    let short = short.map(|(number, mark)| (number, memmem::Finder::new(mark))).collect();
    let mut names_of_parts: Vec<Vec<NameWithPart>> = NAME_PARTS.iter().map(|_| Vec::new()).collect();
    for (name, mark) in named_marks().zip(ISSUED_KEYS.len()..) {
        let part = NAME_PARTS.iter().zip(&mut names_of_parts).find_map(|(it, of)| Some((name.find(it)?, of)));
        if let Some((offset, names)) = part {
            names.push(NameWithPart { name, mark, offset });
        }
    }
    let name_parts = packed::Searcher::new(NAME_PARTS);
    let short_number = ISSUED_KEYS.len() + named_marks().position(|it| it == SHORT_NAME)?;
    let short_name = (short_number, memmem::Finder::new(SHORT_NAME));
    Some(MarkSearch { short, issued, names, name_parts, names_of_parts, short_name })
});

/// Bytes that the secrets of issuers and their prefixes consist of.
static IS_ISSUED_BYTE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let it = byte as u8;
        table[byte] = it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'+' | b'/' | b'=' | b'.');
        byte += 1;
    }
    table
};

/// Returns the marks of a text: the number in [`super::all_marks`] and the byte of the start, in order of the starts.
pub(in super::super) fn of(text: &str) -> Vec<(usize, usize)> {
    let mut marks = Vec::new();
    let Some(search) = &*MARK_SEARCH else { return marks };
    let bytes = text.as_bytes();
    for (number, mark) in &search.short {
        marks.extend(mark.find_iter(bytes).map(|start| (*number, start)));
    }
    let mut from = 0;
    while let Some((start, end)) = next_issued_run(bytes, from) {
        let run = Input::new(bytes).range(start..end);
        let found = search.issued.find_overlapping_iter(run);
        marks.extend(found.map(|it| (it.pattern().as_usize(), it.start())));
        from = end;
    }
    add_names(search, text, &mut marks);
    marks.sort_by_key(|it| it.1);
    marks
}

/// Adds the names of secrets, which may overlap, as `api token` and `token` do.
fn add_names(search: &MarkSearch, text: &str, marks: &mut Vec<(usize, usize)>) {
    let Some(parts) = search.name_parts.as_ref().filter(|_| text.len() >= MIN_PACKED_BYTES) else {
        let found = search.names.find_overlapping_iter(text);
        return marks.extend(found.map(|it| (ISSUED_KEYS.len() + it.pattern().as_usize(), it.start())));
    };
    let lower = text.to_ascii_lowercase();
    let lower = lower.as_bytes();
    let mut at = 0;
    while let Some(part) = parts.find_in(lower, (at..lower.len()).into()) {
        for NameWithPart { name, mark, offset } in &search.names_of_parts[part.pattern().as_usize()] {
            if let Some(start) = part.start().checked_sub(*offset)
                && lower[start..].starts_with(name.as_bytes())
            {
                marks.push((*mark, start));
            }
        }
        // Parts may overlap, as `-pas` and `assw` do.
        at = part.start() + 1;
    }
    let (mark, name) = &search.short_name;
    marks.extend(name.find_iter(lower).map(|start| (*mark, start)));
}

/// Returns whether a text has the name of a secret.
pub(in super::super) fn has_name(text: &str) -> bool {
    MARK_SEARCH.as_ref().is_none_or(|it| it.names.is_match(text))
}

/// Returns the next bytes, without a separator between them, in which a secret of an issuer fits.
fn next_issued_run(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    const BLOCK_BYTES: usize = size_of::<u64>();
    // The run contains a whole block, wherever the blocks begin.
    const { assert!(MIN_ISSUED_BYTES >= 2 * BLOCK_BYTES - 1) };
    let is_inside = |it: &&u8| IS_ISSUED_BYTE[usize::from(**it)];
    // No run begins before `first`.
    let (mut first, mut at) = (from, from);
    loop {
        let block = bytes.get(at..)?.first_chunk::<BLOCK_BYTES>()?;
        if has_separator(u64::from_le_bytes(*block)) {
            at += BLOCK_BYTES;
            continue;
        }
        let start = at - bytes[first..at].iter().rev().take_while(is_inside).count();
        let end = at + bytes[at..].iter().take_while(is_inside).count();
        if end - start >= MIN_ISSUED_BYTES {
            return Some((start, end));
        }
        first = end + 1;
        at = first;
    }
}

/// Returns whether a block has a byte below `+`, such as a blank or a quotation mark, or one that is not ASCII. None of them is
/// in [`IS_ISSUED_BYTE`].
fn has_separator(block: u64) -> bool {
    const LEAST_ISSUED_BYTES: u64 = u64::from_ne_bytes([b'+'; 8]);
    const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
    // Subtraction borrows only from a byte after a lower one that is a separator itself.
    (block.wrapping_sub(LEAST_ISSUED_BYTES) | block) & HIGH_BITS != 0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limits_hold_for_all_issuers_and_names() {
        for key in ISSUED_KEYS.iter().filter(|it| !SHORT_MARKS.contains(&it.begins)) {
            assert!(key.begins.len() + key.least >= MIN_ISSUED_BYTES, "{}", key.begins);
            let mut bytes = key.begins.bytes().chain(key.also.iter().copied());
            assert!(bytes.all(|it| IS_ISSUED_BYTE[usize::from(it)]), "{}", key.begins);
        }
        assert!((0..b'+').all(|it| !IS_ISSUED_BYTE[usize::from(it)]));
    }

    #[test]
    fn block_with_a_byte_of_no_secret_has_a_separator() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                let mut block = *b"+azAZ09/";
                block[place] = byte;
                let expected = byte < b'+' || !byte.is_ascii();
                assert_eq!(has_separator(u64::from_le_bytes(block)), expected, "{block:?}");
            }
        }
    }

    /// With a search that reads the text again from each part, this test would not end.
    #[test]
    fn names_in_long_texts_of_parts_are_those_of_the_complete_search() {
        let Some(search) = &*MARK_SEARCH else { panic!("no search") };
        for part in NAME_PARTS.iter().chain(&["-pass", "api token", "pwd"]) {
            let text = part.repeat(400_000 / part.len());
            let mut marks = Vec::new();
            add_names(search, &text, &mut marks);
            marks.sort_unstable();
            let complete = search.names.find_overlapping_iter(&text);
            let mut expected: Vec<(usize, usize)> =
                complete.map(|it| (ISSUED_KEYS.len() + it.pattern().as_usize(), it.start())).collect();
            expected.sort_unstable();
            assert!(marks == expected, "{part}");
        }
    }

    #[test]
    fn all_names_have_a_part_that_is_searched() {
        let has_part = |name: &str| name == SHORT_NAME || NAME_PARTS.iter().any(|it| name.contains(it));
        assert!(named_marks().all(has_part));
        let beginnings: BTreeSet<&[u8]> = NAME_PARTS.iter().filter_map(|it| it.as_bytes().get(..4)).collect();
        assert_eq!(beginnings.len(), NAME_PARTS.len());
    }

    proptest! {
        #[test]
        fn runs_are_those_of_a_simple_search(text in "[a-z0-9_/:;\" ]{0,12}[a-z0-9_/:;é]{0,60}[a-z0-9\" ]{0,40}") {
            let bytes = text.as_bytes();
            let mut runs = Vec::new();
            let mut from = 0;
            while let Some((start, end)) = next_issued_run(bytes, from) {
                runs.push(&text[start..end]);
                from = end;
            }
            let is_inside = |it: char| it.is_ascii() && IS_ISSUED_BYTE[it as usize];
            let expected: Vec<&str> = text.split(|it| !is_inside(it)).filter(|it| it.len() >= MIN_ISSUED_BYTES).collect();
            prop_assert_eq!(runs, expected);
        }
    }
}
