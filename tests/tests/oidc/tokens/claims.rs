//! Claims of tokens with valid signatures.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use super::{TokenCases, Verdict};
use crate::signer::{signed, signed_bytes};

/// The time of the tests' clock in seconds.
const NOW_SECONDS: i64 = tests::app::TEST_START_MICROS / 1_000_000;

pub fn add_cases(cases: &mut TokenCases) {
    for claim in ["iss", "aud", "sub", "tenant_id", "role", "exp"] {
        let token = cases.token(&cases.without(claim));
        cases.reject(format!("no {claim}"), &token);
        let twice = |other: Value| {
            let mut text = cases.good.to_string();
            text.truncate(text.len() - 1);
            format!("{text},\"{claim}\":{other}}}")
        };
        for text in [twice(cases.good[claim].clone()), twice(json!(null))] {
            let token =
                signed(&cases.keys.rsa.header().to_string(), &text, &cases.keys.rsa.key, Algorithm::RS256);
            cases.reject(format!("{claim} twice"), &token);
        }
        for value in [json!(null), json!(true), json!([]), json!({}), json!([[]]), json!("\u{0}")] {
            add_values(cases, Verdict::Rejected, claim, [value]);
        }
    }
    add_issuers(cases);
    add_audiences(cases);
    add_times(cases);
    add_names(cases);
    add_roles(cases);
    add_malformed_claims(cases);
}

fn add_values(
    cases: &mut TokenCases,
    verdict: Verdict,
    claim: &str,
    values: impl IntoIterator<Item = Value>,
) {
    for value in values {
        let token = cases.token(&cases.with(claim, value.clone()));
        let shown: String = format!("{claim} {value}").chars().take(80).collect();
        cases.add(shown, format!("Bearer {token}").into_bytes(), verdict);
    }
}

fn add_issuers(cases: &mut TokenCases) {
    let issuer = cases.good["iss"].as_str().unwrap().to_owned();
    let others = [
        format!("{issuer}/"),
        format!("{issuer}/x"),
        format!(" {issuer}"),
        format!("{issuer} "),
        issuer.replace("http", "https"),
        issuer.to_uppercase(),
        issuer.replace("http://", ""),
        issuer.replace("127.0.0.1", "localhost"),
        issuer.replace("//", "//user@"),
        issuer[..issuer.len() - 1].to_owned(),
        format!("{issuer}1"),
        "https://attacker.example".to_owned(),
        String::new(),
        "*".to_owned(),
    ];
    add_values(cases, Verdict::Rejected, "iss", others.map(Value::from));
    add_values(cases, Verdict::Rejected, "iss", [json!([issuer]), json!({"iss": issuer}), json!(5)]);
}

fn add_audiences(cases: &mut TokenCases) {
    let ours = crate::provider::TOKEN_AUDIENCE;
    add_values(
        cases,
        Verdict::Accepted("owner"),
        "aud",
        [json!([ours]), json!(["https://other.example", ours])],
    );
    add_values(
        cases,
        Verdict::Rejected,
        "aud",
        [
            json!(""),
            json!("https://other.example"),
            json!(format!("{ours}/")),
            json!(ours.to_uppercase()),
            json!(&ours[..ours.len() - 1]),
            json!(format!("{ours} https://other.example")),
            json!(format!("{ours},x")),
            json!(["https://other.example"]),
            json!([ours, 5]),
            json!([ours, null]),
            json!([[ours]]),
            json!({"aud": ours}),
            json!(5),
            json!("*"),
        ],
    );
}

fn add_times(cases: &mut TokenCases) {
    let taken = Verdict::Accepted("owner");
    add_values(
        cases,
        taken,
        "exp",
        [
            json!(NOW_SECONDS - 4),
            json!(NOW_SECONDS + 1),
            json!(NOW_SECONDS as f64 + 0.5),
            json!(i64::MAX),
            json!(NOW_SECONDS * 1_000),
        ],
    );
    add_values(
        cases,
        Verdict::Rejected,
        "exp",
        [
            json!(NOW_SECONDS - 5),
            json!(NOW_SECONDS - 3_600),
            json!(NOW_SECONDS as f64 - 5.5),
            json!(0),
            json!(-1),
            json!(i64::MIN),
            json!(-NOW_SECONDS),
            json!(0.0),
            json!(u64::MAX),
            json!(1e300),
            json!(-1e300),
            json!((NOW_SECONDS + 60).to_string()),
            json!(format!("{NOW_SECONDS}0")),
            json!("never"),
            json!("2030-01-01T00:00:00Z"),
            json!([NOW_SECONDS + 60]),
            json!({"exp": NOW_SECONDS + 60}),
        ],
    );
    for claim in ["nbf", "iat"] {
        add_values(
            cases,
            taken,
            claim,
            [
                json!(NOW_SECONDS),
                json!(NOW_SECONDS + 60),
                json!(0),
                json!(-1),
                json!(NOW_SECONDS as f64 - 0.5),
                json!(i64::MIN),
            ],
        );
        add_values(
            cases,
            Verdict::Rejected,
            claim,
            [
                json!(NOW_SECONDS + 61),
                json!(NOW_SECONDS + 3_600),
                json!(i64::MAX),
                json!(u64::MAX),
                json!(1e300),
                json!(NOW_SECONDS.to_string()),
                json!(null),
                json!([NOW_SECONDS]),
                json!({}),
                json!(true),
            ],
        );
    }
    let token = cases.token(&cases.without("iat"));
    cases.accept("no iat", &token);
}

