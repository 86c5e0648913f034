//! Finds the marks of secrets in texts that are redacted: the prefixes that issuers assign, and the names of secrets. Most
//! texts have none, so the search skips what cannot contain one.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, Input, packed};
use memchr::memmem;

use super::{ISSUED_KEYS, issued_marks, named_marks};

/// The minimum length in bytes of a prefix and its secret without a separator, as in `AKIA` and sixteen letters.
pub(in super::super) const MIN_ISSUED_BYTES: usize = 20;
/// Prefixes of secrets that may be shorter, or contain other characters.
const SHORT_MARKS: [&str; 2] = ["://", "-----BEGIN "];
/// Maximum length of a name in bytes, rounded up.
const MAX_NAME_BYTES: usize = 32;
/// The shortest text in which names are searched with vector instructions, in bytes: the start of that search costs more
/// than it saves in shorter ones.
const MIN_PACKED_BYTES: usize = 64;

struct MarkSearch {
    /// For each of [`SHORT_MARKS`], its number in [`super::all_marks`].
    short: Vec<(usize, memmem::Finder<'static>)>,
    issued: AhoCorasick,
    names: AhoCorasick,
    /// The same names in lower case; none on processors without vector instructions.
    packed_names: Option<packed::Searcher>,
}

static MARK_SEARCH: LazyLock<Option<MarkSearch>> = LazyLock::new(|| {
    let mut builder = AhoCorasickBuilder::new();
    builder.kind(Some(AhoCorasickKind::DFA));
    let issued = builder.build(issued_marks()).ok()?;
    let names = builder.ascii_case_insensitive(true).build(named_marks()).ok()?;
    let short = issued_marks().enumerate().filter(|it| SHORT_MARKS.contains(&it.1));
    let short = short.map(|(number, mark)| (number, memmem::Finder::new(mark))).collect();
    Some(MarkSearch { short, issued, names, packed_names: packed::Searcher::new(named_marks()) })
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

/// Adds the names of secrets, and the names that begin in them, such as `token` in `api token`.
fn add_names(search: &MarkSearch, text: &str, marks: &mut Vec<(usize, usize)>) {
    let mut add = |range: Range<usize>, last_start: usize| {
        let found = search.names.find_overlapping_iter(Input::new(text).range(range));
        let found = found.filter(|it| it.start() < last_start);
        marks.extend(found.map(|it| (ISSUED_KEYS.len() + it.pattern().as_usize(), it.start())));
    };
    let Some(packed) = search.packed_names.as_ref().filter(|_| text.len() >= MIN_PACKED_BYTES) else {
        return add(0..text.len(), text.len());
    };
    for name in packed.find_iter(&text.to_ascii_lowercase()) {
        add(name.start()..text.len().min(name.end() + MAX_NAME_BYTES), name.end());
    }
}

/// Returns whether a text has the name of a secret.
pub(in super::super) fn has_name(text: &str) -> bool {
    MARK_SEARCH.as_ref().is_none_or(|it| it.names.is_match(text))
}

/// Returns the next bytes, without a separator between them, in which a secret of an issuer fits.
fn next_issued_run(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let is_inside = |it: &&u8| IS_ISSUED_BYTE[usize::from(**it)];
    let mut start = from;
    // A separator in the window ends all runs that begin before it, so that most bytes are never read.
    loop {
        let window = bytes.get(start..start + MIN_ISSUED_BYTES)?;
        let inside = window.iter().rev().take_while(is_inside).count();
        if inside == window.len() {
            break;
        }
        start += window.len() - inside;
    }
    Some((start, start + bytes[start..].iter().take_while(is_inside).count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_for_all_issuers_and_names() {
        for key in ISSUED_KEYS.iter().filter(|it| !SHORT_MARKS.contains(&it.begins)) {
            assert!(key.begins.len() + key.least >= MIN_ISSUED_BYTES, "{}", key.begins);
            let mut bytes = key.begins.bytes().chain(key.also.iter().copied());
            assert!(bytes.all(|it| IS_ISSUED_BYTE[usize::from(it)]), "{}", key.begins);
        }
        assert!(named_marks().all(|it| it.len() <= MAX_NAME_BYTES));
    }
}
