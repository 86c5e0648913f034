//! Finds the message in an object: JSON, a Python dictionary, or an object as a JavaScript runtime prints it.
//!
//! The parser is lenient: providers' messages may be cut off, have single quotes, or contain values that are valid
//! in none of these notations.

/// Maximum depth of objects that are examined.
const MAX_OBJECT_DEPTH: usize = 16;

/// Maximum number of positions at which an object is searched.
const MAX_OBJECT_STARTS: usize = 4;

/// Maximum length of a text before an object that counts as a wrapping.
const MAX_WRAPPING_BYTES: usize = 240;

/// Words that announce an object: a text before an object that only announces it contains at least one of
/// them.
const WRAPPING_WORDS: &[&str] =
    &["error", "status", "exception", "http", "body", "code", "content:", "response", "failed with"];

/// Returns the message of the first object in a text, if the text around it is a wrapping.
pub fn find_message(text: &str) -> Option<String> {
    let starts = text.match_indices('{').map(|(at, _)| at).take(MAX_OBJECT_STARTS);
    for brace in starts {
        if brace > MAX_WRAPPING_BYTES {
            return None;
        }
        let mut parser =
            ObjectParser { text, bytes: text.as_bytes(), at: brace, best: None, is_error: false, code: None };
        parser.value(0, NO_RANK);
        let Some(best) = parser.best else { continue };
        let prefix = text[..brace].trim_end_matches(['[', ' ', '\n']);
        if !is_wrapping(prefix, parser.is_error) {
            return None;
        }
        let message = unescape(&text[best.start..best.end]);
        // `Required` in a list of issues needs its code.
        let code = parser.code.filter(|_| text.starts_with('[')).map(|(start, end)| &text[start..end]);
        return match code.filter(|it| !super::is_substantive(&message) && is_name(it)) {
            Some(code) if !message.contains(code) => Some(format!("{code}: {message}")),
            _ => Some(message),
        };
    }
    None
}

fn is_name(text: &str) -> bool {
    text.len() <= 64 && text.bytes().any(|it| it.is_ascii_lowercase()) && text.contains('_')
}

fn is_wrapping(prefix: &str, is_error: bool) -> bool {
    let lower = prefix.to_ascii_lowercase();
    let has_word = || WRAPPING_WORDS.iter().any(|it| lower.contains(it));
    let is_status = || {
        prefix.split_whitespace().all(|it| {
            it.bytes().all(|it| it.is_ascii_digit() || it.is_ascii_uppercase() || b"_.:-".contains(&it))
        })
    };
    if prefix.is_empty() { is_error } else { has_word() || is_status() }
}

/// A string in an object that may be the message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MessageCandidate {
    rank: u8,
    depth: usize,
    start: usize,
    end: usize,
}

const NO_RANK: u8 = u8::MAX;

/// Ranks the keys by how likely their value is the message: the lowest rank is the most likely.
fn rank_of(key: &str) -> u8 {
    match key {
        // A gateway repeats the provider's response here, and its own message says nothing.
        "raw" => 0,
        "message" | "Message" | "errorMessage" | "error_message" => 1,
        "msg" | "detail" | "error_description" => 2,
        "error" | "errors" | "details" => 3,
        "reason" | "description" | "title" => 4,
        _ => NO_RANK,
    }
}

struct ObjectParser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    best: Option<MessageCandidate>,
    is_error: bool,
    code: Option<(usize, usize)>,
}

