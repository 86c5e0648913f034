//! Tests that each part of a text is read once; `tests/pii.rs` measures the findings.

use super::*;

fn found(text: &str) -> Vec<&'static str> {
    let mut hits = Vec::new();
    find(text, &Words::of(text), Boundaries::Strict, &mut hits);
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
