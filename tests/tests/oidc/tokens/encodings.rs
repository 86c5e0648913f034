//! A valid token, damaged or in a wrong notation.

use base64::{Engine, prelude::BASE64_URL_SAFE};
use jsonwebtoken::Algorithm;
use serde_json::json;

use super::{TokenCases, Verdict};
use crate::signer::{encoded, signed};

pub fn add_cases(cases: &mut TokenCases) {
    add_authorization_headers(cases);
    add_combined_parts(cases);
    add_base64_variants(cases);
    add_sizes(cases);
}

fn add_authorization_headers(cases: &mut TokenCases) {
    let token = cases.token(&cases.good);
    for scheme in ["Bearer ", "bearer ", "BEARER ", "bEARER ", "Bearer   "] {
        cases.add(
            format!("the scheme {scheme:?}"),
            format!("{scheme}{token}").into_bytes(),
            Verdict::Accepted("owner"),
        );
    }
    for authorization in [
        token.clone(),
        format!("Bearer{token}"),
        format!("Token {token}"),
        format!("JWT {token}"),
        format!("DPoP {token}"),
        format!("Basic {token}"),
        format!("Bearer: {token}"),
        format!("Bearer \"{token}\""),
        format!("Bearer Bearer {token}"),
        format!("Bearer {token} {token}"),
        format!("Bearer {token},{token}"),
        format!("Bearer {token};"),
        format!("Bearer token={token}"),
        format!("Bearer\t{token}"),
        format!("Bearer {token}\tx"),
        format!("Bearer %20{token}"),
    ] {
        let name = authorization.replace(&token, "TOKEN");
        cases.add(name, authorization.into_bytes(), Verdict::Rejected);
    }
}

fn add_combined_parts(cases: &mut TokenCases) {
    let token = cases.token(&cases.good);
    let parts: Vec<&str> = token.split('.').collect();
    let (head, body, sum) = (parts[0], parts[1], parts[2]);
    // Another valid token, to combine with.
    let other = cases.keys.free.token(&cases.with("role", json!("viewer")));
    let others: Vec<&str> = other.split('.').collect();
    let owner = encoded(cases.with("sub", json!("root")).to_string().as_bytes());
    let raw_body = cases.good.to_string().replace('"', "'");
    for (name, token) in [
        ("no signature", format!("{head}.{body}")),
        ("an empty signature", format!("{head}.{body}.")),
        ("no claims", format!("{head}..{sum}")),
        ("no header", format!(".{body}.{sum}")),
        ("a dot in front", format!(".{token}")),
        ("a dot behind", format!("{token}.")),
        ("four parts", format!("{token}.{sum}")),
        ("five parts", format!("{head}.{body}.{sum}.{body}.{sum}")),
        ("two dots", format!("{head}..{body}.{sum}")),
        ("the order changed", format!("{body}.{head}.{sum}")),
        ("the signature first", format!("{sum}.{head}.{body}")),
        ("the header alone", head.to_owned()),
        ("dots alone", "..".to_owned()),
        ("claims that were changed", format!("{head}.{owner}.{sum}")),
        ("claims of another token", format!("{head}.{}.{sum}", others[1])),
        ("the header of another token", format!("{}.{body}.{sum}", others[0])),
        ("the signature of another token", format!("{head}.{body}.{}", others[2])),
        ("the signature doubled", format!("{head}.{body}.{sum}{sum}")),
        ("half of the signature", format!("{head}.{body}.{}", &sum[..sum.len() / 2])),
        ("the signature backwards", format!("{head}.{body}.{}", sum.chars().rev().collect::<String>())),
        ("claims that are not encoded", format!("{head}.{raw_body}.{sum}").replace(' ', "")),
        ("the JSON form", json!({"payload": body, "protected": head, "signature": sum}).to_string()),
        ("a comma for a dot", token.replacen('.', ",", 1)),
        ("a slash for a dot", token.replacen('.', "/", 1)),
    ] {
        cases.reject(name, &token);
    }
}

/// Variants of Base64 that RFC 7515 does not allow.
fn add_base64_variants(cases: &mut TokenCases) {
    let token = cases.token(&cases.good);
    let parts: Vec<&str> = token.split('.').collect();
    for at in 0..3 {
        for (name, change) in [
            ("padding", (|it| format!("{it}=")) as fn(&str) -> String),
            ("double padding", |it| format!("{it}==")),
            ("a blank in it", |it| format!("{}%20{}", &it[..4], &it[4..])),
            ("a plus", |it| format!("{}+", &it[..it.len() - 1])),
            ("a slash", |it| format!("{}/", &it[..it.len() - 1])),
            ("a letter more", |it| format!("{it}A")),
            ("four letters more", |it| format!("{it}AAAA")),
            ("a letter less", |it| it[..it.len() - 1].to_owned()),
            ("an umlaut", |it| format!("{it}\u{e4}")),
        ] {
            let mut changed = parts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
            changed[at] = change(&changed[at]);
            cases.reject(format!("{name} in part {at}"), &changed.join("."));
        }
    }
    // 256 bytes leave four bits of the last letter unused; only zeros are valid there.
    let (rest, last) = token.split_at(token.len() - 1);
    for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ".chars().filter(|it| !last.contains(*it)).take(3) {
        cases.reject(format!("`{letter}` as the last letter"), &format!("{rest}{letter}"));
    }
    // The signature covers the text as it is, so that only the encoding is wrong.
    let header = BASE64_URL_SAFE.encode(r#"{"alg":"RS256","kid":"rsa"} "#);
    assert!(header.ends_with('='), "{header}");
    let message = format!("{header}.{}", encoded(cases.good.to_string().as_bytes()));
    let signature =
        jsonwebtoken::crypto::sign(message.as_bytes(), &cases.keys.rsa.key, Algorithm::RS256).unwrap();
    cases.reject("padding that was signed", &format!("{message}.{signature}"));
}

fn add_sizes(cases: &mut TokenCases) {
    let sized = |cases: &TokenCases, bytes: usize| {
        let header = cases.keys.rsa.header().to_string();
        let token = |filler: usize| {
            let claims = cases.with("x", json!("x".repeat(filler))).to_string();
            signed(&header, &claims, &cases.keys.rsa.key, Algorithm::RS256)
        };
        (0..).map(|it| token((bytes - token(0).len()) / 4 * 3 - 3 + it)).find(|it| it.len() >= bytes).unwrap()
    };
    let (fits, long) = (sized(cases, 8_190), sized(cases, 8_193));
    assert!(fits.len() <= 8_192, "{}", fits.len());
    cases.accept("8 KiB", &fits);
    cases.reject("more than 8 KiB", &long);
    let token = cases.token(&cases.with("x", json!("x".repeat(9_000))));
    cases.reject("12 KB", &token);
    cases.reject("12,000 dots", &".".repeat(12_000));
}
