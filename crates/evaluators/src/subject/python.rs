//! Values in Python notation: some SDKs send `str(value)` instead of JSON.

use serde_json::{Map, Number, Value};

/// Maximum nesting of a value.
const MAX_DEPTH: usize = 64;

/// Parses the list or object in a text in Python notation; returns none for other texts, such as the name of
/// a class.
pub(super) fn read(text: &str) -> Option<Value> {
    let mut reader = PythonReader { rest: text.trim() };
    let value = reader.value(0)?;
    (reader.rest.trim().is_empty() && (value.is_object() || value.is_array())).then_some(value)
}

struct PythonReader<'a> {
    rest: &'a str,
}

impl PythonReader<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.space();
        match self.rest.chars().next()? {
            '{' => self.object(depth),
            '[' => self.list(']', depth),
            '(' => self.list(')', depth),
            '\'' | '"' => self.text().map(Value::String),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.take('{');
        let mut members = Map::new();
        loop {
            if self.take('}') {
                return Some(Value::Object(members));
            }
            self.space();
            let key = self.text()?;
            if !self.take(':') {
                return None;
            }
            members.insert(key, self.value(depth + 1)?);
            if !self.take(',') {
                return self.take('}').then_some(Value::Object(members));
            }
        }
    }

    fn list(&mut self, end: char, depth: usize) -> Option<Value> {
        self.rest = &self.rest[1..];
        let mut items = Vec::new();
        loop {
            if self.take(end) {
                return Some(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            if !self.take(',') {
                return self.take(end).then_some(Value::Array(items));
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        let quote = self.rest.chars().next().filter(|it| matches!(it, '\'' | '"'))?;
        let mut out = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => match characters.next()?.1 {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'r' => out.push('\r'),
                    // A code of a fixed number of digits follows. The parser does not support it and returns
                    // no value.
                    'x' | 'u' | 'U' | 'N' => return None,
                    other => out.push(other),
                },
                it if it == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Some(out);
                }
                it => out.push(it),
            }
        }
        None
    }

    fn word(&mut self) -> Option<Value> {
        let end = self.rest.find([',', ']', '}', ')', ':']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word.trim() {
            "None" | "null" => Some(Value::Null),
            "True" | "true" => Some(Value::Bool(true)),
            "False" | "false" => Some(Value::Bool(false)),
            number => match number.parse::<i64>() {
                Ok(whole) => Some(whole.into()),
                Err(_) if number.starts_with(|it: char| it == '-' || it.is_ascii_digit()) => {
                    Number::from_f64(number.parse().ok()?).map(Value::Number)
                }
                Err(_) => None,
            },
        }
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, character: char) -> bool {
        self.space();
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn python_literals_are_parsed_as_json() {
        assert_eq!(
            read(r#"[{'a': 1, 'b': None, "c": "it's", 'd': (True, -1.5)}, 'x\'y\n']"#),
            Some(json!([{"a": 1, "b": null, "c": "it's", "d": [true, -1.5]}, "x'y\n"]))
        );
        assert_eq!(read("{}"), Some(json!({})));
    }

    #[test]
    fn other_texts_are_not_python() {
        for text in ["", "[<Doc 1>]", "[1", "{'a' 1}", "{1: 2}", "['\\x41']", "'a'", "[1] [2]", "[nan]"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&"[".repeat(1_000_000)), None);
    }
}
