//! Explains a wrong signature: tries the mistakes that developers of receivers make, and names those that fit. A
//! signature that fits only with a mistake is never accepted.

use base64::{Engine, prelude::BASE64_STANDARD};

use super::signature::{SERVICE_PREFIX, STANDARD_SECRET_PREFIX, is_service_signature, standard_key};

/// Returns the likely cause of a wrong `X-Service-Signature`; `None` if no known mistake fits.
pub fn likely_cause(received: &str, secret: &str, body: &[u8]) -> Option<String> {
    // Compares in constant time, like the verification: a sender could otherwise measure how many digits are right.
    let signature = format!("{SERVICE_PREFIX}{}", digits_of(received));
    let matches = |secret: &[u8], body: &[u8]| is_service_signature(&signature, secret, body);
    if matches(secret.as_bytes(), body) {
        return Some(form_mistakes(received));
    }
    if is_base64(received, secret, body) {
        return Some("the signature is in base64 instead of hexadecimal digits".to_owned());
    }
    let wrong_secret = secret_variants(secret).into_iter().find(|(variant, _)| matches(variant, body));
    if let Some((_, cause)) = wrong_secret {
        return Some(cause.to_owned());
    }
    let wrong_body = body_variants(body).into_iter().find(|(variant, _)| matches(secret.as_bytes(), variant));
    wrong_body.map(|(_, cause)| cause.to_owned())
}

/// Returns the digits of a signature in lower case, without the prefix and everything around it.
fn digits_of(signature: &str) -> String {
    let digits = bare(signature).to_ascii_lowercase();
    digits.strip_prefix(SERVICE_PREFIX).map(str::to_owned).unwrap_or(digits)
}

/// Returns a text without quotes and blanks around it.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '"' || c == '\'')
}

/// Names the differences between a signature and its correct form, given that its digits are right.
fn form_mistakes(received: &str) -> String {
    let plain = bare(received);
    let (has_prefix, digits) = match plain.get(..SERVICE_PREFIX.len()) {
        Some(prefix) if prefix.eq_ignore_ascii_case(SERVICE_PREFIX) => (true, &plain[SERVICE_PREFIX.len()..]),
        _ => (false, plain),
    };
    let mut mistakes = Vec::new();
    if plain.len() != received.len() {
        mistakes.push("blanks, quotes or a line break are around the signature");
    }
    if !has_prefix {
        mistakes.push("the prefix `sha256=` is missing");
    }
    if digits.contains(|c: char| c.is_ascii_uppercase()) {
        mistakes.push("the hexadecimal digits are in upper case");
    }
    if has_prefix && !plain.starts_with(SERVICE_PREFIX) {
        mistakes.push("the prefix `sha256=` is in upper case");
    }
    mistakes.join(", and ")
}

/// Returns whether a signature is correct, but in base64.
fn is_base64(received: &str, secret: &str, body: &[u8]) -> bool {
    let text = bare(received);
    let text = text.strip_prefix(SERVICE_PREFIX).unwrap_or(text);
    let digest = BASE64_STANDARD.decode(text).unwrap_or_default();
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    is_service_signature(&format!("{SERVICE_PREFIX}{digits}"), secret.as_bytes(), body)
}

/// Returns secrets that are easily taken for this one, each with the mistake that it stands for.
fn secret_variants(secret: &str) -> Vec<(Vec<u8>, &'static str)> {
    let mut variants = vec![
        (format!("{secret}\n"), "the sender signed with the secret and a line break after it"),
        (format!("{secret}\r\n"), "the sender signed with the secret and a line break after it"),
        (format!("\"{secret}\""), "the sender signed with the secret in quotes"),
        (format!("'{secret}'"), "the sender signed with the secret in quotes"),
        (
            secret.trim().to_owned(),
            "the secret here begins or ends with blanks or a line break; without them, it matches",
        ),
        (bare(secret).to_owned(), "the secret here is in quotes; without them, it matches"),
    ];
    if let Some(encoded) = secret.strip_prefix(STANDARD_SECRET_PREFIX) {
        variants.push((
            encoded.to_owned(),
            "the sender signed without the prefix `whsec_`, which is part of the secret in this header",
        ));
    }
    let mut variants: Vec<_> = variants.into_iter().map(|(it, cause)| (it.into_bytes(), cause)).collect();
    variants.push((
        standard_key(secret),
        "the sender signed with the key decoded from base64, which only `webhook-signature` uses",
    ));
    variants
}

