//! Header fields other than the algorithm are not trusted.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use super::TokenCases;
use crate::signer::{encoded, signed, signed_bytes};

pub fn add_cases(cases: &mut TokenCases) {
    add_keys_in_header(cases);
    add_key_ids(cases);
    add_token_types(cases);
    add_extensions(cases);
    add_malformed_headers(cases);
}

/// A key, or the address of one, in the header.
fn add_keys_in_header(cases: &mut TokenCases) {
    let (good, forged) = (cases.good.clone(), &cases.keys.forged);
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
        cases.reject(name, &token);
    }
    // With a valid signature they are ignored.
    for (name, value) in [
        ("jwk", cases.keys.forged.jwk.clone()),
        ("jku", json!("https://attacker.example")),
        ("x5c", json!(["x"])),
    ] {
        let token = cases.token_with_header(&json!({"alg": "RS256", "kid": "rsa", name: value}));
        cases.accept(format!("{name} beside a good signature"), &token);
    }
}

fn add_key_ids(cases: &mut TokenCases) {
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
        let token = cases.token_with_header(&json!({"alg": "RS256", "kid": kid}));
        cases.reject(format!("kid {kid:?}"), &token);
    }
    for kid in [json!(null), json!(5), json!(true), json!(["rsa"]), json!({"id": "rsa"})] {
        let token = cases.token_with_header(&json!({"alg": "RS256", "kid": kid}));
        cases.reject(format!("kid {kid}"), &token);
        // Rejected even where a token without a `kid` would be accepted.
        let token = cases.keys.p384.sign(&json!({"alg": "ES384", "kid": kid}), &cases.good);
        cases.reject(format!("kid {kid}, and one key that fits"), &token);
    }
    let long = cases.token_with_header(&json!({"alg": "RS256", "kid": "k".repeat(4_000)}));
    cases.reject("a kid of 4,000 characters", &long);
    // With two RSA keys for RS256, a token without a `kid` is ambiguous; the other algorithms have one key
    // each.
    let unnamed = cases.token_with_header(&json!({"alg": "RS256"}));
    cases.reject("no kid, and two keys that fit", &unnamed);
    let only = cases.keys.p384.sign(&json!({"alg": "ES384"}), &cases.good);
    cases.accept("no kid, and one key that fits", &only);
    let other = cases.keys.p256.sign(&json!({"alg": "EdDSA"}), &cases.good);
    cases.reject("no kid, and another key", &other);
}

fn add_token_types(cases: &mut TokenCases) {
    let typed = |cases: &TokenCases, typ: &Value| {
        cases.token_with_header(&json!({"alg": "RS256", "kid": "rsa", "typ": typ}))
    };
    for typ in ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt", "application/jwt"] {
        let token = typed(cases, &json!(typ));
        cases.accept(format!("typ {typ}"), &token);
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
        let token = typed(cases, &typ);
        cases.reject(format!("typ {typ}"), &token);
    }
}

fn add_extensions(cases: &mut TokenCases) {
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
        let token = cases.token_with_header(&json!({"alg": "RS256", "kid": "rsa", name: value}));
        cases.reject(format!("{name} {value}"), &token);
    }
    let unencoded =
        cases.token_with_header(&json!({"alg": "RS256", "kid": "rsa", "b64": false, "crit": ["b64"]}));
    cases.reject("an unencoded payload", &unencoded);
    let more = cases
        .token_with_header(&json!({"alg": "RS256", "kid": "rsa", "nonce": "x", "x": {"y": [1, 2.5, null]}}));
    cases.accept("members that mean nothing", &more);
}

fn add_malformed_headers(cases: &mut TokenCases) {
    let good = cases.good.to_string();
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
        let token = signed(text, &good, &cases.keys.rsa.key, Algorithm::RS256);
        cases.reject(format!("the header {}", &text[..text.len().min(60)]), &token);
    }
    for (name, bytes) in [
        ("not UTF-8", &b"{\"alg\":\"RS256\",\"kid\":\"rsa\",\"x\":\"\xff\"}"[..]),
        ("with a zero byte behind", &b"{\"alg\":\"RS256\",\"kid\":\"rsa\"}\0"[..]),
        ("in UTF-16", &b"{\0\"\0a\0l\0g\0\"\0"[..]),
    ] {
        let token = signed_bytes(bytes, good.as_bytes(), &cases.keys.rsa.key, Algorithm::RS256);
        cases.reject(format!("a header {name}"), &token);
    }
    let blanks =
        signed(" {\"alg\" :\"RS256\",\n\"kid\": \"rsa\"} ", &good, &cases.keys.rsa.key, Algorithm::RS256);
    cases.accept("a header with blanks", &blanks);
}
