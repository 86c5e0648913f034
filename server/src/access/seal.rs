//! Secrets at rest: sealed with XChaCha20-Poly1305, each for one column and row.
//!
//! A sealed secret contains the ID of its master key and is bound to its tenant, column and row: moved
//! to another row, it cannot be unsealed. The first master key seals, all unseal, so that a key can be
//! replaced while servers run.

use anyhow::{Context, bail};
use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use store::sealed::SecretLocation;

use super::master_key::MasterKey;

/// First byte of a sealed secret in this format.
const FORMAT_VERSION: u8 = 1;
/// Length of a nonce in bytes: long enough for random nonces to be unique.
const NONCE_LENGTH: usize = 24;

/// Seals and unseals secrets.
pub struct Sealer(Vec<(String, XChaCha20Poly1305)>);

impl Sealer {
    /// Creates a sealer with keys derived from the master key.
    pub fn new(master: &MasterKey) -> Self {
        let keys = master.derive_all("seal");
        Self(keys.into_iter().map(|(id, key)| (id, XChaCha20Poly1305::new(&Key::from(key)))).collect())
    }

    /// Seals a secret for its column and row.
    ///
    /// # Errors
    ///
    /// Fails when the system has no randomness.
    pub fn seal(&self, location: SecretLocation<'_>, secret: &str) -> anyhow::Result<Vec<u8>> {
        let (id, cipher) = self.0.first().context("there is no master key")?;
        let mut nonce = [0; NONCE_LENGTH];
        getrandom::fill(&mut nonce).context("the system has no randomness")?;
        let payload = Payload { msg: secret.as_bytes(), aad: &associated_data(location) };
        let sealed = cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| anyhow::anyhow!("a secret could not be sealed"))?;
        let length = u8::try_from(id.len()).context("the master key's id is too long")?;
        Ok([&[FORMAT_VERSION, length], id.as_bytes(), &nonce, &sealed].concat())
    }

    /// Unseals a secret of this column and row.
    ///
    /// # Errors
    ///
    /// Fails when the secret was sealed for another row or with a missing key, or is damaged.
    pub fn unseal(&self, location: SecretLocation<'_>, sealed: &[u8]) -> anyhow::Result<String> {
        let (id, rest) = parts(sealed).context("a sealed secret is damaged")?;
        let Some((_, cipher)) = self.0.iter().find(|it| it.0.as_bytes() == id) else {
            bail!(
                "a secret was sealed with the master key `{}`, which LOUPE_MASTER_KEY does not contain",
                String::from_utf8_lossy(id)
            );
        };
        let (nonce, sealed) =
            rest.split_first_chunk::<NONCE_LENGTH>().context("a sealed secret is damaged")?;
        let payload = Payload { msg: sealed, aad: &associated_data(location) };
        let secret = cipher.decrypt(&XNonce::from(*nonce), payload);
        let secret =
            secret.map_err(|_| anyhow::anyhow!("a sealed secret is damaged or belongs to another row"))?;
        String::from_utf8(secret).context("a sealed secret is not text")
    }

    /// Returns whether the first key sealed this secret.
    pub fn is_current(&self, sealed: &[u8]) -> bool {
        let first = self.0.first().map(|it| it.0.as_bytes());
        parts(sealed).map(|it| it.0) == first
    }
}

/// Returns the associated data that is authenticated with the secret of a location.
fn associated_data(location: SecretLocation<'_>) -> Vec<u8> {
    // No column has a NUL in its name, so different locations give different bytes.
    [location.tenant.as_bytes(), location.column.as_bytes(), &[0], location.row.as_bytes()].concat()
}

/// Splits a sealed secret into the key's ID and the rest.
fn parts(sealed: &[u8]) -> Option<(&[u8], &[u8])> {
    match sealed {
        [FORMAT_VERSION, length, rest @ ..] => rest.split_at_checked(usize::from(*length)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const PLACE: SecretLocation<'_> = SecretLocation { tenant: Uuid::from_u128(1), column: "t.c", row: "r" };

    fn keys() -> (String, String) {
        (MasterKey::generate().unwrap(), MasterKey::generate().unwrap())
    }

    fn sealer(keys: &str) -> Sealer {
        Sealer::new(&MasterKey::parse(keys).unwrap())
    }

    #[test]
    fn sealed_secret_opens_in_its_own_row_only() {
        let sealer = sealer(&keys().0);
        let sealed = sealer.seal(PLACE, "sk-secret").unwrap();
        assert_eq!(sealer.unseal(PLACE, &sealed).unwrap(), "sk-secret");
        assert!(!sealed.windows(9).any(|it| it == b"sk-secret"));
        assert_ne!(sealed, sealer.seal(PLACE, "sk-secret").unwrap(), "a nonce was used twice");
        for other in [
            SecretLocation { tenant: Uuid::from_u128(2), ..PLACE },
            SecretLocation { column: "t.d", ..PLACE },
            SecretLocation { row: "s", ..PLACE },
        ] {
            assert!(sealer.unseal(other, &sealed).is_err(), "{other:?}");
        }
    }

    #[test]
    fn damaged_sealed_secret_is_rejected() {
        let sealer = sealer(&keys().0);
        let sealed = sealer.seal(PLACE, "x").unwrap();
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(sealer.unseal(PLACE, &flipped).is_err(), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert!(sealer.unseal(PLACE, &sealed[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn first_key_seals_and_all_keys_open() {
        let (old, new) = keys();
        let before = sealer(&format!("old:{old}")).seal(PLACE, "x").unwrap();
        let both = sealer(&format!("new:{new},old:{old}"));
        assert!(!both.is_current(&before));
        assert_eq!(both.unseal(PLACE, &before).unwrap(), "x");
        let after = both.seal(PLACE, "x").unwrap();
        assert!(both.is_current(&after));
        let new_only = sealer(&format!("new:{new}"));
        assert_eq!(new_only.unseal(PLACE, &after).unwrap(), "x");
        let refused = new_only.unseal(PLACE, &before).unwrap_err().to_string();
        assert!(refused.contains("`old`"), "{refused}");
    }
}
