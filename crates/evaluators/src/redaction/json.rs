//! Redacts JSON text token by token. No tree is built: everything between the masked values keeps its bytes.
//!
//! Detectors search the whole text at once, so that a key labels its value (`"password": "…"`). Their ranges are applied to
//! the strings and numbers that contain them. A string with escapes is decoded only if something in it can need masking.

use super::{
    JsonNumbers, MAX_LABEL_BYTES, MaskedRange, RedactionCounts, Redactor, count, max_redacted_bytes, merged,
    push_placeholder, without_call,
};
use crate::pii::Kind;

/// Maximum distance of the word that labels a number, in bytes.
const MAX_LABEL_DISTANCE: usize = 64;
/// Maximum depth of JSON texts that are strings in JSON texts. Deeper ones are redacted like other texts.
pub(super) const MAX_DEPTH: u32 = 6;

/// Returns whether a text may be JSON with strings.
pub(super) fn is_json_like(text: &str) -> bool {
    matches!(text.trim_ascii_start().as_bytes().first(), Some(b'{' | b'[' | b'"'))
}

/// A pass over a JSON text.
pub(super) struct JsonRedaction<'a, 't> {
    redactor: &'a Redactor,
    text: &'t str,
    /// Ranges to mask, by position and without overlaps.
    ranges: Vec<MaskedRange<'a>>,
    next_range: usize,
    numbers: JsonNumbers,
    depth: u32,
    /// Whether a pattern may match in a string without escapes.
    may_match: bool,
    out: String,
    /// The bytes of the text that `out` contains.
    copied: usize,
    /// For each open object or list, the number of its masked keys.
    masked_keys: Vec<u32>,
    /// Whether a key may be the name of a secret.
    has_secret_names: bool,
    /// The last key, which labels the tokens after it.
    key: Option<(usize, usize)>,
    /// Whether the next token is the value of the last key.
    is_value: bool,
}

impl<'a, 't> JsonRedaction<'a, 't> {
    pub(super) fn new(
        redactor: &'a Redactor,
        text: &'t str,
        ranges: Vec<MaskedRange<'a>>,
        numbers: JsonNumbers,
        depth: u32,
    ) -> Self {
        Self {
            redactor,
            text,
            ranges,
            next_range: 0,
            numbers,
            depth,
            may_match: redactor.patterns.may_match(text),
            out: String::new(),
            copied: 0,
            masked_keys: Vec::new(),
            has_secret_names: redactor.has_secret_names(text),
            key: None,
            is_value: false,
        }
    }

    /// Redacts the text; `None` if nothing was masked. From the first token that is not JSON on, for example in a
    /// truncated text, the text is redacted like other texts.
    pub(super) fn run(mut self, counts: &mut RedactionCounts) -> Option<String> {
        let is_unchanged = self.ranges.is_empty()
            && !self.may_match
            && !self.has_secret_names
            && (self.redactor.patterns.is_empty() || !self.text.contains('\\'))
            && !has_further_escapes(self.text);
        if is_unchanged {
            return None;
        }
        if let Err(at) = self.tokens(counts) {
            self.rest(at, counts);
        }
        if self.copied == 0 {
            return None;
        }
        if self.is_too_long() {
            return Some(self.whole());
        }
        self.out.push_str(&self.text[self.copied..]);
        Some(self.out)
    }

