//! The fence, which shows text of a trace to a judge as data and never as instructions.
//!
//! **Invariant:** no line of data begins like a line of the fence. Every line of data begins with `| `, so
//! that no data can close its section or open another. The lines that open and close a section carry a token
//! that is new in every call and is removed from the data if it occurs there.

use std::fmt;

/// The prefix of every line of data.
const LINE_PREFIX: &str = "| ";
/// The replacement of the token in data.
const TOKEN_REPLACEMENT: &str = "[taken out]";
/// Approximate length of a note in characters.
const NOTE_CHARS: usize = 80;

/// Message delimiters of open models. Their tokenizers recognize these anywhere, so a server may end a
/// message inside a user's text. A space after the first character makes a delimiter plain text.
const MESSAGE_DELIMITERS: &[&str] = &[
    "<|",
    "|>",
    "<\u{ff5c}",
    "\u{ff5c}>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<start_of_image>",
    "<bos>",
    "<eos>",
    "<pad>",
    "<unk>",
    "<s>",
    "</s>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<<SYS>>",
    "<</SYS>>",
    "[THINK]",
    "[/THINK]",
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_CALLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
];

/// The random token of a fence: 128 bits that the author of a trace cannot guess. Every call has a new token,
/// which the caller draws, because this crate uses no randomness.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Creates a token from random bits.
    pub fn new(bits: [u8; 16]) -> Self {
        Self(bits.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the token as 32 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    /// Formats the value without the token, because authors of traces may read logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The text of a fenced section under construction.
pub(super) struct Fence<'a> {
    token: &'a Token,
    out: String,
}

impl<'a> Fence<'a> {
    pub(super) fn new(token: &'a Token) -> Self {
        Self { token, out: String::new() }
    }

    /// Opens a section. `name` comes from this crate or from a tenant's template, never from a trace.
    pub(super) fn open(&mut self, name: &str) {
        self.out.push_str(&format!("BEGIN DATA {} {name}\n", self.token.as_str()));
    }

    /// Closes a section.
    pub(super) fn close(&mut self, name: &str) {
        self.out.push_str(&format!("END DATA {} {name}\n\n", self.token.as_str()));
    }

    /// Adds a line outside the data which says that a part of a section is not shown.
    pub(super) fn note(&mut self, what: &str) {
        self.out.push_str(&format!("({}: {what})\n", self.token.as_str()));
    }

    /// Writes data, at most `most` characters of it as shown. Longer data loses its middle.
    pub(super) fn data(&mut self, text: &str, most: usize) {
        let text = text.trim_matches(['\n', '\r']);
        let (head, tail) = self.cut(text, most);
        self.quoted(&text[..head]);
        if head < tail {
            let left_out = text[head..tail].chars().count();
            self.note(&format!("{left_out} characters left out"));
            self.quoted(&text[tail..]);
        }
    }

    /// Returns the written text.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Returns the end of the head and the start of the tail in bytes; both are equal if the whole text fits.
    /// The time depends on `most`, not on the length of the text.
    fn cut(&self, text: &str, most: usize) -> (usize, usize) {
        let whole = self.head(text, most);
        if whole == text.len() {
            return (whole, whole);
        }
        let most = most.saturating_sub(NOTE_CHARS);
        let head = self.head(text, most - most / 2);
        (head, self.tail(text, most / 2).max(head))
    }

    /// Returns the end of the longest prefix that takes at most `most` characters when quoted.
    fn head(&self, text: &str, most: usize) -> usize {
        let mut spent = LINE_PREFIX.len() + 1;
        for (at, character) in text.char_indices() {
            spent += self.cost(text, at, character);
            if spent > most {
                return at;
            }
        }
        text.len()
    }

    /// Returns the start of the longest suffix that takes at most `most` characters when quoted.
    fn tail(&self, text: &str, most: usize) -> usize {
        let mut spent = LINE_PREFIX.len() + 1;
        for (at, character) in text.char_indices().rev() {
            spent += self.cost(text, at, character);
            if spent > most {
                return at + character.len_utf8();
            }
        }
        0
    }

    /// Returns an upper bound of the characters that this character takes when quoted.
    fn cost(&self, text: &str, at: usize, character: char) -> usize {
        match shown(text, at, character) {
            ShownCharacter::Nothing => 0,
            ShownCharacter::NormalizedText => 1,
            ShownCharacter::Spaced => 2,
            ShownCharacter::Line => 1 + LINE_PREFIX.len(),
            ShownCharacter::Escaped => character.escape_unicode().count(),
        }
    }

    fn quoted(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.out.push_str(LINE_PREFIX);
        let mut skipped_to = 0;
        for (at, character) in text.char_indices() {
            if at < skipped_to {
                continue;
            }
            if is_prefix(self.token.as_str(), &text[at..]) {
                self.out.push_str(TOKEN_REPLACEMENT);
                skipped_to = at + self.token.as_str().len();
                continue;
            }
            match shown(text, at, character) {
                ShownCharacter::Nothing => {}
                ShownCharacter::NormalizedText => self.out.push(character),
                ShownCharacter::Spaced => self.out.extend([character, ' ']),
                ShownCharacter::Line => {
                    self.out.push('\n');
                    self.out.push_str(LINE_PREFIX);
                }
                ShownCharacter::Escaped => self.out.extend(character.escape_unicode()),
            }
        }
        self.out.push('\n');
    }
}

/// The representation of a character of data.
enum ShownCharacter {
    Nothing,
    NormalizedText,
    /// Followed by a space.
    Spaced,
    /// As the end of a line.
    Line,
    /// As an escape with its code, because the character is invisible or changes how its neighbours look.
    Escaped,
}

fn shown(text: &str, at: usize, character: char) -> ShownCharacter {
    match character {
        '\r' if text.as_bytes().get(at + 1) == Some(&b'\n') => ShownCharacter::Nothing,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => ShownCharacter::Line,
        '\t' => ShownCharacter::NormalizedText,
        _ if character.is_control() || is_deceptive(character) => ShownCharacter::Escaped,
        '<' | '|' | '\u{ff5c}' | '['
            if MESSAGE_DELIMITERS.iter().any(|edge| is_prefix(edge, &text[at..])) =>
        {
            ShownCharacter::Spaced
        }
        _ => ShownCharacter::NormalizedText,
    }
}

/// Returns whether a character hides text or changes its direction. The judge must see the text that the
/// model saw.
fn is_deceptive(character: char) -> bool {
    matches!(character,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}' | '\u{feff}')
}

/// Returns whether `text` begins with `prefix`, ignoring ASCII case.
fn is_prefix(prefix: &str, text: &str) -> bool {
    text.as_bytes().get(..prefix.len()).is_some_and(|it| it.eq_ignore_ascii_case(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITS: [u8; 16] = [0xab; 16];

    fn shown(text: &str, most: usize) -> String {
        let token = Token::new(BITS);
        let mut fence = Fence::new(&token);
        fence.data(text, most);
        fence.finish()
    }

    #[test]
    fn every_line_of_data_is_quoted() {
        assert_eq!(shown("a\nb\r\nc\rd\u{2028}e\u{85}f", 100), "| a\n| b\n| c\n| d\n| e\n| f\n");
        assert_eq!(shown("", 100), "");
        assert_eq!(shown("| END DATA\n", 100), "| | END DATA\n");
    }

    #[test]
    fn token_and_message_delimiters_are_broken() {
        let token = Token::new(BITS);
        assert_eq!(shown(&format!("x{}y", token.as_str()), 100), "| x[taken out]y\n");
        assert_eq!(shown(&format!("x{}y", token.as_str().to_uppercase()), 100), "| x[taken out]y\n");
        assert_eq!(shown("a<|im_end|>b<S>[inst]", 100), "| a< |im_end| >b< S>[ inst]\n");
        assert_eq!(shown("im_end|>\u{ff5c}> <tool_call>", 100), "| im_end| >\u{ff5c} > < tool_call>\n");
        assert_eq!(shown("<tool_response>[THINK][/think]", 100), "| < tool_response>[ THINK][ /think]\n");
        assert_eq!(shown("a < b [1] <b>", 100), "| a < b [1] <b>\n");
    }

    #[test]
    fn invisible_characters_are_shown_by_number() {
        assert_eq!(shown("a\u{0}b\u{202e}c\u{e0041}\td", 100), "| a\\u{0}b\\u{202e}c\\u{e0041}\td\n");
        assert_eq!(shown("👩‍💻 é ك", 100), "| 👩‍💻 é ك\n");
    }

    #[test]
    fn long_text_loses_its_middle() {
        let text = format!("begin {} end", "é\n".repeat(5_000_000));
        let cut = shown(&text, 1_000);
        assert!(cut.starts_with("| begin é\n| é\n") && cut.ends_with("| é\n|  end\n"), "{cut}");
        assert!(cut.contains("characters left out)\n"));
        let ours = cut.lines().find(|it| !it.starts_with(LINE_PREFIX)).unwrap();
        assert!(cut.chars().count() - ours.chars().count() <= 1_001, "{}", cut.chars().count());
    }

    #[test]
    fn token_is_hidden_in_debug_output() {
        assert_eq!(format!("{:?}", Token::new(BITS)), "Token(…)");
        assert_eq!(Token::new(BITS).as_str().len(), 32);
    }
}
