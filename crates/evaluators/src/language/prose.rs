//! Extracts the words of a text that are natural language: no code, addresses, IDs, numbers or field names.

use std::{borrow::Cow, ops::Range};

use super::{
    code,
    script::{SCRIPT_COUNT, Script},
};
use crate::plain::NormalizedText;

/// The words of a text, in pieces of about a sentence.
#[derive(Default)]
pub(super) struct Prose {
    letters: Vec<char>,
    words: Vec<Range<usize>>,
    /// The pieces, in order.
    pub(super) pieces: Vec<Piece>,
    /// Whether only samples of the text were read.
    pub(super) sampled: bool,
}

/// A sentence, or several short ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    words: Range<usize>,
    /// Number of letters by script, weighted.
    pub(super) scripts: [u32; SCRIPT_COUNT],
}

impl Piece {
    /// Returns the weighted number of letters.
    pub(super) fn weight(&self) -> u32 {
        self.scripts.iter().sum()
    }
}

/// Maximum number of bytes of a text that is read completely; longer texts are sampled.
const MAX_UNSAMPLED_BYTES: usize = 32 << 10;
const SAMPLE_COUNT: usize = 16;
/// Minimum number of letters of a piece whose language can be decided by itself.
const MIN_PIECE_LETTERS: u32 = 40;

impl Prose {
    pub(super) fn of(text: &str) -> Self {
        let (text, sampled) = sample(text);
        let text = values(&text);
        let plain = NormalizedText::of(&text);
        let mut prose = Self { sampled, ..Self::default() };
        let mut fenced = false;
        let mut statements = false;
        for line in plain.text().lines() {
            let trimmed = line.trim_start();
            if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
                fenced = !fenced;
                statements = false;
            } else if !fenced && !trimmed.is_empty() {
                // An indented line or a comment after a statement belongs to the statement.
                let belongs = statements && (trimmed.len() < line.len() || code::is_comment(trimmed));
                statements = belongs || code::is_statement(trimmed);
                if !statements && !code::is_code(trimmed) {
                    prose.line(trimmed);
                }
            }
            prose.end(MIN_PIECE_LETTERS);
        }
        prose.end(1);
        prose
    }

    /// Returns the words of a piece in lower case.
    pub(super) fn words(&self, piece: &Piece) -> impl Iterator<Item = &[char]> {
        self.words[piece.words.clone()].iter().map(|it| &self.letters[it.clone()])
    }

    fn line(&mut self, line: &str) {
        let mut quoted = false;
        // Text between backticks is code; a single backtick is punctuation.
        let parts = line.split('`');
        let paired = line.bytes().filter(|it| *it == b'`').count() % 2 == 0;
        for part in parts {
            if !(quoted && paired) {
                for token in part.split_whitespace() {
                    if is_word(token) {
                        self.token(token);
                    }
                    if token.ends_with(['.', '!', '?', '。', '！', '？', '।', '؟']) {
                        self.end(MIN_PIECE_LETTERS);
                    }
                }
            }
            quoted = !quoted;
        }
    }

    fn token(&mut self, token: &str) {
        let mut start = self.letters.len();
        let mut scripts = [0_u32; SCRIPT_COUNT];
        for char in token.chars() {
            // Combining marks belong to the preceding letter.
            match Script::of(char) {
                Some(script) => {
                    scripts[script as usize] += script.weight();
                    self.letters.extend(char.to_lowercase());
                }
                None if matches!(u32::from(char), 0x300..=0x36F) => self.letters.push(char),
                None => start = self.close(start),
            }
        }
        self.close(start);
        let Some(piece) = self.open() else { return };
        for (sum, it) in piece.scripts.iter_mut().zip(scripts) {
            *sum += it;
        }
    }

    /// Ends a word.
    fn close(&mut self, start: usize) -> usize {
        if self.letters.len() > start {
            self.words.push(start..self.letters.len());
        }
        self.letters.len()
    }

    /// Returns the piece that is being read.
    fn open(&mut self) -> Option<&mut Piece> {
        let end = self.words.len();
        if self.pieces.is_empty() {
            self.pieces.push(Piece::default());
        }
        let piece = self.pieces.last_mut()?;
        piece.words.end = end;
        Some(piece)
    }

    /// Ends a piece that is long enough; a last piece that is too short is added to the piece before it.
    fn end(&mut self, enough: u32) {
        let Some(last) = self.pieces.last() else { return };
        if last.weight() >= enough {
            let from = last.words.end;
            self.pieces.push(Piece { words: from..from, scripts: [0; SCRIPT_COUNT] });
        }
    }
}

