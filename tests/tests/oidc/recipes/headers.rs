//! Header fields other than the algorithm are not trusted.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use super::Book;
use crate::signer::{encoded, signed, signed_bytes};

pub fn write(book: &mut Book) {
    keys_in_the_header(book);
    key_ids(book);
    types(book);
    extensions(book);
    headers_that_are_none(book);
}

/// A key, or the address of one, in the header.
fn keys_in_the_header(book: &mut Book) {
    let (good, forged) = (book.good.clone(), &book.keys.forged);
    let mut tokens = Vec::new();
    let x5c = encoded(&forged.der);
    for (name, value) in [
        ("jwk", forged.jwk.clone()),
        ("jku", json!("https://attacker.example/keys")),
        ("jku", json!("http://127.0.0.1:1/keys")),
        ("x5u", json!("https://attacker.example/cert.pem")),
        ("x5c", json!([x5c])),
        ("keys", json!([forged.jwk])),
    ] {
        for kid in [json!("rsa"), json!("attacker"), json!(null)] {
            let mut header = json!({"alg": "RS256", name: value});
            if !kid.is_null() {
                header["kid"] = kid.clone();
            }
            tokens.push((format!("{name} of a forger, kid {kid}"), forged.sign(&header, &good)));
        }
    }
    for (name, token) in tokens {
        book.refused(name, &token);
    }
    // With a valid signature they are ignored.
    for (name, value) in [
        ("jwk", book.keys.forged.jwk.clone()),
        ("jku", json!("https://attacker.example")),
        ("x5c", json!(["x"])),
    ] {
        let token = book.under(&json!({"alg": "RS256", "kid": "rsa", name: value}));
        book.taken(format!("{name} beside a good signature"), &token);
    }
}

fn key_ids(book: &mut Book) {
    for kid in [
        "",
        " ",
        "RSA",
        "rsa ",
        " rsa",
        "rsa\0",
        "rs",
        "rsaa",
        "../../../etc/passwd",
        "../../../dev/null",
        "/dev/null",
        "keys/rsa",
        "file:///dev/null",
        "https://attacker.example/key",
        "' OR 1=1 --",
        "rsa'; DROP TABLE tenant; --",
        "' UNION SELECT 'x",
        "*",
        "%",
        "${jndi:ldap://x}",
        "$(id)",
        "| id",
        "\u{202e}asr",
        "\u{1F511}",
        "undefined",
        "null",
        "0",
        "encryption",
        "secret",
        "halved",
    ] {
        let token = book.under(&json!({"alg": "RS256", "kid": kid}));
        book.refused(format!("kid {kid:?}"), &token);
    }
    for kid in [json!(null), json!(5), json!(true), json!(["rsa"]), json!({"id": "rsa"})] {
        let token = book.under(&json!({"alg": "RS256", "kid": kid}));
        book.refused(format!("kid {kid}"), &token);
        // Rejected even where a token without a `kid` would be accepted.
        let token = book.keys.p384.sign(&json!({"alg": "ES384", "kid": kid}), &book.good);
        book.refused(format!("kid {kid}, and one key that fits"), &token);
    }
    let long = book.under(&json!({"alg": "RS256", "kid": "k".repeat(4_000)}));
    book.refused("a kid of 4,000 characters", &long);
    // With two RSA keys for RS256, a token without a `kid` is ambiguous; the other algorithms have one key
    // each.
    let unnamed = book.under(&json!({"alg": "RS256"}));
    book.refused("no kid, and two keys that fit", &unnamed);
    let only = book.keys.p384.sign(&json!({"alg": "ES384"}), &book.good);
    book.taken("no kid, and one key that fits", &only);
    let other = book.keys.p256.sign(&json!({"alg": "EdDSA"}), &book.good);
    book.refused("no kid, and another key", &other);
}

