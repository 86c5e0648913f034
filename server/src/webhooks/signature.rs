//! Signatures of deliveries.
//!
//! `X-Service-Signature` is the HMAC-SHA256 of the body with the secret's bytes as the key. Beside it, requests
//! have the three headers of Standard Webhooks, so that receivers can use existing libraries.

use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The prefix of a secret that is the base64 text of a key.
const STANDARD_PREFIX: &str = "whsec_";

/// Returns a generated secret.
///
/// # Errors
///
/// Fails when the system has no randomness.
pub fn generate_secret() -> Result<String, getrandom::Error> {
    let mut key = [0_u8; 32];
    getrandom::fill(&mut key)?;
    Ok(format!("{STANDARD_PREFIX}{}", BASE64_STANDARD.encode(key)))
}

/// Returns the value of `X-Service-Signature`.
pub fn service_signature(secret: &str, body: &[u8]) -> String {
    let hex: String = hmac(secret.as_bytes(), &[body]).iter().map(|it| format!("{it:02x}")).collect();
    format!("sha256={hex}")
}

/// Returns one signature of `webhook-signature` for a message.
pub fn standard_signature(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> String {
    let key = standard_key(secret);
    let signature = hmac(&key, &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
    format!("v1,{}", BASE64_STANDARD.encode(signature))
}

/// Returns the key of Standard Webhooks: the decoded part after `whsec_`, or else the secret's bytes.
fn standard_key(secret: &str) -> Vec<u8> {
    let encoded = secret.strip_prefix(STANDARD_PREFIX);
    let key = encoded.and_then(|it| BASE64_STANDARD.decode(it).ok()).filter(|it| !it.is_empty());
    key.unwrap_or_else(|| secret.as_bytes().to_vec())
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        unreachable!("HMAC accepts keys of any length")
    };
    parts.iter().for_each(|it| mac.update(it));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_signature_is_the_hmac_of_the_body() {
        // Test case 2 of RFC 4231.
        assert_eq!(
            service_signature("Jefe", b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn standard_signature_matches_the_specification() {
        // The example of the Standard Webhooks specification.
        let signature = standard_signature(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "1614265330",
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secret_without_valid_base64_is_its_own_key() {
        for secret in ["0123456789abcdef", "whsec_", "whsec_not base64!"] {
            assert_eq!(standard_key(secret), secret.as_bytes());
        }
    }

    #[test]
    fn generated_secrets_are_keys_of_32_bytes_that_differ() {
        let (one, other) = (generate_secret().unwrap(), generate_secret().unwrap());
        assert_ne!(one, other);
        assert_eq!(standard_key(&one).len(), 32);
    }
}