/// Returns the text, or samples from all parts of it, and whether it was sampled.
fn sample(text: &str) -> (Cow<'_, str>, bool) {
    if text.len() <= MAX_UNSAMPLED_BYTES {
        return (Cow::Borrowed(text), false);
    }
    let mut samples = String::with_capacity(MAX_UNSAMPLED_BYTES + SAMPLE_COUNT);
    for at in 0..SAMPLE_COUNT {
        let from = boundary(text, text.len() / SAMPLE_COUNT * at);
        let to = boundary(text, from + MAX_UNSAMPLED_BYTES / SAMPLE_COUNT);
        let sample = &text[from..to];
        // A sample begins and ends at word boundaries if there are any.
        let sample =
            if at == 0 { sample } else { sample.split_once(char::is_whitespace).map_or(sample, |it| it.1) };
        samples.push_str(sample);
        samples.push('\n');
    }
    (Cow::Owned(samples), true)
}

fn boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns the string values if the text is JSON, because member names are not natural language.
fn values(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim();
    let json = (trimmed.starts_with('{') && trimmed.ends_with('}')
        || trimmed.starts_with('[') && trimmed.ends_with(']'))
        && trimmed.contains('"');
    if !json {
        return Cow::Borrowed(text);
    }
    let mut values = String::with_capacity(trimmed.len());
    let bytes = trimmed.as_bytes();
    let mut at = 0;
    while let Some(open) = bytes[at..].iter().position(|it| *it == b'"').map(|it| at + it + 1) {
        let mut close = open;
        while let Some(byte) = bytes.get(close) {
            match byte {
                b'"' => break,
                b'\\' => close += 2,
                _ => close += 1,
            }
        }
        let end = close.min(bytes.len());
        let name =
            bytes[(end + 1).min(bytes.len())..].iter().find(|it| !it.is_ascii_whitespace()) == Some(&b':');
        if !name {
            values.push_str(trimmed.get(open..end).unwrap_or_default());
            values.push('\n');
        }
        at = (end + 1).min(bytes.len());
    }
    Cow::Owned(values)
}

/// Returns whether a token is a word: no address, path, ID, number, variable name or call.
fn is_word(token: &str) -> bool {
    let core = token.trim_matches(|it: char| !it.is_alphanumeric());
    if core.is_empty() {
        return false;
    }
    if !core.is_ascii() && !core.bytes().any(|it| it.is_ascii()) {
        return true;
    }
    let bytes = core.as_bytes();
    let odd = bytes.iter().any(|it| b"@_\\={}<>[]()|".contains(it))
        || core.contains("://")
        || core.starts_with("www.");
    let digits = bytes.iter().any(u8::is_ascii_digit) && core.is_ascii();
    let camel = bytes.windows(2).any(|it| it[0].is_ascii_lowercase() && it[1].is_ascii_uppercase());
    // `a/b` means "a or b"; more slashes mean a path. `file.txt` has no blank after its dot.
    let path = bytes.iter().filter(|it| **it == b'/').count() > 1;
    let file = core.is_ascii()
        && bytes
            .windows(3)
            .any(|it| it[1] == b'.' && it[0].is_ascii_alphanumeric() && it[2].is_ascii_lowercase());
    // In languages without blanks, brackets stand inside tokens.
    !(core.is_ascii() && (odd || digits || camel || path || file)) && !core.contains("://")
}
