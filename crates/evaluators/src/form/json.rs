//! JSON (RFC 8259).

use serde::de::IgnoredAny;
use serde_json::Value;

/// Why a text is not read as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Faulty {
    /// It is no JSON.
    Form(String),
    /// It is, but holds what is not read: it nests too deep, or has a number that no double holds.
    Reach(String),
}

/// Whether a text is JSON, however deep it nests.
///
/// # Errors
/// With the reason and its place; nothing of the text is repeated.
pub(crate) fn well_formed(text: &str) -> Result<(), String> {
    // What is ignored is read without recursion and without limits on numbers.
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|it| it.to_string())
}

/// The value of a JSON text.
///
/// # Errors
/// When it is no JSON, or holds what is not read.
pub(crate) fn value(text: &str) -> Result<Value, Faulty> {
    serde_json::from_str(text).map_err(|error| match well_formed(text) {
        Err(why) => Faulty::Form(why),
        Ok(()) => Faulty::Reach(format!("it can't be compared with a schema: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_json() {
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
    fn depth_is_no_matter_for_the_form_but_for_the_value() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(well_formed(&deep), Ok(()));
        assert!(matches!(value(&deep), Err(Faulty::Reach(_))));
        assert!(matches!(value(&deep[1..]), Err(Faulty::Form(_))));
    }

    #[test]
    fn numbers_and_texts_that_nothing_holds_are_out_of_reach() {
        assert!(matches!(value("1e999999"), Err(Faulty::Reach(_))));
        assert!(matches!(value("\"\\ud800\""), Err(Faulty::Reach(_))));
        assert_eq!(value("123456789012345678901234567890"), Ok(serde_json::json!(1.2345678901234568e29)));
    }
}
