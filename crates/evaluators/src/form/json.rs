//! JSON (RFC 8259).

use serde::de::IgnoredAny;
use serde_json::Value;

/// The reason why a text was not parsed as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonFault {
    /// The text is not well-formed JSON.
    Form(String),
    /// The text is well-formed but nests too deep or contains a number that does not fit into a double.
    Reach(String),
}

/// Checks that a text is well-formed JSON of any nesting.
///
/// # Errors
/// Returns the reason with its position; it repeats nothing of the text.
pub(crate) fn well_formed(text: &str) -> Result<(), String> {
    // The library parses ignored values without recursion and without limits on numbers.
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|it| it.to_string())
}

/// Parses a JSON text.
///
/// # Errors
/// Fails when the text is not well-formed, or exceeds the limits of the parser.
pub(crate) fn value(text: &str) -> Result<Value, JsonFault> {
    serde_json::from_str(text).map_err(|error| match well_formed(text) {
        Err(why) => JsonFault::Form(why),
        Ok(()) => JsonFault::Reach(format!("it can't be compared with a schema: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_json_is_accepted() {
        for text in ["0", "-0.0e+1", "\"\\ud800\"", "[]", "{\"a\":{}}", " null ", "1e999999", "\"\\u0000\""] {
            assert_eq!(well_formed(text), Ok(()), "{text}");
        }
        for text in [
            "",
            " ",
            "01",
            "1.",
            ".5",
            "+1",
            "'a'",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "NaN",
            "Infinity",
            "// c\n1",
            "\"a\nb\"",
            "\"\\x41\"",
            "[1] 2",
            "\u{feff}1",
            "\u{0}",
            "1\u{0}",
            "\"\u{0}\"",
            "nul",
            "[",
            "\"",
            "{\"a\"}",
        ] {
            assert!(well_formed(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn deep_json_is_well_formed_but_has_no_value() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(well_formed(&deep), Ok(()));
        assert!(matches!(value(&deep), Err(JsonFault::Reach(_))));
        assert!(matches!(value(&deep[1..]), Err(JsonFault::Form(_))));
    }

    #[test]
    fn numbers_and_texts_have_no_members() {
        assert!(matches!(value("1e999999"), Err(JsonFault::Reach(_))));
        assert!(matches!(value("\"\\ud800\""), Err(JsonFault::Reach(_))));
        assert_eq!(value("123456789012345678901234567890"), Ok(serde_json::json!(1.2345678901234568e29)));
    }
}
