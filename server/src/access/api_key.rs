//! The format of API keys: `lp_`, 43 random characters, 6 characters of checksum.
//!
//! With the checksum, scanners and this server recognize invalid keys without a query. Only the SHA-256
//! of a key is stored; a slow hash would not improve the security of 256 random bits.

use sha2::{Digest, Sha256};

const KEY_PREFIX: &str = "lp_";
const SECRET_LENGTH: usize = 43;
const CHECKSUM_LENGTH: usize = 6;
const KEY_ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Number of characters of a key that may be shown.
const SHOWN_LENGTH: usize = 11;

/// A well-formed key. It cannot be formatted, so that it is never logged.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// Generates a random key.
    ///
    /// # Errors
    ///
    /// Fails when the system has no randomness.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut secret = String::with_capacity(SECRET_LENGTH);
        while secret.len() < SECRET_LENGTH {
            let mut bytes = [0_u8; 64];
            getrandom::fill(&mut bytes)?;
            // Bytes from 248 up would make some characters more likely than others.
            secret.extend(
                bytes
                    .iter()
                    .filter(|it| **it < 248)
                    .map(|it| char::from(KEY_ALPHABET[usize::from(it % 62)]))
                    .take(SECRET_LENGTH - secret.len()),
            );
        }
        let checksum = checksum(&secret);
        Ok(Self(format!("{KEY_PREFIX}{secret}{checksum}")))
    }

    /// Parses a text with the format and the right checksum.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(KEY_PREFIX)?;
        if rest.len() != SECRET_LENGTH + CHECKSUM_LENGTH || !rest.bytes().all(|it| it.is_ascii_alphanumeric())
        {
            return None;
        }
        let (secret, sum) = rest.split_at(SECRET_LENGTH);
        (checksum(secret) == sum).then(|| Self(text.to_owned()))
    }

    /// Returns the hash that is stored instead of the key.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// Returns the characters that may be shown.
    pub fn prefix(&self) -> &str {
        &self.0[..SHOWN_LENGTH]
    }

    /// Returns the key itself, for the one response that shows it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

fn checksum(secret: &str) -> String {
    let mut rest = crc32fast::hash(secret.as_bytes());
    let mut digits = [b'0'; CHECKSUM_LENGTH];
    for digit in digits.iter_mut().rev() {
        *digit = KEY_ALPHABET[(rest % 62) as usize];
        rest /= 62;
    }
    digits.map(char::from).iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_key_with_wrong_checksum_is_rejected() {
        let key = ApiKey::generate().unwrap();
        assert_eq!(key.reveal().len(), 52);
        assert!(ApiKey::parse(key.reveal()).is_some());
        for i in 0..52 {
            let mut changed: Vec<u8> = key.reveal().bytes().collect();
            changed[i] = if changed[i] == b'x' { b'y' } else { b'x' };
            assert!(ApiKey::parse(std::str::from_utf8(&changed).unwrap()).is_none(), "position {i}");
        }
    }

    #[test]
    fn generated_api_keys_are_unique_and_uniform() {
        let keys: std::collections::HashSet<String> =
            (0..10_000).map(|_| ApiKey::generate().unwrap().reveal().to_owned()).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().all(|it| ApiKey::parse(it).is_some()));
        // Of 430,000 characters, each of the 62 occurs equally often, within six standard deviations.
        let mut counts = [0_i64; 128];
        for byte in keys.iter().flat_map(|it| it.bytes().skip(3).take(SECRET_LENGTH)) {
            counts[usize::from(byte)] += 1;
        }
        for letter in KEY_ALPHABET {
            assert!((counts[usize::from(*letter)] - 6_935).abs() < 500, "{}", char::from(*letter));
        }
    }

    #[test]
    fn malformed_api_key_is_rejected() {
        for text in ["", "lp_", "lp_short", "LP_", "lp_\u{e9}"] {
            assert!(ApiKey::parse(text).is_none());
        }
    }
}