fn types(book: &mut Book) {
    let typed = |book: &Book, typ: &Value| book.under(&json!({"alg": "RS256", "kid": "rsa", "typ": typ}));
    for typ in ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt", "application/jwt"] {
        let token = typed(book, &json!(typ));
        book.taken(format!("typ {typ}"), &token);
    }
    let others = [
        json!("logout+jwt"),
        json!("dpop+jwt"),
        json!("secevent+jwt"),
        json!("token-introspection+jwt"),
        json!("JWE"),
        json!("JOSE"),
        json!(""),
        json!("at+jwt "),
        json!("application/"),
        json!("text/plain"),
        json!(null),
        json!(5),
        json!(["JWT"]),
        json!({}),
    ];
    for typ in others {
        let token = typed(book, &typ);
        book.refused(format!("typ {typ}"), &token);
    }
}

fn extensions(book: &mut Book) {
    for (name, value) in [
        ("crit", json!([])),
        ("crit", json!(["exp"])),
        ("crit", json!(["b64"])),
        ("crit", json!(["alg", "kid"])),
        ("crit", json!("exp")),
        ("crit", json!(null)),
        ("enc", json!("A256GCM")),
        ("enc", json!(null)),
        ("zip", json!("DEF")),
        ("zip", json!("")),
    ] {
        let token = book.under(&json!({"alg": "RS256", "kid": "rsa", name: value}));
        book.refused(format!("{name} {value}"), &token);
    }
    let unencoded = book.under(&json!({"alg": "RS256", "kid": "rsa", "b64": false, "crit": ["b64"]}));
    book.refused("an unencoded payload", &unencoded);
    let more = book.under(&json!({"alg": "RS256", "kid": "rsa", "nonce": "x", "x": {"y": [1, 2.5, null]}}));
    book.taken("members that mean nothing", &more);
}

fn headers_that_are_none(book: &mut Book) {
    let good = book.good.to_string();
    let deep = format!(r#"{{"alg":"RS256","kid":"rsa","x":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    let texts = [
        "",
        "{}",
        "[]",
        "null",
        "5",
        "\"RS256\"",
        "{",
        "{\"alg\":\"RS256\"",
        "{'alg':'RS256','kid':'rsa'}",
        "RS256",
        r#"{"alg":"none","alg":"RS256","kid":"rsa"}"#,
        r#"{"alg":"RS256","alg":"none","kid":"rsa"}"#,
        r#"{"alg":"RS256","alg":"RS256","kid":"rsa"}"#,
        r#"{"alg":"RS256","kid":"x","kid":"rsa"}"#,
        r#"{"alg":"RS256","\u0061lg":"RS256","kid":"rsa"}"#,
        r#"{"alg":"RS256","kid":"rsa"}x"#,
        r#"{"alg":"RS256","kid":"rsa"}{}"#,
        r#"[{"alg":"RS256","kid":"rsa"}]"#,
        r#"{"alg":"RS256","kid":"rsa",}"#,
        r#"{"alg":"RS256","kid":"rsa"/**/}"#,
        r#"{"Alg":"RS256","Kid":"rsa"}"#,
        "\u{feff}{\"alg\":\"RS256\",\"kid\":\"rsa\"}",
        r#"{"alg":"RS256","kid":"rsa","x":NaN}"#,
        &deep,
    ];
    for text in texts {
        let token = signed(text, &good, &book.keys.rsa.key, Algorithm::RS256);
        book.refused(format!("the header {}", &text[..text.len().min(60)]), &token);
    }
    for (name, bytes) in [
        ("not UTF-8", &b"{\"alg\":\"RS256\",\"kid\":\"rsa\",\"x\":\"\xff\"}"[..]),
        ("with a zero byte behind", &b"{\"alg\":\"RS256\",\"kid\":\"rsa\"}\0"[..]),
        ("in UTF-16", &b"{\0\"\0a\0l\0g\0\"\0"[..]),
    ] {
        let token = signed_bytes(bytes, good.as_bytes(), &book.keys.rsa.key, Algorithm::RS256);
        book.refused(format!("a header {name}"), &token);
    }
    let blanks =
        signed(" {\"alg\" :\"RS256\",\n\"kid\": \"rsa\"} ", &good, &book.keys.rsa.key, Algorithm::RS256);
    book.taken("a header with blanks", &blanks);
}
