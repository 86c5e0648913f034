//! Normalized text, as [`crate::plain`], with positions in bytes: texts without escapes and foreign characters are not
//! copied, and runs of unchanged characters are copied at once. `%40`, as in URLs, becomes `@`.

use std::borrow::Cow;

use crate::plain::{escape, fold};

/// The percent-encoded `@`.
const PERCENT_AT: &str = "%40";

/// A normalized text.
pub(super) struct NormalizedBytes<'a> {
    text: Cow<'a, str>,
    /// The starts of runs, in the normalized and in the original text, ascending. Empty if the texts are equal.
    runs: Vec<(usize, usize)>,
}

impl<'a> NormalizedBytes<'a> {
    /// Normalizes a text.
    pub(super) fn of(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        // These tests read many bytes at once.
        let is_ascii = text.is_ascii();
        let next_escape = |from: usize| memchr::memchr2(b'\\', b'%', &bytes[from..]);
        if is_ascii && next_escape(0).is_none() {
            return Self { text: Cow::Borrowed(text), runs: Vec::new() };
        }
        let is_special = |at: usize| match bytes[at] {
            b'\\' => true,
            b'%' => bytes[at..].starts_with(PERCENT_AT.as_bytes()),
            it => it >= 0x80,
        };
        let next_special = |from: usize| {
            let mut at = from;
            loop {
                at += match is_ascii {
                    true => next_escape(at)?,
                    false => bytes[at..].iter().position(|it| matches!(it, b'\\' | b'%' | 0x80..))?,
                };
                if is_special(at) {
                    return Some(at);
                }
                at += 1;
            }
        };
        let Some(first) = next_special(0) else {
            return Self { text: Cow::Borrowed(text), runs: Vec::new() };
        };
        let mut folded = String::new();
        let mut runs = vec![(0, 0)];
        // The bytes from `copied` to `at` are unchanged and not yet written.
        let (mut copied, mut at) = (0, first);
        while at < bytes.len() {
            if !is_special(at) {
                at = next_special(at).unwrap_or(bytes.len());
                continue;
            }
            let Some(sent) = text[at..].chars().next() else { break };
            let mut taken = sent.len_utf8();
            let char = if sent == '\\' {
                let (char, more) = escape(&text[at + 1..]);
                taken += more;
                char
            } else if sent == '%' {
                taken = PERCENT_AT.len();
                '@'
            } else {
                sent
            };
            let kept = fold(char);
            if kept == Some(sent) {
                at += taken;
                continue;
            }
            if folded.is_empty() {
                folded.reserve(text.len());
            }
            folded.push_str(&text[copied..at]);
            runs.push((folded.len(), at));
            folded.extend(kept);
            at += taken;
            copied = at;
            runs.push((folded.len(), at));
        }
        if copied == 0 {
            return Self { text: Cow::Borrowed(text), runs: Vec::new() };
        }
        folded.push_str(&text[copied..]);
        Self { text: Cow::Owned(folded), runs }
    }

    /// Returns the normalized text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the byte of the original text at which this byte of the normalized text begins.
    pub(super) fn origin(&self, byte: usize) -> usize {
        let after = self.runs.partition_point(|it| it.0 <= byte);
        match after.checked_sub(1).and_then(|it| self.runs.get(it)) {
            Some((normalized, original)) => original + (byte - normalized),
            None => byte,
        }
    }

    /// Returns the byte of the original text after the character that ends before this byte of the normalized text.
    pub(super) fn end_origin(&self, byte: usize) -> usize {
        // The run that contains the last byte, so that removed characters after it are not part of the range.
        let Some(last) = byte.checked_sub(1) else { return 0 };
        let after = self.runs.partition_point(|it| it.0 <= last);
        let Some((normalized, original)) = after.checked_sub(1).and_then(|it| self.runs.get(it)) else {
            return byte;
        };
        match self.runs.get(after) {
            // The last character may have been an escape or a longer character.
            Some((next, next_original)) if *next == byte => *next_original,
            _ => original + (byte - normalized),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NormalizedBytes;

    fn original<'a>(text: &'a str, normalized: &NormalizedBytes, found: &str) -> &'a str {
        let start = normalized.text().find(found).unwrap();
        &text[normalized.origin(start)..normalized.end_origin(start + found.len())]
    }

    #[test]
    fn normalized_text_maps_back_to_bytes() {
        for (text, found, sent) in [
            ("a joe@x.org b", "joe@x.org", "joe@x.org"),
            (r"a joe\u0040x.org b", "joe@x.org", r"joe\u0040x.org"),
            ("é 41\u{200b}11 é", "4111", "41\u{200b}11"),
            ("é 4111\u{200b} é", "4111", "4111"),
            ("٤١١١", "4111", "٤١١١"),
            (r#"{\"a\":\"b\"}"#, r#""b""#, r#"\"b\""#),
            ("日本語 joe", "joe", "joe"),
            (r"x\n4111", "4111", "4111"),
            ("50% joe%40x.org%4", "joe@x.org", "joe%40x.org"),
        ] {
            let normalized = NormalizedBytes::of(text);
            assert_eq!(original(text, &normalized, found), sent, "{text}");
        }
    }

    #[test]
    fn unchanged_text_is_not_copied() {
        for text in ["", "plain", "日本語", r"C:\Windows"] {
            assert!(matches!(NormalizedBytes::of(text).text, std::borrow::Cow::Borrowed(_)), "{text}");
        }
    }
}
