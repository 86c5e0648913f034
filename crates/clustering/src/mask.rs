//! Replaces the variable parts of a message by wildcards.

mod chunk;

use chunk::ChunkClass;
pub(crate) use chunk::REASON_PHRASES;

/// The text that stands for a variable part of a message, in stored and in displayed templates.
pub const TEMPLATE_WILDCARD: &str = "<*>";

/// Number of bytes of a message that are masked; a template needs no more.
const MAX_MASKED_BYTES: usize = 2048;

/// Maximum length of a quoted text that is recognized.
const MAX_QUOTED_BYTES: usize = 600;

/// Maximum length of a word in quotes that is not masked. It stays readable until another value is seen.
const MAX_QUOTED_NAME_BYTES: usize = 40;

/// Texts after which a model's output or another free text follows, in lower case, up to the end of the line or one
/// of [`FREE_TEXT_ENDS`].
const FREE_TEXT_STARTS: &[&str] = &[
    "output: ",
    "outputs: ",
    "completion ",
    "completion: ",
    "response: ",
    "input_value=",
    "got: ",
    "received: ",
    "value: ",
    "arguments: ",
    "content: ",
];

/// Beginnings of the request lines that logs quote.
const HTTP_METHODS: &[&str] = &["GET ", "POST ", "PUT ", "PATCH ", "DELETE ", "HEAD ", "OPTIONS "];

/// Texts that end a free text.
const FREE_TEXT_ENDS: &[&str] =
    &[", input_type=", ". Got: ", "\nFor troubleshooting", "\nError message:", " Error message:"];

/// Returns the message with [`TEMPLATE_WILDCARD`] in place of numbers, identifiers, paths, addresses, structured values and
/// quoted texts. Space is collapsed.
pub fn mask(message: &str) -> String {
    let is_cut = message.len() > MAX_MASKED_BYTES;
    let text = &message[..message.floor_char_boundary(MAX_MASKED_BYTES)];
    let mut masker = Masker { text, at: 0, masked: String::with_capacity(text.len()), unbalanced: false };
    masker.run();
    let mut masked = masker.masked;
    if is_cut {
        masked.push(' ');
        masked.push_str(TEMPLATE_WILDCARD);
    }
    masked.truncate(masked.trim_end().len());
    masked
}

struct Masker<'a> {
    text: &'a str,
    at: usize,
    masked: String,
    /// Whether an object without an end was seen. The ends of further objects are not searched, because that would
    /// take quadratic time.
    unbalanced: bool,
}

