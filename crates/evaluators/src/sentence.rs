//! Helpers for sentences.

use std::borrow::Cow;

/// Returns at most `characters` characters of a text, with a mark if the text was cut.
pub(crate) fn cut(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

/// Returns a count with its noun: `1 row`, `2 rows`.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}
