//! Tests that each part of a text is read once; `tests/pii.rs` measures the findings.

use proptest::prelude::*;

use super::{super::words::Words, *};

fn found(text: &str) -> Vec<&'static str> {
    let mut hits = Vec::new();
    find(text, &Words::of(text).marks, Boundaries::Strict, &mut hits);
    hits.into_iter().map(|it| it.what).collect()
}

fn issuer(begins: &str) -> &'static issued::IssuedKey {
    ISSUED_KEYS.iter().find(|it| it.begins == begins).unwrap()
}

#[test]
fn miss_returns_the_number_of_read_bytes() {
    for (begins, piece) in
        [("SG.", "SG."), ("ABSK", "ABSK/"), ("AccountKey=", "AccountKey=xxx"), ("eyJ", "eyJ.")]
    {
        let text = piece.repeat(100);
        let (hit, until) = issuer(begins).read(&text, 0, Boundaries::Strict);
        assert!(hit.is_none(), "{piece}");
        assert_eq!(until, text.len(), "{piece}");
    }
    // A block is read up to the next block.
    let piece = "-----BEGIN PRIVATE KEYxxx";
    let (hit, until) = issuer("-----BEGIN ").read(&piece.repeat(100), 0, Boundaries::Strict);
    assert!(hit.is_none());
    assert_eq!(until, piece.len());
}

#[test]
fn text_of_only_opening_delimiters_is_searched_completely() {
    for piece in ["SG.", "ABSK/", "AccountKey=xxx", "-----BEGIN PRIVATE KEYxxx", "eyJ."] {
        assert_eq!(found(&piece.repeat(1_000_000 / piece.len())), [""; 0], "{piece}");
    }
}

#[test]
fn rejected_candidate_does_not_hide_next_secret() {
    let token = "ghp_Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j";
    assert_eq!(found(&format!("ABSK/short/{token}")), ["GitHub token"]);
    let key =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", "MIIEvQIBADANBg".repeat(9));
    assert_eq!(found(&format!("-----BEGIN PRIVATE KEY----- and your key, so {key}")), ["private key"]);
}

#[test]
fn private_key_search_ends_at_a_character_boundary() {
    // In one of the two cases, the text that is searched for placeholders ends within a character.
    for letters in [41, 42] {
        let block =
            |of: &str| format!("-----BEGIN PRIVATE KEY-----{}{}", &of.repeat(42)[..letters], "é".repeat(200));
        assert_eq!(found(&block("A")), [""; 0]);
        assert_eq!(found(&block("Ab")), ["private key"]);
    }
}

#[test]
fn name_within_another_name_is_found() {
    let text =
        "api_key: 00A0aaaAaBC0DEBFapi token: aaaabAAcB300a145 and further words, so that the text is long";
    let mut hits = Vec::new();
    find(text, &marks::of(text), Boundaries::Loose, &mut hits);
    let values: Vec<&str> = hits.iter().map(|it| &text[it.start..it.end]).collect();
    assert_eq!(values, ["00A0aaaAaBC0DEBFapi", "aaaabAAcB300a145"]);
}

/// Pieces of texts with secrets, parts of secrets, and texts without them.
fn piece() -> impl Strategy<Value = String> {
    let random = "[A-Za-z0-9]{16,60}";
    prop_oneof![
        "[a-z]{1,9}( [a-z]{1,9}){0,12}",
        random.prop_map(|it| format!("sk-ant-{it}")),
        random.prop_map(|it| format!("ghp_{it}")),
        "[A-Z]{16}".prop_map(|it| format!("AKIA{it}")),
        random.prop_map(|it| format!("eyJ{it}.eyJ{it}.{it}")),
        random.prop_map(|it| format!("https://user:{it}@host/path")),
        random.prop_map(|it| format!("-----BEGIN RSA PRIVATE KEY-----\n{it}\n-----END RSA PRIVATE KEY-----")),
        (prop::sample::select(named::SECRET_NAMES), random)
            .prop_map(|((name, _), it)| format!("{name}: {it}")),
        (prop::sample::select(issued_marks().collect::<Vec<_>>()), random)
            .prop_map(|(mark, it)| format!("{mark}{it}")),
        "API_KEY=[A-Za-z0-9]{16,30}",
        "[\"'=:_./@ -]{1,3}",
        "é|密码|日本",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn search_that_skips_text_finds_the_same_secrets(pieces in prop::collection::vec(piece(), 1..8), space in "[ \"]?") {
        let text = pieces.join(&space);
        let found = |marks: &[(usize, usize)]| {
            let mut hits = Vec::new();
            find(&text, marks, Boundaries::Loose, &mut hits);
            let mut ranges: Vec<_> = hits.into_iter().map(|it| (it.start, it.end, it.what)).collect();
            ranges.sort_unstable();
            ranges
        };
        prop_assert_eq!(found(&marks::of(&text)), found(&Words::of(&text).marks), "{}", text);
    }
}