fn add_names(cases: &mut TokenCases) {
    let taken = Verdict::Accepted("owner");
    add_values(
        cases,
        taken,
        "sub",
        [
            json!("a"),
            json!("s".repeat(255)),
            json!("\u{1F600} '; DROP TABLE member; --"),
            json!("../../etc/passwd"),
            json!("<script>"),
        ],
    );
    add_values(
        cases,
        Verdict::Rejected,
        "sub",
        [
            json!(""),
            json!(" "),
            json!("\u{2003}"),
            json!(5),
            json!("s".repeat(256)),
            json!("a\u{0}b"),
            json!("a\nb"),
            json!("a\u{7f}"),
            json!("\u{1b}[2J"),
            json!("\u{9b}2J"),
            json!(["ada"]),
            json!({"sub": "ada"}),
        ],
    );
    let ours = cases.good["tenant_id"].as_str().unwrap().to_owned();
    add_values(cases, taken, "tenant_id", [json!(ours.to_uppercase())]);
    add_values(
        cases,
        Verdict::UnknownTenant,
        "tenant_id",
        [
            json!("00000000-0000-0000-0000-000000000000"),
            json!("0198f7c0-0000-7000-8000-000000000000"),
            json!(&ours[1..]),
            json!(format!("{ours}0")),
            json!("unknown-tenant"),
            json!("default"),
            json!("' OR 1=1 --"),
            json!("%"),
            json!("*"),
            json!("null"),
            json!("t".repeat(255)),
            json!("\u{1F600}"),
        ],
    );
    add_values(
        cases,
        Verdict::Rejected,
        "tenant_id",
        [
            json!(""),
            json!("  "),
            json!(5),
            json!("t".repeat(256)),
            json!("a\u{0}"),
            json!(format!("{ours}\n")),
            json!([ours]),
            json!({"id": ours}),
            json!(0),
        ],
    );
}

fn add_roles(cases: &mut TokenCases) {
    for role in ["owner", "member", "viewer"] {
        let among = json!(["offline_access", role, "uma_authorization"]);
        add_values(
            cases,
            Verdict::Accepted(role),
            "role",
            [json!(role), json!([role]), among, json!([5, null, role])],
        );
    }
    add_values(
        cases,
        Verdict::Rejected,
        "role",
        [
            json!(""),
            json!("Owner"),
            json!("OWNER"),
            json!(" owner"),
            json!("owner "),
            json!("admin"),
            json!("root"),
            json!("owner,member"),
            json!("owner member"),
            json!("*"),
            json!(5),
            json!(0),
            json!(["owner", "member"]),
            json!(["owner", "owner"]),
            json!(["admin"]),
            json!([["owner"]]),
            json!({"owner": true}),
            json!([{"name": "owner"}]),
            json!("owner\u{0}"),
            json!("\u{43e}wner"),
        ],
    );
}

/// Claims that are not exactly one JSON object.
fn add_malformed_claims(cases: &mut TokenCases) {
    let good = cases.good.to_string();
    let inside = &good[1..good.len() - 1];
    let deep = format!("{{{inside},\"x\":{}{}}}", "[".repeat(500), "]".repeat(500));
    let texts = [
        String::new(),
        "{}".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "5".to_owned(),
        "\"x\"".to_owned(),
        format!("[{good}]"),
        format!("{good}x"),
        format!("{good}{{}}"),
        format!("{good},"),
        format!("{{{inside},}}"),
        format!("{{{inside},\"x\":NaN}}"),
        format!("{{{inside},\"x\":1e999}}"),
        format!("{{{inside},\"x\":0x10}}"),
        format!("/**/{good}"),
        format!("\u{feff}{good}"),
        format!("{good}\0"),
        good.replace('"', "'"),
        good[..good.len() - 1].to_owned(),
        format!("{{{inside},\"x\":\"\\ud800\"}}"),
        format!("{{{inside},\"x\":{{\"y\":1,\"y\":1}}}}"),
        format!("{{{inside},\"\\u0072ole\":\"owner\"}}"),
        deep,
    ];
    let header = cases.keys.rsa.header().to_string();
    for text in texts {
        let token = signed(&header, &text, &cases.keys.rsa.key, Algorithm::RS256);
        let shown = text.replace(inside, "…");
        cases.reject(format!("the claims {}", shown.chars().take(60).collect::<String>()), &token);
    }
    let mut bytes = good.clone().into_bytes();
    let at = bytes.len() - 2;
    bytes[at] = 0xff;
    let token = signed_bytes(header.as_bytes(), &bytes, &cases.keys.rsa.key, Algorithm::RS256);
    cases.reject("claims that are not UTF-8", &token);
    let blanks = signed(&header, &format!(" {good}\n"), &cases.keys.rsa.key, Algorithm::RS256);
    cases.accept("claims with blanks around them", &blanks);
    let more =
        cases.token(&cases.with("https://acme.example/x", json!({"a": [1, 2.5, null, {"b": "\u{1F600}"}]})));
    cases.accept("additional claims", &more);
}
