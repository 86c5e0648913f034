//! Text that fits into columns of a terminal.
//!
//! Every string from a server passes through [`clean`] before it is shown: control and bidirectional characters
//! become visible marks, so that stored text cannot move the cursor or reorder other text. Widths are display
//! columns, never bytes or characters, and text is cut between grapheme clusters only.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::glyphs::Glyphs;

/// Replaces tabs by four blanks and makes every other control character visible.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.contains('\t') {
        Cow::Owned(api::text::printable(&text.replace('\t', "    ")).into_owned())
    } else {
        api::text::printable(text)
    }
}

/// Returns the display columns of text that is already [`clean`].
///
/// Sums the widths of grapheme clusters, as the terminal buffer does.
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(UnicodeWidthStr::width).sum() }
}

/// Cleans the first line of a text and cuts it to at most `cols` columns, with an ellipsis in place of the rest.
pub fn cut(text: &str, cols: usize, glyphs: &Glyphs) -> String {
    let line = first_line(text, cols);
    let cleaned = clean(line);
    let whole = line.len() == text.len();
    if whole && width(&cleaned) <= cols {
        return cleaned.into_owned();
    }
    let mark = glyphs.ellipsis;
    let mut taken = take(&cleaned, cols.saturating_sub(width(mark))).to_owned();
    if cols >= width(mark) {
        taken.push_str(mark);
    }
    taken
}

/// Cuts a text as [`cut`] does and pads it on the right to exactly `cols` columns.
pub fn fit(text: &str, cols: usize, glyphs: &Glyphs) -> String {
    let mut fitted = cut(text, cols, glyphs);
    let missing = cols.saturating_sub(width(&fitted));
    fitted.extend(std::iter::repeat_n(' ', missing));
    fitted
}

/// Cuts a text as [`cut`] does and pads it on the left to exactly `cols` columns.
pub fn fit_right(text: &str, cols: usize, glyphs: &Glyphs) -> String {
    let fitted = cut(text, cols, glyphs);
    let missing = cols.saturating_sub(width(&fitted));
    " ".repeat(missing) + &fitted
}

/// Cleans the first line of a text and shortens it in the middle to at most `cols` columns. Of `key:value`,
/// the beginning of the key and the end of the value stay readable.
pub fn shorten(text: &str, cols: usize, glyphs: &Glyphs) -> String {
    let cleaned = clean(first_line(text, cols));
    let mark = glyphs.ellipsis;
    if width(&cleaned) <= cols || cols <= width(mark) + 1 {
        return cut(text, cols, glyphs);
    }
    let room = cols - width(mark);
    let end = take_end(&cleaned, room / 2);
    let start = take(&cleaned, room - width(end));
    format!("{start}{mark}{end}")
}

/// Breaks one line of clean text into lines of at most `cols` columns, preferably after a blank. Returns at least one
/// line; `cols` of 0 counts as 1.
pub fn wrap(line: &str, cols: usize) -> Vec<String> {
    let cols = cols.max(1);
    let mut lines = Vec::new();
    let mut current = String::new();
    let mut used = 0;
    for word in unbroken(line) {
        let needed = width(word);
        if used + needed > cols && used > 0 && (needed <= cols || used >= cols) {
            lines.push(std::mem::take(&mut current));
            used = 0;
            if word.chars().all(|c| c == ' ') {
                continue;
            }
        }
        if used + needed <= cols {
            current.push_str(word);
            used += needed;
            continue;
        }
        for cluster in word.graphemes(true) {
            let needed = width(cluster);
            if used + needed > cols && used > 0 {
                lines.push(std::mem::take(&mut current));
                used = 0;
            }
            current.push_str(cluster);
            used += needed;
        }
    }
    if !current.is_empty() || lines.is_empty() {
        lines.push(current);
    }
    lines
}