impl Masker<'_> {
    fn run(&mut self) {
        while let Some(next) = self.text[self.at..].chars().next() {
            let is_boundary = !self.masked.ends_with(|it: char| it.is_alphanumeric() || it == '_');
            if next == '\n' && self.line_of_one_word() {
                continue;
            }
            if next.is_whitespace() {
                self.push_space();
                self.at += next.len_utf8();
                continue;
            }
            if is_boundary
                && (self.free_text() || self.wildcard_itself() || self.quoted(next) || self.structured(next))
            {
                continue;
            }
            if is_separator(next) {
                self.masked.push(next);
                self.at += next.len_utf8();
            } else {
                self.chunk();
            }
        }
    }

    fn push_space(&mut self) {
        if !self.masked.ends_with(' ') && !self.masked.is_empty() {
            self.masked.push(' ');
        }
    }

    /// Appends a wildcard. A list of variable parts becomes one.
    fn push_wildcard(&mut self) {
        let kept = self.masked.trim_end_matches([' ', ',', '/', ':', '-', 'x', '+', '.', ';', 'T']);
        let separator = self.masked.len() - kept.len();
        if kept.ends_with(TEMPLATE_WILDCARD) && separator <= 2 {
            self.masked.truncate(kept.len());
            return;
        }
        self.masked.push_str(TEMPLATE_WILDCARD);
    }

    /// Masks a line of one word between other lines: the name of a field in a list of validation errors.
    fn line_of_one_word(&mut self) -> bool {
        let rest = &self.text[self.at + 1..];
        let Some((line, _)) = rest.split_once('\n') else { return false };
        let is_name =
            !line.is_empty() && line.chars().all(|it| it.is_alphanumeric() || it == '_' || it == '.');
        if is_name {
            self.push_space();
            self.push_wildcard();
            self.at += 1 + line.len();
        }
        is_name
    }

    fn wildcard_itself(&mut self) -> bool {
        let is_wildcard = self.text[self.at..].starts_with(TEMPLATE_WILDCARD);
        if is_wildcard {
            self.push_wildcard();
            self.at += TEMPLATE_WILDCARD.len();
        }
        is_wildcard
    }

    /// Masks a free text that a known text announces.
    fn free_text(&mut self) -> bool {
        if !self.masked.ends_with([' ', '=']) {
            return false;
        }
        let start = self.masked.ceil_char_boundary(self.masked.len().saturating_sub(12));
        let before = self.masked[start..].to_ascii_lowercase();
        if !FREE_TEXT_STARTS.iter().any(|it| before.ends_with(it)) {
            return false;
        }
        let rest = &self.text[self.at..];
        let ends = FREE_TEXT_ENDS.iter().filter_map(|it| rest.find(it)).min();
        self.at += ends.unwrap_or(rest.len());
        self.push_wildcard();
        true
    }

    /// Masks a quoted text. A quoted name stays: it may be the same in all messages.
    fn quoted(&mut self, open: char) -> bool {
        let close = match open {
            '"' | '\'' | '`' => open,
            '“' => '”',
            '‘' => '’',
            '«' => '»',
            _ => return false,
        };
        let start = self.at + open.len_utf8();
        let end = self.text.floor_char_boundary(start + MAX_QUOTED_BYTES);
        let inside = &self.text[start..end];
        let closes = |at: usize| {
            let after = inside[at + close.len_utf8()..].chars().next();
            !after.is_some_and(char::is_alphanumeric)
        };
        let Some(length) = inside.match_indices(close).map(|(at, _)| at).find(|at| closes(*at)) else {
            return false;
        };
        let content = &inside[..length];
        let is_name = content.len() <= MAX_QUOTED_NAME_BYTES
            && content.contains(char::is_alphabetic)
            && content.chars().all(|it| it.is_alphanumeric() || it == '_' || it == '-' || it == '.')
            && chunk::classify(content) == ChunkClass::Constant;
        let is_punctuation = content.len() <= 3 && !content.contains(char::is_alphanumeric);
        let is_whole = self.at == 0 && start + length + 4 > self.text.len();
        if is_whole || is_punctuation {
            return false;
        }
        // `"GET /v1/models HTTP/1.1"` identifies the request.
        if HTTP_METHODS.iter().any(|it| content.starts_with(it)) {
            return false;
        }
        let is_argument = self.masked.ends_with('(') && content.contains(' ');
        self.masked.push(open);
        if is_name {
            self.masked.push_str(content);
        } else if is_argument {
            // The message of an exception, as Python represents it: `ReadTimeout('timed out')`.
            self.masked.push_str(&mask(content));
        } else {
            self.masked.push_str(TEMPLATE_WILDCARD);
        }
        self.masked.push(close);
        self.at = start + length + close.len_utf8();
        true
    }

    /// Masks an object or a list of values.
    fn structured(&mut self, open: char) -> bool {
        if self.unbalanced || !matches!(open, '{' | '[') {
            return false;
        }
        let rest = &self.text[self.at..];
        let inner = rest[1..].trim_start();
        let looks_like_value = match open {
            '{' => {
                inner.starts_with(['"', '\'', '{', '['])
                    || rest.get(..80.min(rest.len())).is_some_and(|it| it.contains(':') || it.contains('='))
            }
            _ => {
                inner.starts_with(['"', '\'', '{', '[']) || inner.starts_with(|it: char| it.is_ascii_digit())
            }
        };
        if !looks_like_value {
            return false;
        }
        let mut depth = 0_usize;
        let end = rest.bytes().position(|it| {
            match it {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        match end {
            Some(end) => self.at += end + 1,
            None if open == '{' => self.at = self.text.len(),
            None => {
                self.unbalanced = true;
                return false;
            }
        }
        self.push_wildcard();
        true
    }

    /// Appends the text up to the next separator, or a wildcard.
    fn chunk(&mut self) {
        let rest = &self.text[self.at..];
        if let Some(length) = chunk::address_length(rest) {
            self.push_wildcard();
            self.at += length;
            return;
        }
        let mut length = rest.find(|it: char| it.is_whitespace() || is_separator(it)).unwrap_or(rest.len());
        // The thousands of `1,234`.
        while rest[..length].ends_with(|it: char| it.is_ascii_digit())
            && rest[length..].starts_with(',')
            && rest[length + 1..].starts_with(|it: char| it.is_ascii_digit())
        {
            let more =
                rest[length + 1..].find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len() - length - 1);
            length += 1 + more;
        }
        let chunk = &rest[..length.max(rest.chars().next().map_or(1, char::len_utf8))];
        self.at += chunk.len();
        let body = chunk.trim_end_matches(['.', ':', '!', '?', '…']);
        if chunk::is_status(body, &self.masked, &self.text[self.at..]) {
            self.masked.push_str(chunk);
            return;
        }
        if chunk::is_date_word(body, &self.masked, &self.text[self.at..]) {
            self.push_wildcard();
        } else {
            self.classified(body);
        }
        self.masked.push_str(&chunk[body.len()..]);
        if chunk.len() == body.len()
            && self.masked.ends_with(TEMPLATE_WILDCARD)
            && body.ends_with(|it: char| it.is_ascii_digit())
        {
            self.at += chunk::unit_length(&self.text[self.at..]);
        }
    }

    fn classified(&mut self, mut body: &str) {
        loop {
            match chunk::classify(body) {
                ChunkClass::Constant => {
                    self.masked.push_str(body);
                    return;
                }
                ChunkClass::Variable => {
                    self.push_wildcard();
                    return;
                }
                ChunkClass::Key(length) => {
                    self.masked.push_str(&body[..length]);
                    body = &body[length..];
                }
            }
        }
    }
}

/// Returns whether a character ends a chunk.
fn is_separator(it: char) -> bool {
    matches!(
        it,
        '"' | '\''
            | '`'
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '<'
            | '>'
            | ','
            | ';'
            | '='
            | '|'
            | '“'
            | '”'
            | '‘'
            | '’'
            | '«'
            | '»'
    )
}

#[cfg(test)]
mod tests;
