//! Limits of the texts that stand in rows and indexes.

/// Longest text, in characters, of what is indexed: names, models, ids, tags. PostgreSQL
/// refuses index entries of more than 2,704 bytes.
pub const MAX_LABEL: usize = 500;
/// Longest name of a span and longest error message in bytes: both stand in rows of which lists read
/// many at once. In JSON a longer one is refused; in OTLP it is cut.
pub const MAX_ROW_TEXT_BYTES: usize = 64 * 1024;
/// Longest key and longest value of a tag in bytes: both stand in one index entry.
pub const MAX_TAG_BYTES: usize = 1_280;

/// Returns at most the first [`MAX_LABEL`] characters of a text.
pub fn label(text: &str) -> String {
    match text.char_indices().nth(MAX_LABEL) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

/// Truncates a text to [`MAX_ROW_TEXT_BYTES`].
pub fn row_text(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_ROW_TEXT_BYTES));
    text
}

/// Truncates the key or the value of a tag to [`MAX_LABEL`] characters and [`MAX_TAG_BYTES`].
pub fn tag_label(text: &str) -> String {
    let mut text = label(text);
    text.truncate(text.floor_char_boundary(MAX_TAG_BYTES));
    text
}