/// Returns the parts of a line that are not broken if they fit: a word with the punctuation before and after it.
fn unbroken(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let mut words = rest.split_word_bounds();
        let first = words.next()?;
        let mut end = first.len();
        let mut opens = first.ends_with(['(', '[', '{', '<', '`']);
        if !first.trim().is_empty() {
            for word in words {
                let closes = word.starts_with(['.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '`']);
                if !opens && !closes || word.trim().is_empty() {
                    break;
                }
                end += word.len();
                opens = false;
            }
        }
        let (part, after) = rest.split_at(end);
        rest = after;
        Some(part)
    })
}

/// Returns the longest prefix of clean text that takes at most `cols` columns.
pub fn take(text: &str, cols: usize) -> &str {
    let mut used = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        used += UnicodeWidthStr::width(cluster);
        if used > cols {
            return &text[..at];
        }
    }
    text
}

/// Returns the longest suffix of clean text that takes at most `cols` columns.
fn take_end(text: &str, cols: usize) -> &str {
    let mut used = 0;
    let mut start = text.len();
    for (at, cluster) in text.grapheme_indices(true).rev() {
        used += UnicodeWidthStr::width(cluster);
        if used > cols {
            break;
        }
        start = at;
    }
    &text[start..]
}

/// Returns the first line that is not empty. Its length is bounded, so that a text of megabytes is not scanned for
/// eighty columns.
fn first_line(text: &str, cols: usize) -> &str {
    let line = text.split(['\n', '\r']).find(|line| !line.is_empty()).unwrap_or("");
    let bound = cols.saturating_mul(32).saturating_add(64);
    if line.len() <= bound {
        return line;
    }
    &line[..line.floor_char_boundary(bound)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNICODE: Glyphs = Glyphs::UNICODE;

    #[test]
    fn fitted_text_has_the_requested_width() {
        let samples = [
            "plain",
            "summarise_レポート_の要約を作成する",
            "👩‍👩‍👧‍👦 family 🙏🏽 thanks",
            "e\u{301}tude in decomposed form",
            "\u{1b}[31mred\u{7} bell",
            "\u{202e}reversed",
            "tab\there",
            "two\nlines",
            "",
        ];
        for text in samples {
            for cols in 0..40 {
                assert_eq!(width(&fit(text, cols, &UNICODE)), cols, "{text:?} in {cols}");
                assert_eq!(width(&fit_right(text, cols, &UNICODE)), cols, "{text:?} in {cols}");
            }
        }
    }

    #[test]
    fn cut_text_ends_with_an_ellipsis() {
        assert_eq!(cut("abcdef", 6, &UNICODE), "abcdef");
        assert_eq!(cut("abcdef", 5, &UNICODE), "abcd…");
        assert_eq!(cut("日本語", 5, &UNICODE), "日本…");
        assert_eq!(cut("日本語", 4, &UNICODE), "日…");
        assert_eq!(cut("a\nb", 5, &UNICODE), "a…");
        assert_eq!(cut("abcdef", 5, &Glyphs::ASCII), "abcd~");
    }

    #[test]
    fn shortened_text_keeps_both_ends() {
        assert_eq!(shorten("env:prod", 8, &UNICODE), "env:prod");
        assert_eq!(shorten("tenant:acme-corp-eu", 12, &UNICODE), "tenant…rp-eu");
        assert_eq!(shorten("tenant:acme-corp-eu", 12, &Glyphs::ASCII), "tenant~rp-eu");
        assert_eq!(shorten("地域:東京の南", 8, &UNICODE), "地域:…南");
        for cols in 0..20 {
            let shown = shorten("tenant:\u{1b}[31macme 👩‍👩‍👧 corp", cols, &UNICODE);
            assert!(width(&shown) <= cols && !shown.chars().any(char::is_control), "{cols}: {shown:?}");
        }
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let shown = fit("\u{1b}[2Jgone\u{9b}5m", 60, &UNICODE);
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert!(shown.contains("ESC"), "{shown:?}");
    }

    #[test]
    fn wrapped_lines_keep_every_character_that_is_not_a_break() {
        let text = "Where is my refund? 注文番号は五万八千です。 supercalifragilistic";
        for cols in 2..30 {
            let lines = wrap(text, cols);
            assert!(lines.iter().all(|line| width(line) <= cols), "{cols}: {lines:?}");
            let strip = |s: &str| s.replace(' ', "");
            assert_eq!(strip(&lines.concat()), strip(text), "{cols}");
        }
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn wrapped_words_keep_their_punctuation() {
        assert_eq!(wrap("refused for good. Its", 16), ["refused for ", "good. Its"]);
        assert_eq!(wrap("the caller (request 7)", 12), ["the caller ", "(request 7)"]);
        assert_eq!(wrap("stays within `max_ms`: 1.0", 16), ["stays within ", "`max_ms`: 1.0"]);
        assert_eq!(wrap("(aaaa)bbbb", 4), ["(aaa", "a)", "bbbb"]);
        assert_eq!(wrap(&".".repeat(9), 4), ["....", "....", "."]);
    }
}
