//! Normalized text: full-width and foreign digits become ASCII digits, invisible characters are removed, JSON
//! escapes are resolved. Positions map back to the original text.

use std::borrow::Cow;

/// A normalized text.
pub(crate) struct NormalizedText<'a> {
    text: Cow<'a, str>,
    /// For each byte of the normalized text, the index of the original character; none if the texts are
    /// equal.
    places: Option<Vec<u32>>,
    /// The number of characters of the original text.
    length: usize,
}

impl<'a> NormalizedText<'a> {
    /// Normalizes a text of less than 4 GiB.
    pub(crate) fn of(text: &'a str) -> Self {
        if text.is_ascii() && !text.contains('\\') {
            return Self { text: Cow::Borrowed(text), places: None, length: text.len() };
        }
        let mut folded = String::with_capacity(text.len());
        let mut places = Vec::with_capacity(text.len());
        let mut rest = text.chars();
        let mut at = 0;
        while let Some(char) = rest.next() {
            let (char, taken) = if char == '\\' { escape(rest.as_str()) } else { (char, 0) };
            if let Some(char) = fold(char) {
                folded.push(char);
                places.resize(folded.len(), u32::try_from(at).unwrap_or(u32::MAX));
            }
            for _ in 0..taken {
                rest.next();
            }
            at += 1 + taken;
        }
        Self { text: Cow::Owned(folded), places: Some(places), length: at }
    }

    /// Returns the normalized text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the index of the original character at which this byte of the normalized text begins.
    pub(crate) fn place(&self, byte: usize) -> usize {
        match &self.places {
            None => byte,
            Some(places) => places.get(byte).map_or(self.length, |it| *it as usize),
        }
    }
}

/// Decodes a JSON escape without its backslash; returns the character and the number of characters read.
pub(crate) fn escape(rest: &str) -> (char, usize) {
    match rest.as_bytes().first() {
        Some(b'n' | b'r') => ('\n', 1),
        Some(b't') => (' ', 1),
        Some(b'"') => ('"', 1),
        Some(b'/') => ('/', 1),
        Some(b'u') => rest
            .get(1..5)
            .and_then(|it| u32::from_str_radix(it, 16).ok())
            .and_then(char::from_u32)
            .map_or(('\\', 0), |it| (it, 5)),
        _ => ('\\', 0),
    }
}

/// Returns a character in normalized form; none if it is invisible.
pub(crate) fn fold(char: char) -> Option<char> {
    let code = u32::from(char);
    if code < 0xA0 {
        return Some(char);
    }
    Some(match code {
        // Soft hyphen, zero-width characters, direction marks, variation selectors.
        0xAD | 0x180E | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x2069 | 0xFE00..=0xFE0F | 0xFEFF => {
            return None;
        }
        0xA0 | 0x2000..=0x200A | 0x202F | 0x205F | 0x3000 => ' ',
        0x2010..=0x2015 | 0x2212 | 0xFE58 | 0xFE63 => '-',
        0xFF01..=0xFF5E => char::from_u32(code - 0xFEE0).unwrap_or(char),
        // Decimal digits of other scripts: blocks of ten, beginning with zero.
        0x0660..=0x0669 => digit(code - 0x0660),
        0x06F0..=0x06F9 => digit(code - 0x06F0),
        0x0966..=0x096F => digit(code - 0x0966),
        0x09E6..=0x09EF => digit(code - 0x09E6),
        0x0A66..=0x0A6F => digit(code - 0x0A66),
        0x0AE6..=0x0AEF => digit(code - 0x0AE6),
        0x0BE6..=0x0BEF => digit(code - 0x0BE6),
        0x0C66..=0x0C6F => digit(code - 0x0C66),
        0x0CE6..=0x0CEF => digit(code - 0x0CE6),
        0x0D66..=0x0D6F => digit(code - 0x0D66),
        0x0E50..=0x0E59 => digit(code - 0x0E50),
        // Mathematical digits in five styles.
        0x1D7CE..=0x1D7FF => digit((code - 0x1D7CE) % 10),
        // Circled digits, beginning with one.
        0x2460..=0x2468 => digit(code - 0x2460 + 1),
        _ => char,
    })
}

fn digit(value: u32) -> char {
    char::from_digit(value, 10).unwrap_or('0')
}

#[cfg(test)]
mod tests {
    use super::NormalizedText;

    #[track_caller]
    fn folds(given: &str, folded: &str) {
        assert_eq!(NormalizedText::of(given).text(), folded);
    }

    #[test]
    fn foreign_digits_are_normalized_to_ascii() {
        folds("４１１１－１１１１", "4111-1111");
        folds("٤١١١", "4111");
        folds("41\u{200B}11\u{00A0}11", "4111 11");
        folds("𝟒𝟏𝟏𝟏 ①", "4111 1");
    }

    #[test]
    fn escapes_of_json_are_resolved() {
        folds(r#"{"a":"x\u0040y\n4111"}"#, "{\"a\":\"x@y\n4111\"}");
        folds(r"C:\users\u00", r"C:\users\u00");
    }

    #[test]
    fn finding_positions_refer_to_the_given_text() {
        let plain = NormalizedText::of("é\u{200B}a\\u0040b");
        assert_eq!(plain.text(), "éa@b");
        assert_eq!(["éa@b", "a@b", "@b", "b"].map(|it| plain.place("éa@b".len() - it.len())), [0, 2, 3, 9]);
        assert_eq!(plain.place(100), 10);
    }
}