    /// Redacts all tokens. The error is the start of the first token that is not JSON.
    fn tokens(&mut self, counts: &mut RedactionCounts) -> Result<(), usize> {
        let text = self.text;
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at).filter(|_| !self.is_too_long()) {
            match byte {
                b'"' => {
                    let string = StringToken::read(bytes, at).ok_or(at)?;
                    at = string.end + 1;
                    let next = bytes[at..].iter().find(|it| !it.is_ascii_whitespace());
                    self.string(&string, next == Some(&b':'), counts);
                }
                b'-' | b'0'..=b'9' => {
                    let is_part = |it: &&u8| it.is_ascii_digit() || b"+-.eE".contains(it);
                    let end = at + bytes[at..].iter().take_while(is_part).count();
                    self.number(at, end, counts);
                    at = end;
                }
                b'{' | b'[' => {
                    self.is_value = false;
                    self.masked_keys.push(0);
                    at += 1;
                }
                b'}' | b']' => {
                    self.masked_keys.pop();
                    at += 1;
                }
                b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => at += 1,
                b't' | b'f' | b'n' => {
                    self.is_value = false;
                    let word = ["true", "false", "null"].into_iter().find(|it| text[at..].starts_with(it));
                    at += word.ok_or(at)?.len();
                }
                _ => return Err(at),
            }
        }
        Ok(())
    }

    /// Returns the ranges that begin in these bytes, or before them and outside of a token. A range masks one token only.
    fn take_ranges(&mut self, start: usize, end: usize) -> Vec<MaskedRange<'a>> {
        let mut taken = Vec::new();
        while let Some(range) = self.ranges.get(self.next_range) {
            if range.start >= end {
                break;
            }
            self.next_range += 1;
            let clipped = MaskedRange {
                start: range.start.max(start) - start,
                end: range.end.min(end).max(start) - start,
                ..*range
            };
            if clipped.start < clipped.end {
                taken.push(clipped);
            }
        }
        taken
    }

    /// Returns the ranges of a token. In JSON, the word `call` names the call of a function more often than that of a
    /// person, so digits after it are a telephone number only if the last key, without this word, says so.
    fn token_ranges(&mut self, start: usize, end: usize) -> Vec<MaskedRange<'a>> {
        let mut ranges = self.take_ranges(start, end);
        let token = &self.text[start..end];
        if self.is_value && self.has_secret_names {
            let key = self.key.map(|(start, end)| DecodedString::of(&self.text[start..end]).text);
            if key.is_some_and(|it| self.redactor.masks_whole(&it, token)) {
                return vec![MaskedRange { start: 0, end: token.len(), kind: Kind::Secret.word() }];
            }
        }
        if ranges.iter().any(|it| it.kind == Kind::Phone.word())
            && token.bytes().all(|it| it.is_ascii_digit())
        {
            let before = self.text.floor_char_boundary(start.saturating_sub(MAX_LABEL_DISTANCE));
            let label = &self.text.as_bytes()[before..start];
            if label.windows(4).any(|it| it.eq_ignore_ascii_case(b"call")) && !self.key_labels_phone(token) {
                ranges.retain(|it| it.kind != Kind::Phone.word());
            }
        }
        ranges
    }

    /// Returns whether digits with the last key as their label are a telephone number.
    fn key_labels_phone(&self, digits: &str) -> bool {
        let key =
            self.key.map(|(start, end)| &self.text[start..end]).filter(|it| it.len() <= MAX_LABEL_BYTES);
        let Some(key) = key else { return false };
        let labelled = format!("{}: {digits}", without_call(key));
        self.redactor.detected(&labelled).iter().any(|it| it.kind == Kind::Phone.word())
    }

    fn string(&mut self, token: &StringToken, is_key: bool, counts: &mut RedactionCounts) {
        self.is_value &= !is_key;
        let ranges = self.token_ranges(token.start, token.end);
        self.is_value = is_key;
        if is_key {
            self.key = Some((token.start, token.end));
        }
        let content = &self.text[token.start..token.end];
        let redacted = if token.has_escapes {
            self.escaped(content, ranges, counts)
        } else if self.may_match || !ranges.is_empty() {
            self.redactor.plain(content, ranges, counts)
        } else {
            None
        };
        let Some(mut redacted) = redacted else { return };
        if is_key && let Some(masked) = self.masked_keys.last_mut() {
            // Equal placeholders must not become equal keys.
            *masked += 1;
            if *masked > 1 {
                redacted.push('_');
                redacted.push_str(&masked.to_string());
            }
        }
        // A text always serializes.
        let Ok(quoted) = serde_json::to_string(&redacted) else { return };
        self.replace(token.start - 1, token.end + 1, &quoted);
    }

    /// Redacts the content of a string with escapes; returns it decoded.
    fn escaped(
        &self,
        content: &str,
        ranges: Vec<MaskedRange<'a>>,
        counts: &mut RedactionCounts,
    ) -> Option<String> {
        // The detectors saw the text with its simple escapes resolved; they have to see it again only if it has others.
        let has_unread = has_further_escapes(content);
        let may_have_names = is_json_like(content) && self.redactor.has_secret_names(content);
        if ranges.is_empty() && !has_unread && !may_have_names && self.redactor.patterns.is_empty() {
            return None;
        }
        let decoded = DecodedString::of(content);
        let ranges: Vec<_> = ranges.into_iter().map(|it| decoded.range(it)).collect();
        if let [whole] = ranges[..]
            && whole.start == 0
            && whole.end == decoded.text.len()
        {
            return self.redactor.plain(&decoded.text, ranges, counts);
        }
        // The numbers of the text around it may be times and IDs; those of a text in a string are content.
        let numbers = JsonNumbers::Masked;
        self.redactor.nested(&decoded.text, ranges, counts, numbers, self.depth - 1, has_unread)
    }

    fn number(&mut self, start: usize, end: usize, counts: &mut RedactionCounts) {
        let mut ranges = self.token_ranges(start, end);
        self.is_value = false;
        if self.numbers == JsonNumbers::Kept {
            return;
        }
        if self.may_match {
            ranges = self.redactor.with_matches(&self.text[start..end], ranges);
        }
        let Some(first) = merged(ranges).into_iter().next() else { return };
        count(counts, first.kind);
        let mut quoted = String::from("\"");
        push_placeholder(&mut quoted, first.kind);
        quoted.push('"');
        self.replace(start, end, &quoted);
    }

    fn rest(&mut self, at: usize, counts: &mut RedactionCounts) {
        let end = self.text.len();
        let ranges = self.take_ranges(at, end);
        if let Some(redacted) = self.redactor.plain(&self.text[at..], ranges, counts) {
            self.replace(at, end, &redacted);
        }
    }

    /// Returns whether the redacted text is longer than a text may become.
    fn is_too_long(&self) -> bool {
        self.out.len() + (self.text.len() - self.copied) > max_redacted_bytes(self.text)
    }

    /// Returns JSON of the same type with one placeholder, for a text that would become too long.
    fn whole(&self) -> String {
        let placeholder = "\"[REDACTED:text]\"";
        match self.text.trim_ascii_start().as_bytes().first() {
            Some(b'{') => format!("{{\"redacted\":{placeholder}}}"),
            Some(b'[') => format!("[{placeholder}]"),
            _ => placeholder.to_owned(),
        }
    }

    fn replace(&mut self, start: usize, end: usize, with: &str) {
        if self.out.is_empty() {
            self.out.reserve(self.text.len() + with.len());
        }
        self.out.push_str(&self.text[self.copied..start]);
        self.out.push_str(with);
        self.copied = end;
    }
}

