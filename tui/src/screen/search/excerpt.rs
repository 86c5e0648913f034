//! The line of a span that matches a search best, and the positions of the words in it.
//!
//! The server finds spans by meaning and does not report a line. The line with the most words of the search is
//! shown instead; it only helps reading, and often contains none of the words.

use std::ops::Range;

use api::trace::Span;
use serde_json::Value;

use present::text::clean;

/// Maximum number of bytes of a text that are searched.
const MAX_SCANNED_BYTES: usize = 64 * 1024;
/// Maximum number of lines of a span that are searched.
const MAX_SCANNED_LINES: usize = 2_000;
/// Characters before the first word that are shown.
const LEADING_CHARS: usize = 24;
/// Characters of a line that are kept.
const MAX_EXCERPT_CHARS: usize = 400;

/// A part of a line, clean of control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The text.
    pub text: String,
    /// The byte ranges of the words of the search.
    pub hits: Vec<Range<usize>>,
    /// The line begins before the excerpt.
    pub begun: bool,
}

/// Returns the words to look for, in lower case, without endings and without short words.
pub fn words(text: &str) -> Vec<Vec<char>> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(|word| word.chars().map(fold).collect());
    words.filter(|word: &Vec<char>| word.len() > 2 || word.iter().any(|c| blankless(*c))).map(stem).collect()
}

impl Excerpt {
    /// Returns the line of a span with the most words, from its output, error or input.
    pub fn of(span: &Span, words: &[Vec<char>]) -> Self {
        let mut lines = Vec::new();
        for text in [&span.output, &span.error, &span.input].into_iter().flatten() {
            let text = &text[..text.floor_char_boundary(MAX_SCANNED_BYTES)];
            match serde_json::from_str::<Value>(text) {
                Ok(value @ (Value::Object(_) | Value::Array(_))) => leaves(&value, &mut lines),
                Ok(Value::String(inner)) => add(&inner, &mut lines),
                _ => add(text, &mut lines),
            }
        }
        let found = lines.iter().map(|line| {
            let hits = hits(line, words);
            let different = (0..words.len()).filter(|word| hits.iter().any(|(it, _)| it == word)).count();
            (different, line, hits)
        });
        // Of lines with equally many words the first: the output counts more than the input.
        let best = found.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map(|(_, line, hits)| Self::around(line, hits)).unwrap_or_default()
    }

    fn around(line: &str, hits: Vec<(usize, Range<usize>)>) -> Self {
        let first = hits.iter().map(|(_, hit)| hit.start).min().unwrap_or(0);
        let start = line[..first].char_indices().rev().nth(LEADING_CHARS).map_or(0, |(at, c)| {
            // From the beginning of a word, where there is one before the hit.
            line[at..first].find(' ').map_or(at, |blank| at + blank + c.len_utf8().min(1))
        });
        let end =
            line[start..].char_indices().nth(MAX_EXCERPT_CHARS).map_or(line.len(), |(at, _)| start + at);
        let mut hits: Vec<Range<usize>> = hits
            .into_iter()
            .filter(|(_, hit)| hit.start >= start && hit.end <= end)
            .map(|(_, hit)| hit.start - start..hit.end - start)
            .collect();
        hits.sort_by_key(|hit| hit.start);
        hits.dedup_by(|next, before| next.start < before.end);
        Self { text: line[start..end].to_owned(), hits, begun: start > 0 }
    }
}

/// Collects the lines of the texts within a JSON value.
fn leaves(value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::String(text) => add(text, lines),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, lines)),
        Value::Object(members) => members.values().for_each(|member| leaves(member, lines)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn add(text: &str, lines: &mut Vec<String>) {
    let room = MAX_SCANNED_LINES.saturating_sub(lines.len());
    let kept = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(room);
    lines.extend(kept.map(|line| clean(line).into_owned()));
}

/// Returns the positions of words in a line: the number of the word, and the range of the whole word that begins with it.
fn hits(line: &str, words: &[Vec<char>]) -> Vec<(usize, Range<usize>)> {
    let folded: Vec<(usize, char)> = line.char_indices().map(|(at, c)| (at, fold(c))).collect();
    let mut hits = Vec::new();
    for start in 0..folded.len() {
        let begins = start == 0 || !folded[start - 1].1.is_alphanumeric();
        let fitting = words.iter().position(|word| {
            // In scripts without blanks a word can occur within other characters.
            (begins || word.iter().any(|c| blankless(*c)))
                && folded[start..].iter().map(|(_, c)| c).take(word.len()).eq(word)
        });
        let Some(word) = fitting else { continue };
        let after = start + words[word].len();
        let rest = folded[after..].iter().take_while(|(_, c)| c.is_alphanumeric() && !blankless(*c)).count();
        let end = folded.get(after + rest).map_or(line.len(), |(at, _)| *at);
        hits.push((word, folded[start].0..end));
    }
    hits
}

/// Returns one lower-case character for one character, so that positions do not change.
fn fold(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// Returns whether a character belongs to a script without blanks between words.
fn blankless(c: char) -> bool {
    c >= '\u{2e80}'
}

/// Returns the beginning of a word that its other forms share: `refunds`, `refunded`.
fn stem(mut word: Vec<char>) -> Vec<char> {
    if word.len() > 5 {
        word.truncate((word.len() - 2).max(5));
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::span;

    fn check(output: &str, query: &str, text: &str, hits: &[&str]) {
        let mut span = span(1, None);
        span.output = Some(output.to_owned());
        span.input = Some("refund?".to_owned());
        let found = Excerpt::of(&span, &words(query));
        assert_eq!(found.text, text);
        assert_eq!(found.hits.iter().map(|hit| &found.text[hit.clone()]).collect::<Vec<_>>(), hits);
    }

    #[test]
    fn excerpt_is_the_line_with_the_most_words() {
        let output = "Hello.\nYour refund was promised.\nA refund.";
        check(output, "refunds promised", "Your refund was promised.", &["refund", "promised"]);
    }

    #[test]
    fn excerpt_without_query_words_is_the_first_line() {
        check("\n  Done.\nBye.", "wrong language", "Done.", &[]);
    }

    #[test]
    fn texts_within_json_are_lines() {
        let output = r#"{"choices": [{"message": {"content": "Возврат\nоформлен 返金しました"}}], "n": 1}"#;
        check(output, "оформить возврат", "Возврат", &["Возврат"]);
        check(output, "返金", "оформлен 返金しました", &["返金"]);
    }

    #[test]
    fn long_line_is_cut_shortly_before_the_first_word() {
        let output = format!("{}then the refund came {}", "so it went on and on ".repeat(9), "x".repeat(900));
        let mut span = span(1, None);
        span.output = Some(output);
        let found = Excerpt::of(&span, &words("REFUND"));
        assert!(found.begun && found.text.chars().count() <= MAX_EXCERPT_CHARS, "{found:?}");
        assert!(found.text.starts_with("went on and on then the refund"), "{}", found.text);
    }

    #[test]
    fn control_characters_are_made_visible_before_places_are_taken() {
        check("\u{1b} refund\u{7}", "refund", "⟦ESC⟧ refund⟦07⟧", &["refund"]);
    }
}
