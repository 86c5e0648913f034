//! Finds the marks of secrets in texts that are redacted: the prefixes that issuers assign, and the names of secrets. Most
//! texts have none, so the search skips what cannot contain one.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, Input, packed};
use memchr::memmem;

use super::{ISSUED_KEYS, issued_marks, named_marks};

/// The fewest bytes of a prefix and its secret without a separator, as in `AKIA` and sixteen letters.
const MIN_ISSUED_BYTES: usize = 20;
/// Prefixes of secrets that may be shorter, or contain other characters.
const SHORT_MARKS: [&str; 2] = ["://", "-----BEGIN "];
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

/// Returns the marks of a text: the number in [`super::all_marks`] and the byte of the start, in order of the starts. Of overlapping names, the first
/// one is returned: they end together, and what follows is read after the end.
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
    let named = |pattern: usize, start: usize| (ISSUED_KEYS.len() + pattern, start);
    match search.packed_names.as_ref().filter(|_| bytes.len() >= MIN_PACKED_BYTES) {
        Some(packed) => {
            let lower_case = text.to_ascii_lowercase();
            marks.extend(packed.find_iter(&lower_case).map(|it| named(it.pattern().as_usize(), it.start())));
        }
        None => {
            marks.extend(search.names.find_iter(text).map(|it| named(it.pattern().as_usize(), it.start())))
        }
    }
    marks.sort_by_key(|it| it.1);
    marks
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
