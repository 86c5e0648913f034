//! Hostile and arbitrary messages: no panic, bounded templates, bounded work.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use clustering::{
    ClusterSet, FailureText, MAX_MESSAGE_BYTES, MAX_TEMPLATE_WORDS, TEMPLATE_WILDCARD, Template,
};
use proptest::prelude::*;

/// Texts that are repeated up to the largest message.
const HOSTILE_PIECES: &[&str] = &[
    "{",
    "[",
    "(",
    "'",
    "\"",
    "`",
    "<",
    "{'a':",
    "[{\"",
    "\\",
    "\\u",
    "<*>",
    "<*> ",
    "a ",
    "a.",
    "a:",
    "1",
    "1,",
    "1 ",
    ":",
    ": ",
    "/",
    "=",
    "A.b",
    "Error: ",
    "XError('",
    "('",
    "(\"('",
    "Traceback (most recent call last):\n",
    "\nCaused by: ",
    "\n    at x",
    "<html>",
    "<title>",
    "{'message': '",
    "{\"error\":{\"message\":\"",
    "Error code: 429 - ",
    "429 ",
    "body: ",
    "\u{1b}[",
    "\u{1b}[1m",
    "é",
    "漢",
    "\u{1f980}",
    "\u{0}",
    "\n",
    "\r\n",
    "\t",
    "output: ",
    "input_value=",
    "Mon ",
    "GET ",
    "\"GET ",
    "http://",
    "arn:",
    "a@b.c",
    "**",
    "x-",
    "1e",
    "0x",
];

#[test]
fn hostile_messages_are_bounded() {
    let mut set: ClusterSet<u32> = ClusterSet::default();
    let mut next = 0;
    for piece in HOSTILE_PIECES {
        for suffix in ["", "x", "}", "'", "\"", ")"] {
            let message = piece.repeat(MAX_MESSAGE_BYTES / piece.len() + 10) + suffix;
            let template = Template::of_message(&message);
            assert!(template.text().len() <= 1024, "{piece:?}: {} bytes", template.text().len());
            assert!(
                template.text().matches(TEMPLATE_WILDCARD).count() <= MAX_TEMPLATE_WORDS + 1,
                "{piece:?}"
            );
            assert_eq!(Template::parse(&template.fingerprint()).as_ref(), Some(&template), "{piece:?}");
            let failure = FailureText { failure_type: "other", span_name: &message, message: &message };
            next += 1;
            let first = set.assign(&failure, || next).cluster;
            next += 1;
            assert_eq!(
                set.assign(&failure, || next).cluster,
                first,
                "{piece:?}: a repeated message stays together"
            );
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(HOSTILE_PIECES).prop_map(str::to_owned),
        4 => "[a-zA-Z]{1,12} ",
        1 => "\\PC{0,8}",
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|it| it.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn fingerprint_of_any_message_is_parsed_to_the_same_template(message in text()) {
        let template = Template::of_message(&message);
        prop_assert_eq!(Template::parse(&template.fingerprint()), Some(template));
    }

    #[test]
    fn repeated_message_joins_its_cluster(messages in prop::collection::vec(text(), 1..30)) {
        let mut set: ClusterSet<u32> = ClusterSet::default();
        for (index, message) in messages.iter().enumerate() {
            let failure = FailureText { failure_type: "other", span_name: "chat", message };
            let first = set.assign(&failure, || index as u32 * 2).cluster;
            prop_assert_eq!(set.assign(&failure, || index as u32 * 2 + 1).cluster, first);
        }
        let rows: Vec<_> = set.ids().filter_map(|it| set.stored(it)).collect();
        let loaded = ClusterSet::load(rows.clone());
        prop_assert_eq!(loaded.ids().filter_map(|it| loaded.stored(it)).collect::<Vec<_>>(), rows);
    }
}
