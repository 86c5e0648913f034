//! The format of API keys: `lp_`, 43 characters of randomness, 6 of checksum.
//!
//! The checksum lets a scanner, and this server before any query, tell a key from a lookalike.
//! Only the SHA-256 of a key is stored; a slow hash would add nothing to 256 random bits.

use sha2::{Digest, Sha256};

const PREFIX: &str = "lp_";
const SECRET: usize = 43;
const CHECKSUM: usize = 6;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Characters of a key that may be shown.
const SHOWN: usize = 11;

/// A well-formed key. Not printable, so that it can't end in a log.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// A new random key.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut secret = String::with_capacity(SECRET);
        while secret.len() < SECRET {
            let mut bytes = [0_u8; 64];
            getrandom::fill(&mut bytes)?;
            // Bytes from 248 up would make some characters likelier than others.
            secret.extend(
                bytes
                    .iter()
                    .filter(|it| **it < 248)
                    .map(|it| char::from(ALPHABET[usize::from(it % 62)]))
                    .take(SECRET - secret.len()),
            );
        }
        let checksum = checksum(&secret);
        Ok(Self(format!("{PREFIX}{secret}{checksum}")))
    }

    /// A text that has the format and the right checksum.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        if rest.len() != SECRET + CHECKSUM || !rest.bytes().all(|it| it.is_ascii_alphanumeric()) {
            return None;
        }
        let (secret, sum) = rest.split_at(SECRET);
        (checksum(secret) == sum).then(|| Self(text.to_owned()))
    }

    /// What is stored in place of the key.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// What may be shown of it.
    pub fn prefix(&self) -> &str {
        &self.0[..SHOWN]
    }

    /// The key itself, for the one answer that shows it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

fn checksum(secret: &str) -> String {
    let mut rest = crc32fast::hash(secret.as_bytes());
    let mut digits = [b'0'; CHECKSUM];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(rest % 62) as usize];
        rest /= 62;
    }
    digits.map(char::from).iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_match_their_own_checksum_and_no_other() {
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
    fn ten_thousand_keys_are_ten_thousand_keys() {
        let keys: std::collections::HashSet<String> =
            (0..10_000).map(|_| ApiKey::generate().unwrap().reveal().to_owned()).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().all(|it| ApiKey::parse(it).is_some()));
        // Every character is as likely as any other: 430,000 of 62, give or take six deviations.
        let mut counts = [0_i64; 128];
        for byte in keys.iter().flat_map(|it| it.bytes().skip(3).take(SECRET)) {
            counts[usize::from(byte)] += 1;
        }
        for letter in ALPHABET {
            assert!((counts[usize::from(*letter)] - 6_935).abs() < 500, "{}", char::from(*letter));
        }
    }

    #[test]
    fn lookalikes_are_refused() {
        for text in ["", "lp_", "lp_short", "LP_", "lp_\u{e9}"] {
            assert!(ApiKey::parse(text).is_none());
        }
    }
}
