//! Claims of tokens with valid signatures.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use super::{Book, Verdict};
use crate::signer::{signed, signed_bytes};

/// The time of the tests' clock in seconds.
const NOW: i64 = tests::app::START / 1_000_000;

pub fn write(book: &mut Book) {
    for claim in ["iss", "aud", "sub", "tenant_id", "role", "exp"] {
        let token = book.token(&book.without(claim));
        book.refused(format!("no {claim}"), &token);
        let twice = |other: Value| {
            let mut text = book.good.to_string();
            text.truncate(text.len() - 1);
            format!("{text},\"{claim}\":{other}}}")
        };
        for text in [twice(book.good[claim].clone()), twice(json!(null))] {
            let token =
                signed(&book.keys.rsa.header().to_string(), &text, &book.keys.rsa.key, Algorithm::RS256);
            book.refused(format!("{claim} twice"), &token);
        }
        for value in [json!(null), json!(true), json!([]), json!({}), json!([[]]), json!("\u{0}")] {
            values(book, Verdict::Refused, claim, [value]);
        }
    }
    issuers(book);
    audiences(book);
    times(book);
    names(book);
    roles(book);
    texts(book);
}

fn values(book: &mut Book, verdict: Verdict, claim: &str, values: impl IntoIterator<Item = Value>) {
    for value in values {
        let token = book.token(&book.with(claim, value.clone()));
        let shown: String = format!("{claim} {value}").chars().take(80).collect();
        book.add(shown, format!("Bearer {token}").into_bytes(), verdict);
    }
}

fn issuers(book: &mut Book) {
    let issuer = book.good["iss"].as_str().unwrap().to_owned();
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
    values(book, Verdict::Refused, "iss", others.map(Value::from));
    values(book, Verdict::Refused, "iss", [json!([issuer]), json!({"iss": issuer}), json!(5)]);
}

fn audiences(book: &mut Book) {
    let ours = crate::provider::AUDIENCE;
    values(book, Verdict::Taken("owner"), "aud", [json!([ours]), json!(["https://other.example", ours])]);
    values(
        book,
        Verdict::Refused,
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

fn times(book: &mut Book) {
    let taken = Verdict::Taken("owner");
    values(
        book,
        taken,
        "exp",
        [json!(NOW - 4), json!(NOW + 1), json!(NOW as f64 + 0.5), json!(i64::MAX), json!(NOW * 1_000)],
    );
    values(
        book,
        Verdict::Refused,
        "exp",
        [
            json!(NOW - 5),
            json!(NOW - 3_600),
            json!(NOW as f64 - 5.5),
            json!(0),
            json!(-1),
            json!(i64::MIN),
            json!(-NOW),
            json!(0.0),
            json!(u64::MAX),
            json!(1e300),
            json!(-1e300),
            json!((NOW + 60).to_string()),
            json!(format!("{NOW}0")),
            json!("never"),
            json!("2030-01-01T00:00:00Z"),
            json!([NOW + 60]),
            json!({"exp": NOW + 60}),
        ],
    );
    for claim in ["nbf", "iat"] {
        values(
            book,
            taken,
            claim,
            [json!(NOW), json!(NOW + 60), json!(0), json!(-1), json!(NOW as f64 - 0.5), json!(i64::MIN)],
        );
        values(
            book,
            Verdict::Refused,
            claim,
            [
                json!(NOW + 61),
                json!(NOW + 3_600),
                json!(i64::MAX),
                json!(u64::MAX),
                json!(1e300),
                json!(NOW.to_string()),
                json!(null),
                json!([NOW]),
                json!({}),
                json!(true),
            ],
        );
    }
    let token = book.token(&book.without("iat"));
    book.taken("no iat", &token);
}

fn names(book: &mut Book) {
    let taken = Verdict::Taken("owner");
    values(
        book,
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
    values(
        book,
        Verdict::Refused,
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
    let ours = book.good["tenant_id"].as_str().unwrap().to_owned();
    values(book, taken, "tenant_id", [json!(ours.to_uppercase())]);
    values(
        book,
        Verdict::UnknownTenant,
        "tenant_id",
        [
            json!("00000000-0000-0000-0000-000000000000"),
            json!("0198f7c0-0000-7000-8000-000000000000"),
            json!(&ours[1..]),
            json!(format!("{ours}0")),
            json!("nobody-knows-me"),
            json!("default"),
            json!("' OR 1=1 --"),
            json!("%"),
            json!("*"),
            json!("null"),
            json!("t".repeat(255)),
            json!("\u{1F600}"),
        ],
    );
    values(
        book,
        Verdict::Refused,
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

fn roles(book: &mut Book) {
    for role in ["owner", "member", "viewer"] {
        let among = json!(["offline_access", role, "uma_authorization"]);
        values(
            book,
            Verdict::Taken(role),
            "role",
            [json!(role), json!([role]), among, json!([5, null, role])],
        );
    }
    values(
        book,
        Verdict::Refused,
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
fn texts(book: &mut Book) {
    let good = book.good.to_string();
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
    let header = book.keys.rsa.header().to_string();
    for text in texts {
        let token = signed(&header, &text, &book.keys.rsa.key, Algorithm::RS256);
        let shown = text.replace(inside, "…");
        book.refused(format!("the claims {}", shown.chars().take(60).collect::<String>()), &token);
    }
    let mut bytes = good.clone().into_bytes();
    let at = bytes.len() - 2;
    bytes[at] = 0xff;
    let token = signed_bytes(header.as_bytes(), &bytes, &book.keys.rsa.key, Algorithm::RS256);
    book.refused("claims that are not UTF-8", &token);
    let blanks = signed(&header, &format!(" {good}\n"), &book.keys.rsa.key, Algorithm::RS256);
    book.taken("claims with blanks around", &blanks);
    let more =
        book.token(&book.with("https://acme.example/x", json!({"a": [1, 2.5, null, {"b": "\u{1F600}"}]})));
    book.taken("claims that mean nothing here", &more);
}
