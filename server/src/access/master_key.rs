//! The master key and what is derived from it: one key a purpose, by label (HKDF-SHA256).

use std::{io::Write, path::Path};

use anyhow::{Context, bail, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use hkdf::Hkdf;
use sha2::Sha256;

/// Secret bytes that everything else is derived from. Not printable.
///
/// The first key signs and seals; all of them check and open, so that one can take the place of
/// another while servers run.
pub struct MasterKey(Vec<(String, [u8; 32])>);

/// Name of the file in the data directory.
const FILE: &str = "master.key";
/// Characters of a key's id.
const MAX_ID: usize = 32;

impl MasterKey {
    /// Reads `text`: base64 of 32 bytes, or a list `id:key,…`. A key without an id is known by a
    /// fingerprint.
    ///
    /// # Errors
    /// When it is neither, or two keys have one id.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut keys = Vec::new();
        for entry in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            let (id, encoded) =
                entry.split_once(':').map_or((None, entry), |(id, key)| (Some(id.trim()), key));
            let decoded = BASE64_STANDARD.decode(encoded.trim()).ok();
            let Some(key) = decoded.and_then(|it| <[u8; 32]>::try_from(it).ok()) else {
                bail!("a master key must be 32 bytes in base64; `loupe-server admin generate-key` makes one");
            };
            let id = id.map_or_else(|| fingerprint(&key), str::to_owned);
            let readable = id.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it));
            ensure!(
                readable && (1..=MAX_ID).contains(&id.len()),
                "the id of a master key must have 1 to {MAX_ID} letters, digits, `-`, `_` or `.`"
            );
            ensure!(keys.iter().all(|(other, _)| *other != id), "two master keys have the id `{id}`");
            keys.push((id, key));
        }
        ensure!(!keys.is_empty(), "the master key is empty; `loupe-server admin generate-key` makes one");
        Ok(Self(keys))
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
            place_new(directory, &path).with_context(|| format!("can't write {}", path.display()))?;
        }
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
        ensure!(!text.trim().is_empty(), "{} is empty", path.display());
        Self::parse(text.trim())
    }

    /// The key for one purpose that follows from the first master key.
    pub fn derive(&self, label: &str) -> [u8; 32] {
        self.0.first().map_or([0; 32], |(_, key)| derive(key, label))
    }

    /// The keys for one purpose that follow from all master keys, with their ids, the first first.
    pub fn derive_all(&self, label: &str) -> Vec<(String, [u8; 32])> {
        self.0.iter().map(|(id, key)| (id.clone(), derive(key, label))).collect()
    }
}

/// Puts a new key at `path`, unless another process is first; whole or not at all, also when the
/// machine stops in between.
fn place_new(directory: &Path, path: &Path) -> anyhow::Result<()> {
    let draft = directory.join(format!("{FILE}.{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    file.write_all(MasterKey::generate()?.as_bytes()).and_then(|()| file.sync_all())?;
    // A link is made only where nothing is.
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
        unreachable!("32 bytes are one hash")
    }
    derived
}

/// What a key without an id is known by: it tells nothing about the key.
fn fingerprint(key: &[u8; 32]) -> String {
    derive(key, "fingerprint")[..4].iter().map(|it| format!("{it:02x}")).collect()
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
    fn the_first_key_of_a_list_is_the_one_and_the_others_are_there() {
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
    fn what_is_no_key_is_refused() {
        let key = MasterKey::generate().unwrap();
        for text in
            ["", ",", "short", "k:", &format!("a:{key},a:{key}"), &format!("a b:{key}"), &format!(":{key}")]
        {
            assert!(MasterKey::parse(text).is_err(), "{text}");
        }
    }
}
