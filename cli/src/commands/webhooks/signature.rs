//! Signatures of webhook requests: computes them as the server does, and verifies them in constant time.
//!
//! `X-Service-Signature` is the HMAC-SHA256 of the body with the secret's bytes as the key. The headers of Standard
//! Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`) also sign the event's ID and the time.

use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The header with the signature of the body.
pub const SERVICE_SIGNATURE_HEADER: &str = "x-service-signature";
/// The header with the signature of the body by the previous secret, after a rotation.
pub const PREVIOUS_SIGNATURE_HEADER: &str = "x-service-signature-previous";
/// The header with the signatures of Standard Webhooks.
pub const STANDARD_SIGNATURE_HEADER: &str = "webhook-signature";
/// The header with the event's ID.
pub const EVENT_ID_HEADER: &str = "webhook-id";
/// The header with the time of the attempt, in seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";

/// The text before the hexadecimal digits of a service signature.
pub const SERVICE_PREFIX: &str = "sha256=";
/// The prefix of a secret that is the base64 text of a key.
pub const STANDARD_SECRET_PREFIX: &str = "whsec_";
/// The text before a signature of Standard Webhooks.
const STANDARD_PREFIX: &str = "v1,";

/// Headers of a request, with lower-case names.
pub type Headers = Vec<(String, String)>;

/// Returns the value of a header; the name is in lower case.
pub fn header<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
}

/// Returns the value of `X-Service-Signature`.
pub fn service_signature(secret: &[u8], body: &[u8]) -> String {
    let digest = mac(secret, &[body]).finalize().into_bytes();
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{SERVICE_PREFIX}{digits}")
}

/// Returns one signature of `webhook-signature`.
pub fn standard_signature(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> String {
    let digest = standard_mac(secret, id, timestamp, body).finalize().into_bytes();
    format!("{STANDARD_PREFIX}{}", BASE64_STANDARD.encode(digest))
}

/// Returns whether a text is exactly the service signature of a body.
pub fn is_service_signature(text: &str, secret: &[u8], body: &[u8]) -> bool {
    let digest = text.strip_prefix(SERVICE_PREFIX).and_then(from_hex);
    digest.is_some_and(|digest| mac(secret, &[body]).verify_slice(&digest).is_ok())
}

/// Returns the header whose signature proves that a request is authentic: the service signature, the signature with
/// the previous secret, or one of the signatures of Standard Webhooks. `None` if no signature is valid.
pub fn valid_header(headers: &Headers, secret: &str, body: &[u8]) -> Option<&'static str> {
    let is_service =
        |name| header(headers, name).is_some_and(|text| is_service_signature(text, secret.as_bytes(), body));
    if let Some(name) =
        [SERVICE_SIGNATURE_HEADER, PREVIOUS_SIGNATURE_HEADER].into_iter().find(|it| is_service(it))
    {
        return Some(name);
    }
    has_standard_signature(headers, secret, body).then_some(STANDARD_SIGNATURE_HEADER)
}

/// Returns whether one of the signatures of Standard Webhooks is valid. They cover the event's ID and the time.
pub fn has_standard_signature(headers: &Headers, secret: &str, body: &[u8]) -> bool {
    let (Some(id), Some(timestamp), Some(signatures)) = (
        header(headers, EVENT_ID_HEADER),
        header(headers, TIMESTAMP_HEADER),
        header(headers, STANDARD_SIGNATURE_HEADER),
    ) else {
        return false;
    };
    signatures.split(' ').any(|text| {
        let digest = text.strip_prefix(STANDARD_PREFIX).and_then(|it| BASE64_STANDARD.decode(it).ok());
        digest.is_some_and(|it| standard_mac(secret, id, timestamp, body).verify_slice(&it).is_ok())
    })
}

/// Returns the key of Standard Webhooks: the decoded part after `whsec_`, otherwise the secret's bytes.
pub fn standard_key(secret: &str) -> Vec<u8> {
    let encoded = secret.strip_prefix(STANDARD_SECRET_PREFIX);
    let key = encoded.and_then(|it| BASE64_STANDARD.decode(it).ok()).filter(|it| !it.is_empty());
    key.unwrap_or_else(|| secret.as_bytes().to_vec())
}

fn standard_mac(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
    mac(&standard_key(secret), &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body])
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        unreachable!("HMAC accepts keys of any length")
    };
    parts.iter().for_each(|part| mac.update(part));
    mac
}

/// Decodes hexadecimal digits in lower case. The server writes no others, so upper-case digits are
/// rejected.
fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some(value(pair[0])? << 4 | value(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"what do ya want for nothing?";
    const SIGNATURE: &str = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";

    fn headers(values: &[(&str, &str)]) -> Headers {
        values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn service_signature_is_the_hmac_of_the_body() {
        // Test case 2 of RFC 4231.
        assert_eq!(service_signature(b"Jefe", BODY), SIGNATURE);
        assert!(is_service_signature(SIGNATURE, b"Jefe", BODY));
        for wrong in [
            &SIGNATURE[7..],
            &SIGNATURE[..70],
            &SIGNATURE.to_uppercase().replace("SHA", "sha"),
            &SIGNATURE.replace("5bdc", "5bdd"),
            &format!("{SIGNATURE} "),
            "sha256=",
            "",
        ] {
            assert!(!is_service_signature(wrong, b"Jefe", BODY), "{wrong}");
        }
    }

    #[test]
    fn standard_signature_matches_the_specification() {
        // The example of the Standard Webhooks specification.
        let (secret, id, time) =
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330");
        let body = br#"{"test": 2432232314}"#;
        let signature = standard_signature(secret, id, time, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let list = format!("v1,AAAA {signature}");
        let sent =
            |time| headers(&[("webhook-id", id), ("webhook-timestamp", time), ("webhook-signature", &list)]);
        assert_eq!(valid_header(&sent(time), secret, body), Some("webhook-signature"));
        assert_eq!(valid_header(&sent("1614265331"), secret, body), None);
    }

    #[test]
    fn signature_of_the_previous_secret_is_valid() {
        let rotated =
            headers(&[("x-service-signature", "sha256=00"), ("x-service-signature-previous", SIGNATURE)]);
        assert_eq!(valid_header(&rotated, "Jefe", BODY), Some("x-service-signature-previous"));
        assert_eq!(valid_header(&rotated, "jefe", BODY), None);
        assert_eq!(valid_header(&Vec::new(), "Jefe", BODY), None);
    }
}