/// Returns bodies that the sender may have signed instead, each with the mistake that it stands for.
fn body_variants(body: &[u8]) -> Vec<(Vec<u8>, &'static str)> {
    let end = body.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |at| at + 1);
    let with_break = [body, b"\n"].concat();
    vec![
        (
            body[..end].to_vec(),
            "the body here ends with a line break or blanks that the sender did not send; keep its exact bytes",
        ),
        (with_break, "the body here lacks the line break at its end; keep its exact bytes"),
        (
            without_blanks(body),
            "the body was parsed and written again; verify the bytes as received, before parsing them",
        ),
    ]
}

/// Removes the blanks between the parts of a JSON text; keeps the order of members, and blanks in strings.
fn without_blanks(json: &[u8]) -> Vec<u8> {
    let (mut in_string, mut is_escaped) = (false, false);
    let mut compact = json.to_vec();
    compact.retain(|byte| {
        let keep = in_string || !byte.is_ascii_whitespace();
        if !is_escaped && *byte == b'"' {
            in_string = !in_string;
        }
        is_escaped = in_string && !is_escaped && *byte == b'\\';
        keep
    });
    compact
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::webhooks::signature::service_signature;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const BODY: &str = r#"{"id":"1","data":{"text":"a \" b"}}"#;

    fn signed(secret: &str, body: &str) -> String {
        service_signature(secret.as_bytes(), body.as_bytes())
    }

    fn cause(received: &str, secret: &str, body: &str) -> String {
        likely_cause(received, secret, body.as_bytes()).unwrap_or_default()
    }

    #[test]
    fn mistakes_in_the_form_of_a_signature_are_named() {
        let good = signed(SECRET, BODY);
        let digits = &good[SERVICE_PREFIX.len()..];
        for (received, part) in [
            (digits.to_owned(), "prefix `sha256=` is missing"),
            (format!("sha256={}", digits.to_uppercase()), "upper case"),
            (format!("\"{good}\""), "quotes"),
            (format!(" {good}\n"), "line break"),
        ] {
            assert!(cause(&received, SECRET, BODY).contains(part), "{received}");
        }
        let both = cause(&digits.to_uppercase(), SECRET, BODY);
        assert!(both.contains("missing, and") && both.contains("upper case"), "{both}");
        let in_base64 = BASE64_STANDARD.encode(
            (0..digits.len() / 2)
                .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
                .collect::<Vec<_>>(),
        );
        assert!(cause(&in_base64, SECRET, BODY).contains("base64"));
    }

    #[test]
    fn mistakes_in_the_secret_are_named() {
        for (signed_with, here, part) in [
            ("abc\n", "abc", "line break after it"),
            ("\"abc\"", "abc", "in quotes"),
            ("abc", "abc\n", "without them"),
            ("abc", "'abc'", "without them"),
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", SECRET, "without the prefix `whsec_`"),
        ] {
            let found = cause(&signed(signed_with, BODY), here, BODY);
            assert!(found.contains(part), "{signed_with:?} {here:?}: {found}");
        }
        let decoded = service_signature(&standard_key(SECRET), BODY.as_bytes());
        assert!(cause(&decoded, SECRET, BODY).contains("decoded from base64"));
    }

    #[test]
    fn changed_bodies_are_named() {
        let good = signed(SECRET, BODY);
        let pretty = "{\n  \"id\": \"1\",\n  \"data\": { \"text\": \"a \\\" b\" }\n}";
        for (here, part) in
            [(pretty, "parsed and written again"), (&format!("{BODY}\n"), "ends with a line break")]
        {
            assert!(cause(&good, SECRET, here).contains(part), "{here}");
        }
        assert_eq!(likely_cause(&good, SECRET, BODY.replace('1', "2").as_bytes()), None);
        assert_eq!(likely_cause(&good, "another secret", BODY.as_bytes()), None);
    }
}
