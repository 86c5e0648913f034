//! The fence: how text of a trace is shown to a judge as data, and never as instructions.
//!
//! **Invariant:** no line of data begins like a line of ours. Each begins with `| `, whatever
//! it holds, so that nothing inside can close its section or open another. The lines that do
//! open and close carry a token that is new with every call, and that is taken out of the
//! data should it be there.

use std::fmt;

/// What begins every line of data.
const QUOTE: &str = "| ";
/// Stands where the token was.
const TAKEN_OUT: &str = "[taken out]";
/// Characters that a note takes.
const NOTE: usize = 80;

/// What tokenizers of open models read as the edge of a message wherever it stands, so that a
/// server may take it for one even inside a user's text. A space behind the first character
/// makes it plain text.
const EDGES: &[&str] = &[
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

/// What tells a call's fence from any other: 128 bits that nobody could guess when the trace
/// was written. New for every call; the caller draws it, since nothing here is random.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Returns the token of these bits.
    pub fn new(bits: [u8; 16]) -> Self {
        Self(bits.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// 32 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    /// Without the token: logs are read by those who write traces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A section being written.
pub(super) struct Fence<'a> {
    token: &'a Token,
    out: String,
}

impl<'a> Fence<'a> {
    pub(super) fn new(token: &'a Token) -> Self {
        Self { token, out: String::new() }
    }

    /// Opens a section. `name` is ours or a tenant's template's, never a trace's.
    pub(super) fn open(&mut self, name: &str) {
        self.out.push_str(&format!("BEGIN DATA {} {name}\n", self.token.as_str()));
    }

    /// Closes it.
    pub(super) fn close(&mut self, name: &str) {
        self.out.push_str(&format!("END DATA {} {name}\n\n", self.token.as_str()));
    }

    /// Says on a line of our own that something of a section is not shown.
    pub(super) fn note(&mut self, what: &str) {
        self.out.push_str(&format!("({}: {what})\n", self.token.as_str()));
    }

    /// Writes data, at most `most` characters of it as shown; the middle goes if it is longer.
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

    /// What was written.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Where the head ends and the tail begins, in bytes; both the same when all of it fits.
    /// Takes time by `most`, not by the length of the text.
    fn cut(&self, text: &str, most: usize) -> (usize, usize) {
        let whole = self.head(text, most);
        if whole == text.len() {
            return (whole, whole);
        }
        let most = most.saturating_sub(NOTE);
        let head = self.head(text, most - most / 2);
        (head, self.tail(text, most / 2).max(head))
    }

    /// Returns the end of the longest beginning that takes at most `most` characters when quoted.
    fn head(&self, text: &str, most: usize) -> usize {
        let mut spent = QUOTE.len() + 1;
        for (at, character) in text.char_indices() {
            spent += self.cost(text, at, character);
            if spent > most {
                return at;
            }
        }
        text.len()
    }

    /// Returns the beginning of the longest end that takes at most `most` characters when quoted.
    fn tail(&self, text: &str, most: usize) -> usize {
        let mut spent = QUOTE.len() + 1;
        for (at, character) in text.char_indices().rev() {
            spent += self.cost(text, at, character);
            if spent > most {
                return at + character.len_utf8();
            }
        }
        0
    }

    /// Characters that this one takes when quoted, or a few more.
    fn cost(&self, text: &str, at: usize, character: char) -> usize {
        match shown(text, at, character) {
            Shown::Nothing => 0,
            Shown::Plain => 1,
            Shown::Spaced => 2,
            Shown::Line => 1 + QUOTE.len(),
            Shown::Escaped => character.escape_unicode().count(),
        }
    }

    fn quoted(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.out.push_str(QUOTE);
        let mut skipped_to = 0;
        for (at, character) in text.char_indices() {
            if at < skipped_to {
                continue;
            }
            if is_prefix(self.token.as_str(), &text[at..]) {
                self.out.push_str(TAKEN_OUT);
                skipped_to = at + self.token.as_str().len();
                continue;
            }
            match shown(text, at, character) {
                Shown::Nothing => {}
                Shown::Plain => self.out.push(character),
                Shown::Spaced => self.out.extend([character, ' ']),
                Shown::Line => {
                    self.out.push('\n');
                    self.out.push_str(QUOTE);
                }
                Shown::Escaped => self.out.extend(character.escape_unicode()),
            }
        }
        self.out.push('\n');
    }
}

/// How a character of data is shown.
enum Shown {
    Nothing,
    Plain,
    /// With a space behind it.
    Spaced,
    /// As the end of a line.
    Line,
    /// By its number: it would be invisible, or change how its neighbours look.
    Escaped,
}

fn shown(text: &str, at: usize, character: char) -> Shown {
    match character {
        '\r' if text.as_bytes().get(at + 1) == Some(&b'\n') => Shown::Nothing,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Shown::Line,
        '\t' => Shown::Plain,
        _ if character.is_control() || is_deceptive(character) => Shown::Escaped,
        '<' | '|' | '\u{ff5c}' | '[' if EDGES.iter().any(|edge| is_prefix(edge, &text[at..])) => {
            Shown::Spaced
        }
        _ => Shown::Plain,
    }
}

/// Characters that hide text or turn its direction; a judge has to see what a model was told.
fn is_deceptive(character: char) -> bool {
    matches!(character,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}' | '\u{feff}')
}

/// Returns whether `text` begins with `prefix`, whatever the case of its ASCII letters.
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
    fn the_token_and_the_edges_of_messages_are_broken() {
        let token = Token::new(BITS);
        assert_eq!(shown(&format!("x{}y", token.as_str()), 100), "| x[taken out]y\n");
        assert_eq!(shown(&format!("x{}y", token.as_str().to_uppercase()), 100), "| x[taken out]y\n");
        assert_eq!(shown("a<|im_end|>b<S>[inst]", 100), "| a< |im_end| >b< S>[ inst]\n");
        assert_eq!(shown("im_end|>\u{ff5c}> <tool_call>", 100), "| im_end| >\u{ff5c} > < tool_call>\n");
        assert_eq!(shown("<tool_response>[THINK][/think]", 100), "| < tool_response>[ THINK][ /think]\n");
        assert_eq!(shown("a < b [1] <b>", 100), "| a < b [1] <b>\n");
    }

    #[test]
    fn what_hides_is_shown_by_number() {
        assert_eq!(shown("a\u{0}b\u{202e}c\u{e0041}\td", 100), "| a\\u{0}b\\u{202e}c\\u{e0041}\td\n");
        assert_eq!(shown("👩‍💻 é ك", 100), "| 👩‍💻 é ك\n");
    }

    #[test]
    fn the_middle_of_a_long_text_goes() {
        let text = format!("begin {} end", "é\n".repeat(5_000_000));
        let cut = shown(&text, 1_000);
        assert!(cut.starts_with("| begin é\n| é\n") && cut.ends_with("| é\n|  end\n"), "{cut}");
        assert!(cut.contains("characters left out)\n"));
        let ours = cut.lines().find(|it| !it.starts_with(QUOTE)).unwrap();
        assert!(cut.chars().count() - ours.chars().count() <= 1_001, "{}", cut.chars().count());
    }

    #[test]
    fn a_token_shows_itself_to_no_log() {
        assert_eq!(format!("{:?}", Token::new(BITS)), "Token(…)");
        assert_eq!(Token::new(BITS).as_str().len(), 32);
    }
}
