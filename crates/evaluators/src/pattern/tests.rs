//! Searches of compiled expressions: results, bounds, interruption.

use std::{cell::Cell, rc::Rc};

use super::*;
use crate::interruption::{TaskInterrupted, interruptible};

fn compiled(pattern: &str) -> Pattern {
    Pattern::compile(pattern, PatternOptions::default()).unwrap()
}

fn full(pattern: &str, text: &str) -> bool {
    let options = PatternOptions { full_match: true, ..PatternOptions::default() };
    Pattern::compile(pattern, options).unwrap().is_match(text).unwrap()
}

#[test]
fn full_match_means_every_alternative() {
    assert!(full("a|ab", "ab"));
    assert!(!full("a|ab", "abc"));
    assert!(!full("ab", "ab\n"));
    assert!(full("(?s).*", "a\nb"));
    assert!(full("(?m)^a$", "a"));
    assert!(full("", ""));
    // Comments in verbose mode, `(?x)`, end with the line.
    assert!(full("(?x) a b # the first letters", "ab"));
    assert!(!full("(?x) a b # the first letters", "abc"));
    assert!(full("(?x: a | ab ) # literal", "ab # literal"));
    assert!(!full("", "a"));
}

#[test]
fn unusable_expression_is_rejected_with_reason() {
    let options = PatternOptions { full_match: true, ..PatternOptions::default() };
    let wrong = |pattern: &str| Pattern::compile(pattern, options).unwrap_err();
    assert_eq!(wrong("a)(b"), "is not a regular expression in linear time: unopened group");
    assert!(wrong("(?=a)").contains("look-around"), "{}", wrong("(?=a)"));
    assert!(wrong(r"(a)\1").contains("backreferences"), "{}", wrong(r"(a)\1"));
    assert!(wrong(r"(\w{1,200}){1,200}").contains("too large"));
    assert!(wrong(&"a".repeat(MAX_PATTERN_BYTES + 1)).contains("longer"));
    assert!(wrong(&format!("{}{}", "(".repeat(5_000), ")".repeat(4_999))).contains("linear time"));
}

/// Expressions with texts that match and texts that do not.
const MATCH_CASES: [&str; 22] = [
    "",
    "abc",
    "^abc",
    "abc$",
    "(?m)^b$",
    r"\bend\b",
    r"\Bnd",
    r"\b\w+é\b",
    r"(?-u:\b)x",
    "(?i)ÄPFEL",
    r"\d{3}-\d{4}",
    r"[^a-z]",
    "a*",
    "(a|ab)(c|bcd)(d*)$",
    r"^\p{Greek}+$",
    r"(?s)a.b",
    "a.b",
    r"\z",
    "(?:a|b)*c",
    r"\b{start}no",
    r"x{2,4}y",
    r"(?R)a$",
];

#[test]
fn both_searches_agree_with_the_crate_regex() {
    let texts = [
        "",
        "abc",
        "xabc",
        "abcx",
        "a\nb\nc",
        "the end",
        "ending bend",
        "été café",
        "ÄPFEL äpfel",
        "555-1234",
        "٣٤٥-١٢٣٤",
        "abcdd",
        "αβγ",
        "aéb",
        "no",
        "ano no",
        "xxxxxy",
        "xy",
        "日本語 end",
        "a\r\nb",
        "é",
        "a\u{301}",
    ];
    for expression in MATCH_CASES {
        let (pattern, model) = (compiled(expression), regex::Regex::new(expression).unwrap());
        for text in texts {
            let expected = model.is_match(text);
            assert_eq!(pattern.is_match(text), Ok(expected), "{expression} on {text:?}");
            assert_eq!(
                simulation::is_match(&pattern.nfa, text.as_bytes()),
                expected,
                "{expression} on {text:?}"
            );
        }
    }
}

#[test]
fn text_that_exceeds_the_state_cache_is_searched_completely() {
    // Each step leads to a new state, which encodes which of the last 14 letters were an a.
    let pattern = compiled("a[ab]{13}c");
    let mut random = 1_u64;
    let mut text: String = (0..200_000)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if random >> 63 == 0 { 'a' } else { 'b' }
        })
        .collect();
    assert_eq!(pattern.is_match(&text), Ok(false));
    text.push_str("abbbbbbbbbbbbbc");
    assert_eq!(pattern.is_match(&text), Ok(true));
}

#[test]
fn running_search_can_be_interrupted() {
    for pattern in [
        compiled("(?:a[ab]{900}|b[ab]{901}|[ab]{3}a[ab]{700})+c"),
        // The simulation runs because one letter is not ASCII.
        compiled(r"(?:a[ab]{900}|b[ab]{901}|[ab]{3}a[ab]{700})+\bc"),
    ] {
        let text = format!("é{}", "ab".repeat(2_000_000));
        let asked = Rc::new(Cell::new(0));
        let count = Rc::clone(&asked);
        let must_end = move || {
            count.set(count.get() + 1);
            count.get() >= 5
        };
        assert_eq!(interruptible(must_end, || pattern.is_match(&text)), Err(TaskInterrupted));
    }
}