impl ObjectParser<'_> {
    fn value(&mut self, depth: usize, rank: u8) {
        self.skip_space();
        match self.bytes.get(self.at) {
            Some(b'{') if depth < MAX_OBJECT_DEPTH => self.object(depth),
            Some(b'[' | b'(') if depth < MAX_OBJECT_DEPTH => self.array(depth, rank),
            Some(b'"' | b'\'' | b'`') => {
                let (start, end) = self.string();
                self.offer(MessageCandidate { rank, depth, start, end });
            }
            Some(_) => self.scalar(),
            None => {}
        }
    }

    fn object(&mut self, depth: usize) {
        self.at += 1;
        loop {
            self.skip_space();
            match self.bytes.get(self.at) {
                None => return,
                Some(b'}') => {
                    self.at += 1;
                    return;
                }
                Some(b',') => {
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            let (start, end) = self.key();
            self.skip_space();
            if self.bytes.get(self.at) != Some(&b':') {
                // Not an object; continue after this byte, so that the loop ends.
                self.at = (self.at + 1).min(self.bytes.len());
                continue;
            }
            self.at += 1;
            let key = &self.text[start..end];
            self.is_error |= matches!(
                key,
                "error"
                    | "errors"
                    | "code"
                    | "type"
                    | "status"
                    | "detail"
                    | "request_id"
                    | "object"
                    | "statusCode"
            );
            self.skip_space();
            if key == "code" && self.code.is_none() && matches!(self.bytes.get(self.at), Some(b'"' | b'\'')) {
                self.code = Some(self.string());
                continue;
            }
            self.value(depth + 1, rank_of(key));
        }
    }

    fn array(&mut self, depth: usize, rank: u8) {
        self.at += 1;
        loop {
            self.skip_space();
            match self.bytes.get(self.at) {
                None => return,
                Some(b']' | b')') => {
                    self.at += 1;
                    return;
                }
                Some(b',' | b'}' | b':') => self.at += 1,
                _ => self.value(depth + 1, rank),
            }
        }
    }

    /// Returns the range of a key, quoted or not.
    fn key(&mut self) -> (usize, usize) {
        if matches!(self.bytes.get(self.at), Some(b'"' | b'\'')) {
            return self.string();
        }
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|it| it.is_ascii_alphanumeric() || b"_$@".contains(it)) {
            self.at += 1;
        }
        (start, self.at)
    }

    /// Returns the range of the contents of a string.
    fn string(&mut self) -> (usize, usize) {
        let quote = self.bytes[self.at];
        self.at += 1;
        let start = self.at;
        while let Some(&it) = self.bytes.get(self.at) {
            if it == quote {
                self.at += 1;
                return (start, self.at - 1);
            }
            self.at += if it == b'\\' { 2 } else { 1 };
        }
        self.at = self.bytes.len();
        (start, self.at)
    }

    /// Skips a number, a name, or a call such as `datetime(2026, 1, 2)`.
    fn scalar(&mut self) {
        let start = self.at;
        let mut depth = 0_usize;
        while let Some(&it) = self.bytes.get(self.at) {
            match it {
                b'(' | b'<' => depth += 1,
                b')' | b'>' if depth > 0 => depth -= 1,
                b',' | b'}' | b']' | b')' if depth == 0 => break,
                // A byte string.
                b'"' | b'\'' if self.at - start <= 1 => return,
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.at.max(start + 1).min(self.bytes.len());
    }

    fn skip_space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn offer(&mut self, candidate: MessageCandidate) {
        let text = self.text[candidate.start..candidate.end].trim();
        let is_raw_name = candidate.rank == 0 && !text.contains(' ');
        if candidate.rank == NO_RANK || text.is_empty() || is_raw_name {
            return;
        }
        if self.best.is_none_or(|best| candidate < best) {
            self.best = Some(candidate);
        }
    }
}

/// Resolves the escapes that JSON and Python share.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(it) = chars.next() {
        if it != '\\' {
            plain.push(it);
            continue;
        }
        match chars.next() {
            Some('n' | 'r') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('u') => {
                let code = chars.as_str().get(..4).and_then(|it| u32::from_str_radix(it, 16).ok());
                match code {
                    Some(code) => {
                        plain.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                        chars.nth(3);
                    }
                    None => plain.push('u'),
                }
            }
            Some(it) => plain.push(it),
            None => {}
        }
    }
    plain
}
