//! Limits of the texts in rows and indexes.

/// Maximum length in characters of indexed texts: names, models, IDs, tags. PostgreSQL rejects index
/// entries of more than 2,704 bytes.
pub const MAX_LABEL: usize = 500;
/// Maximum length in bytes of span names and error messages, which are in rows that lists read in large
/// numbers. JSON ingest rejects longer ones; OTLP ingest truncates them.
pub const MAX_ROW_TEXT_BYTES: usize = 64 * 1024;
/// Maximum length in bytes of a tag's key and of its value, which are in one index entry.
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
