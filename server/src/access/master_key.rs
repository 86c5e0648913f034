//! The master key and what is derived from it: one key a purpose, by label (HKDF-SHA256).

use std::{io::Write, path::Path};

use anyhow::{Context, bail, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use hkdf::Hkdf;
use sha2::Sha256;

/// 32 secret bytes that everything else is derived from. Not printable.
pub struct MasterKey([u8; 32]);

/// Name of the file in the data directory.
const FILE: &str = "master.key";

impl MasterKey {
    /// Reads `text`: base64 of 32 bytes, or a list `id:key,…` of which the first is used.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let first = text.split(',').next().unwrap_or_default().trim();
        let encoded = first.rsplit_once(':').map_or(first, |it| it.1);
        let bytes = BASE64_STANDARD.decode(encoded).ok().and_then(|it| <[u8; 32]>::try_from(it).ok());
        match bytes {
            Some(bytes) => Ok(Self(bytes)),
            None => bail!(
                "the master key must be 32 bytes in base64; `loupe-server admin generate-key` makes one"
            ),
        }
    }

    /// A new key, in base64.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn generate() -> anyhow::Result<String> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).context("the system has no randomness")?;
        Ok(BASE64_STANDARD.encode(bytes))
    }

    /// The key kept in the data directory, made there at the first start, readable by the owner alone.
    ///
    /// # Errors
    /// When the file can't be read or written.
    pub fn in_directory(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(FILE);
        if !path.exists() {
            let key = Self::generate()?;
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            match options.open(&path) {
                Ok(mut file) => file.write_all(key.as_bytes()).and_then(|()| file.sync_all())?,
                // Another process was first; its key is the one.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| format!("can't write {}", path.display())),
            }
        }
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
        ensure!(!text.trim().is_empty(), "{} is empty", path.display());
        Self::parse(text.trim())
    }

    /// The key for one purpose.
    pub fn derive(&self, label: &str) -> [u8; 32] {
        let mut key = [0; 32];
        // Fails only for outputs of more than 255 hashes.
        if Hkdf::<Sha256>::new(None, &self.0).expand(label.as_bytes(), &mut key).is_err() {
            unreachable!("32 bytes are one hash")
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_give_different_keys_and_the_same_one_each_time() {
        let key = MasterKey::parse(&MasterKey::generate().unwrap()).unwrap();
        assert_eq!(key.derive("cursor"), key.derive("cursor"));
        assert_ne!(key.derive("cursor"), key.derive("session"));
    }

    #[test]
    fn lists_use_their_first_key() {
        let (a, b) = (MasterKey::generate().unwrap(), MasterKey::generate().unwrap());
        let list = MasterKey::parse(&format!("k2:{a},k1:{b}")).unwrap();
        assert_eq!(list.derive("x"), MasterKey::parse(&a).unwrap().derive("x"));
        assert!(MasterKey::parse("short").is_err());
    }
}