/// A string token: the bytes between its quotation marks.
struct StringToken {
    start: usize,
    end: usize,
    has_escapes: bool,
}

impl StringToken {
    /// Reads the string that begins with the quotation mark at `quote`; `None` if it has no end.
    fn read(bytes: &[u8], quote: usize) -> Option<Self> {
        let start = quote + 1;
        let (mut at, mut has_escapes) = (start, false);
        loop {
            match bytes.get(at)? {
                b'"' => return Some(Self { start, end: at, has_escapes }),
                b'\\' => {
                    has_escapes = true;
                    at += 2;
                }
                _ => at += 1,
            }
        }
    }
}

/// Returns whether a string has escapes that the normalization of texts does not resolve: backslashes, surrogates, control
/// characters.
fn has_further_escapes(content: &str) -> bool {
    let bytes = content.as_bytes();
    let mut at = 0;
    while let Some(found) = content.get(at..).and_then(|it| it.find('\\')) {
        at += found + 1;
        match bytes.get(at) {
            Some(b'n' | b'r' | b't' | b'"' | b'/') => {}
            Some(b'u')
                if !matches!(bytes.get(at + 1), Some(b'd' | b'D')) && !bytes[at..].starts_with(b"u005") => {}
            _ => return true,
        }
        at += 1;
    }
    false
}

/// A decoded string.
struct DecodedString {
    text: String,
    /// For each escape, the bytes after it in the decoded and in the encoded text.
    escapes: Vec<(usize, usize)>,
}

impl DecodedString {
    /// Decodes the content of a string token. Invalid escapes stay as they are.
    fn of(content: &str) -> Self {
        let mut text = String::with_capacity(content.len());
        let mut escapes = Vec::new();
        let mut rest = content;
        while let Some(at) = rest.find('\\') {
            text.push_str(&rest[..at]);
            let (char, length) = decode_escape(&rest[at..]);
            text.push(char);
            rest = &rest[at + length..];
            escapes.push((text.len(), content.len() - rest.len()));
        }
        text.push_str(rest);
        Self { text, escapes }
    }

    /// Converts a range of the encoded content. Escapes that are partly inside are masked as a whole.
    fn range<'a>(&self, range: MaskedRange<'a>) -> MaskedRange<'a> {
        let start = self.position(range.start, false);
        let end = self.position(range.end, true);
        MaskedRange { start, end, ..range }
    }

    fn position(&self, encoded: usize, is_end: bool) -> usize {
        let after = self.escapes.partition_point(|it| it.1 <= encoded);
        let (decoded_base, encoded_base) = match after.checked_sub(1) {
            Some(it) => self.escapes[it],
            None => (0, 0),
        };
        let position = decoded_base + (encoded - encoded_base);
        // Inside an escape, the text between the escapes ends before this position.
        let Some((next_end, _)) = self.escapes.get(after) else { return position.min(self.text.len()) };
        let next_start = next_end - self.text[..*next_end].chars().next_back().map_or(0, char::len_utf8);
        if position <= next_start {
            position
        } else if is_end {
            *next_end
        } else {
            next_start
        }
    }
}

/// Decodes the escape with which a text begins; returns the character and the length of the escape.
fn decode_escape(escape: &str) -> (char, usize) {
    let unit = |at: usize| escape.get(at..at + 4).and_then(|it| u32::from_str_radix(it, 16).ok());
    match escape.as_bytes().get(1) {
        Some(b'n') => ('\n', 2),
        Some(b'r') => ('\r', 2),
        Some(b't') => ('\t', 2),
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(it @ (b'"' | b'\\' | b'/')) => (char::from(*it), 2),
        Some(b'u') => match unit(2) {
            Some(high @ 0xD800..=0xDBFF) => match unit(8).filter(|_| escape[6..].starts_with("\\u")) {
                Some(low @ 0xDC00..=0xDFFF) => {
                    let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                    (char::from_u32(code).unwrap_or('\u{fffd}'), 12)
                }
                _ => ('\u{fffd}', 6),
            },
            Some(code) => (char::from_u32(code).unwrap_or('\u{fffd}'), 6),
            None => ('\\', 1),
        },
        _ => ('\\', 1),
    }
}
