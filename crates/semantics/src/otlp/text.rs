//! Normalizes text for storage: without NUL characters, and JSON readable rather than escaped.

pub(super) use super::answer::{is_empty_answer, plain_answer, plain_parts};

/// Replaces NUL, which PostgreSQL rejects, by the replacement character.
pub(super) fn clean(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// Writes a JSON string literal and replaces NUL characters.
pub(super) fn push_json_str(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| NEEDS_ESCAPE[usize::from(byte)]) {
        let byte = rest.as_bytes()[at];
        out.push_str(&rest[..at]);
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0 => out.push('\u{fffd}'),
            control => {
                out.push_str(if control < 0x10 { "\\u000" } else { "\\u001" });
                out.push(char::from(b"0123456789abcdef"[usize::from(control & 0xf)]));
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// For each byte: whether a JSON string literal must escape it.
const NEEDS_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table
};

/// Replaces `\uXXXX` in JSON by the characters, so that people and search can read them. Escapes that
/// JSON requires, and halves of a surrogate pair, stay. Text that is not JSON stays unchanged.
pub(super) fn readable(json: String) -> String {
    if !json.contains("\\u") || !matches!(json.trim_start().as_bytes().first(), Some(b'{' | b'[' | b'"')) {
        return json;
    }
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len());
    let mut rest = 0;
    let mut at = 0;
    while at + 1 < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match escaped_char(bytes, at) {
            Some((character, len)) => {
                out.push_str(&json[rest..at]);
                out.push(character);
                at += len;
                rest = at;
            }
            // Skips the escaped character too, so that `\\u00fc` is not decoded.
            None => at += 2,
        }
    }
    out.push_str(&json[rest..]);
    out
}

/// Returns the character of the escape at this position and its length, if it may stand unescaped.
fn escaped_char(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    let unit = unit(bytes, at)?;
    let (code, len) = match unit {
        0 => (0xfffd, 6),
        0xd800..=0xdbff => {
            let low = unit_in(self::unit(bytes, at + 6)?, 0xdc00..=0xdfff)?;
            (0x1_0000 + ((u32::from(unit) - 0xd800) << 10) + (u32::from(low) - 0xdc00), 12)
        }
        unit => (u32::from(unit), 6),
    };
    let character = char::from_u32(code)?;
    (!character.is_control() && character != '"' && character != '\\').then_some((character, len))
}

fn unit_in(unit: u16, range: std::ops::RangeInclusive<u16>) -> Option<u16> {
    range.contains(&unit).then_some(unit)
}

/// Returns the UTF-16 unit of a `\uXXXX` at this position.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    if !escape.starts_with(b"\\u") {
        return None;
    }
    escape[2..].iter().try_fold(0u16, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some((unit << 4) | digit as u16)
    })
}

/// Decodes a JSON string literal; other text is made [`readable`].
pub(super) fn unquoted(text: String) -> String {
    if text.len() >= 2 && text.starts_with('"') && text.ends_with('"') {
        match serde_json::from_str::<String>(&text) {
            Ok(inner) => clean(inner),
            Err(_) => text,
        }
    } else {
        readable(text)
    }
}

/// Whether a text is a placeholder that some SDKs write for a missing value.
pub(super) fn is_placeholder(text: &str) -> bool {
    matches!(text, "" | "null" | "None" | "undefined")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn unicode_escapes_are_decoded_where_json_allows() {
        let cases = [
            (r#"["Z\u00fcrich"]"#, r#"["Zürich"]"#),
            (r#"["\ud83d\ude00"]"#, r#"["😀"]"#),
            (r#"["\ud83d x"]"#, r#"["\ud83d x"]"#),
            (r#"["\ude00"]"#, r#"["\ude00"]"#),
            (r#"["\\u00fc"]"#, r#"["\\u00fc"]"#),
            (r#"["\u0022\u005c\u000a"]"#, r#"["\u0022\u005c\u000a"]"#),
            (r#"["\u0000"]"#, "[\"\u{fffd}\"]"),
            (r#"["\u00"#, r#"["\u00"#),
            (r#"["\u00zz"]"#, r#"["\u00zz"]"#),
            (r"C:\u00fc", r"C:\u00fc"),
        ];
        for (given, expected) in cases {
            assert_eq!(readable(given.to_owned()), expected);
        }
    }

    #[test]
    fn json_string_literal_is_decoded() {
        for (given, expected) in [
            (r#""Hello \u00fc""#, "Hello ü"),
            (r#""a" and "b""#, r#""a" and "b""#),
            ("plain", "plain"),
            (r#"{"a":"\u00fc"}"#, r#"{"a":"ü"}"#),
            ("\"", "\""),
            (r#""\ud800""#, r#""\ud800""#),
        ] {
            assert_eq!(unquoted(given.to_owned()), expected);
        }
    }

    #[test]
    fn json_string_literals_round_trip() {
        let text = "tab\t quote\" back\\ bell\u{7} é 😀";
        let mut out = String::new();
        push_json_str(&mut out, text);
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }
}
