//! The master key and the keys derived from it: one key per purpose, by label (HKDF-SHA256).

use std::{io::Write, path::Path};

use anyhow::{Context, bail, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use hkdf::Hkdf;
use sha2::Sha256;

/// Secret bytes from which all other keys are derived. Cannot be formatted.
///
/// The first key signs and seals; all keys verify and unseal, so that a key can be replaced while
/// servers run.
pub struct MasterKey(Vec<(String, [u8; 32])>);

/// Name of the file in the data directory.
const KEY_FILE: &str = "master.key";
/// Maximum length of a key ID in characters.
const MAX_ID_CHARS: usize = 32;

impl MasterKey {
    /// Parses `text`: base64 of 32 bytes, or a list `id:key,…`. A key without an ID is identified by a
    /// fingerprint.
    ///
    /// # Errors
    ///
    /// Fails when the text is neither, or two keys have the same ID.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut keys = Vec::new();
        for entry in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            let (id, encoded) =
                entry.split_once(':').map_or((None, entry), |(id, key)| (Some(id.trim()), key));
            let decoded = BASE64_STANDARD.decode(encoded.trim()).ok();
            let Some(key) = decoded.and_then(|it| <[u8; 32]>::try_from(it).ok()) else {
                bail!(
                    "a master key must be 32 bytes in base64; `loupe-server admin generate-key` generates one"
                );
            };
            let id = id.map_or_else(|| fingerprint(&key), str::to_owned);
            let readable = id.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it));
            ensure!(
                readable && (1..=MAX_ID_CHARS).contains(&id.len()),
                "the id of a master key must have 1 to {MAX_ID_CHARS} letters, digits, `-`, `_` or `.`"
            );
            ensure!(keys.iter().all(|(other, _)| *other != id), "two master keys have the id `{id}`");
            keys.push((id, key));
        }
        ensure!(!keys.is_empty(), "the master key is empty; `loupe-server admin generate-key` generates one");
        Ok(Self(keys))
    }

    /// Generates a key, in base64.
    ///
    /// # Errors
    ///
    /// Fails when the system has no randomness.
    pub fn generate() -> anyhow::Result<String> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).context("the system has no randomness")?;
        Ok(BASE64_STANDARD.encode(bytes))
    }

    /// Returns the key in the data directory, which is generated at the first start and readable by the
    /// owner only.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or written.
    pub fn in_directory(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(KEY_FILE);
        if !path.exists() {
            create_key_file(directory, &path).with_context(|| format!("can't write {}", path.display()))?;
        }
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
        ensure!(!text.trim().is_empty(), "{} is empty", path.display());
        Self::parse(text.trim())
    }

    /// Derives the key for one purpose from the first master key.
    pub fn derive(&self, label: &str) -> [u8; 32] {
        self.0.first().map_or([0; 32], |(_, key)| derive(key, label))
    }

    /// Derives the keys for one purpose from all master keys, with their IDs; the first one first.
    pub fn derive_all(&self, label: &str) -> Vec<(String, [u8; 32])> {
        self.0.iter().map(|(id, key)| (id.clone(), derive(key, label))).collect()
    }
}

/// Writes a new key to `path` atomically, unless another process was first; a crash leaves no partial
/// file.
fn create_key_file(directory: &Path, path: &Path) -> anyhow::Result<()> {
    let draft = directory.join(format!("{KEY_FILE}.{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    file.write_all(MasterKey::generate()?.as_bytes()).and_then(|()| file.sync_all())?;
    // Creating a link fails if the file exists.
    let placed = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft)?;
    match placed {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

fn derive(key: &[u8; 32], label: &str) -> [u8; 32] {
    let mut derived = [0; 32];
    // Fails only for outputs of more than 255 hashes.
    if Hkdf::<Sha256>::new(None, key).expand(label.as_bytes(), &mut derived).is_err() {
        unreachable!("32 bytes are a single hash")
    }
    derived
}

/// Returns the ID of a key without one; it reveals nothing about the key.
fn fingerprint(key: &[u8; 32]) -> String {
    derive(key, "fingerprint")[..4].iter().map(|it| format!("{it:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_key_depends_on_label_only() {
        let key = MasterKey::parse(&MasterKey::generate().unwrap()).unwrap();
        assert_eq!(key.derive("cursor"), key.derive("cursor"));
        assert_ne!(key.derive("cursor"), key.derive("session"));
    }

    #[test]
    fn first_master_key_of_a_list_is_current() {
        let (a, b) = (MasterKey::generate().unwrap(), MasterKey::generate().unwrap());
        let list = MasterKey::parse(&format!("k2:{a},k1:{b}")).unwrap();
        assert_eq!(list.derive("x"), MasterKey::parse(&a).unwrap().derive("x"));
        let all = list.derive_all("x");
        assert_eq!(all.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(), ["k2", "k1"]);
        assert_eq!(all[1].1, MasterKey::parse(&b).unwrap().derive("x"));
        let unnamed = MasterKey::parse(&a).unwrap().derive_all("x");
        assert_eq!(unnamed, MasterKey::parse(&format!(" {a} ,")).unwrap().derive_all("x"));
        assert_eq!(unnamed[0].0.len(), 8);
    }

    #[test]
    fn invalid_master_key_is_rejected() {
        let key = MasterKey::generate().unwrap();
        for text in
            ["", ",", "short", "k:", &format!("a:{key},a:{key}"), &format!("a b:{key}"), &format!(":{key}")]
        {
            assert!(MasterKey::parse(text).is_err(), "{text}");
        }
    }
}
