//! A cursor over a text, with the primitives of the parser.

use super::{Fault, chars};

/// A position in a text.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    namespaces: bool,
}

/// A reference, `&…;`.
pub(super) enum Reference<'a> {
    /// A character reference.
    Char(char),
    /// An entity reference.
    Entity(&'a str),
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, namespaces: bool) -> Self {
        Self { text, at: 0, namespaces }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Advances by this number of bytes.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    pub(super) fn eat(&mut self, part: &str) -> bool {
        let here = self.rest().starts_with(part);
        if here {
            self.at += part.len();
        }
        here
    }

    pub(super) fn need(&mut self, part: &str, why: &'static str) -> Result<(), Fault> {
        if self.eat(part) { Ok(()) } else { Err((self.at, why)) }
    }

    /// Skips whitespace; returns whether there was any.
    pub(super) fn spaces(&mut self) -> bool {
        let rest = self.rest();
        let after = rest.trim_start_matches(chars::is_space);
        self.at += rest.len() - after.len();
        rest.len() != after.len()
    }

    pub(super) fn need_spaces(&mut self) -> Result<(), Fault> {
        if self.spaces() { Ok(()) } else { Err((self.at, "white space is missing")) }
    }

    pub(super) fn name(&mut self) -> Result<&'a str, Fault> {
        if !self.rest().starts_with(chars::begins_name) {
            return Err((self.at, "a name is missing, or starts with an invalid character"));
        }
        Ok(self.token())
    }

    /// Reads characters of a name; the result may be empty.
    pub(super) fn token(&mut self) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|it| !chars::in_name(it)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Reads up to and including `end`; returns the text before it.
    pub(super) fn until(&mut self, end: &str, why: &'static str) -> Result<&'a str, Fault> {
        let rest = self.rest();
        let length = rest.find(end).ok_or((self.at, why))?;
        self.at += length + end.len();
        Ok(&rest[..length])
    }

    /// Reads a text in single or double quotation marks.
    pub(super) fn quoted(&mut self) -> Result<&'a str, Fault> {
        let quote = match self.peek() {
            Some(b'"') => "\"",
            Some(b'\'') => "'",
            _ => return Err((self.at, "a quotation mark is missing")),
        };
        self.at += 1;
        self.until(quote, "a quoted value that is not closed")
    }

    /// Reads `name="value"` of an XML declaration.
    pub(super) fn pseudo(&mut self, name: &str) -> Result<Option<&'a str>, Fault> {
        if !self.eat(name) {
            return Ok(None);
        }
        self.equals()?;
        self.quoted().map(Some)
    }

    pub(super) fn equals(&mut self) -> Result<(), Fault> {
        self.spaces();
        self.need("=", "an equals sign is missing")?;
        self.spaces();
        Ok(())
    }

    /// Skips a comment; returns whether there was one.
    pub(super) fn comment(&mut self) -> Result<bool, Fault> {
        if !self.eat("<!--") {
            return Ok(false);
        }
        self.until("--", "a comment that is not closed")?;
        self.need(">", "two hyphens within a comment")?;
        Ok(true)
    }

    /// Skips a processing instruction; returns whether there was one.
    pub(super) fn instruction(&mut self) -> Result<bool, Fault> {
        let at = self.at;
        if !self.eat("<?") {
            return Ok(false);
        }
        let target = self.name()?;
        if target.eq_ignore_ascii_case("xml") {
            return Err((at, "an XML declaration that is not at the very beginning"));
        }
        if self.namespaces && target.contains(':') {
            return Err((at, "a processing instruction with a colon in its name"));
        }
        if self.eat("?>") {
            return Ok(true);
        }
        self.need_spaces()?;
        self.until("?>", "a processing instruction that is not closed")?;
        Ok(true)
    }

    /// Reads a reference after its ampersand, including the semicolon.
    pub(super) fn reference(&mut self) -> Result<Reference<'a>, Fault> {
        let at = self.at;
        self.at += 1;
        if !self.eat("#") {
            let name = self.name().map_err(|_| (at, "an ampersand that is not written as &amp;"))?;
            self.need(";", "a reference without its semicolon")?;
            return Ok(Reference::Entity(name));
        }
        let radix = if self.eat("x") { 16 } else { 10 };
        let digits = self.until(";", "a reference without its semicolon")?;
        let wrong = (at, "a reference to a character that XML does not allow");
        if digits.is_empty() || !digits.chars().all(|it| it.is_digit(radix)) {
            return Err(wrong);
        }
        let number = u32::from_str_radix(digits.trim_start_matches('0'), radix).ok();
        number.and_then(char::from_u32).filter(|it| chars::is_char(*it)).map(Reference::Char).ok_or(wrong)
    }
}
