//! Regular expressions that tenants write, in linear time.

use regex::{Regex, RegexBuilder};

/// Bytes of an expression.
const LONGEST: usize = 10_000;
/// Bytes that a compiled expression may take.
const SIZE: usize = 1024 * 1024;

/// How an expression is meant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meant {
    /// Small and capital letters are the same.
    pub case_insensitive: bool,
    /// It has to match the whole text, not a part of it.
    pub full_match: bool,
}

/// Compiles an expression.
///
/// # Errors
/// With what is wrong, continuing a sentence that names the option.
pub(crate) fn compile(pattern: &str, meant: Meant) -> Result<Regex, String> {
    if pattern.len() > LONGEST {
        return Err(format!("is longer than {LONGEST} bytes"));
    }
    let build = |pattern: &str| {
        RegexBuilder::new(pattern).case_insensitive(meant.case_insensitive).size_limit(SIZE).build()
    };
    // By itself first: what closes a group that it did not open must not become valid by the wrapping.
    let alone = build(pattern).map_err(|it| why(&it))?;
    if meant.full_match { build(&format!(r"\A(?:{pattern})\z")).map_err(|it| why(&it)) } else { Ok(alone) }
}

fn why(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => {
            "grows too large when it is compiled: repeat less, or use smaller classes (\\w and \\d mean all of \
             Unicode; write [a-z] or (?-u:\\w))"
                .into()
        }
        // The library draws a picture over several lines; its last one says what is wrong.
        _ => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("is not a regular expression in linear time: {last}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(pattern: &str, text: &str) -> bool {
        compile(pattern, Meant { full_match: true, ..Meant::default() }).unwrap().is_match(text)
    }

    #[test]
    fn the_whole_text_means_every_alternative() {
        assert!(full("a|ab", "ab"));
        assert!(!full("a|ab", "abc"));
        assert!(!full("ab", "ab\n"));
        assert!(full("(?s).*", "a\nb"));
        assert!(full("(?m)^a$", "a"));
    }

    #[test]
    fn what_is_no_expression_is_told() {
        let wrong =
            |pattern: &str| compile(pattern, Meant { full_match: true, ..Meant::default() }).unwrap_err();
        assert_eq!(wrong("a)(b"), "is not a regular expression in linear time: unopened group");
        assert!(wrong("(?=a)").contains("look-around"), "{}", wrong("(?=a)"));
        assert!(wrong(r"(a)\1").contains("backreferences"), "{}", wrong(r"(a)\1"));
        assert!(wrong(r"(\w{1,200}){1,200}").contains("too large"));
        assert!(wrong(&"a".repeat(LONGEST + 1)).contains("longer"));
    }
}
