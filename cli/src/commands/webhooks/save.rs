//! Saves received deliveries as files.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use api::profile::create_private;

use super::signature::Headers;
use crate::{
    error::{CliError, Result},
    exit::Exit,
};

/// A folder with the files `NNN.body` and `NNN.headers` of each delivery.
pub struct SaveFolder {
    folder: PathBuf,
    number: u32,
}

impl SaveFolder {
    /// Creates the folder if it does not exist.
    pub fn new(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
        Ok(Self { folder, number: 0 })
    }

    /// Writes a delivery under the next free number, and returns the path of its body. Existing files are kept.
    pub fn write(&mut self, headers: &Headers, body: &[u8]) -> Result<String> {
        let text: String = headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        loop {
            self.number += 1;
            let path = |kind: &str| self.folder.join(format!("{:03}.{kind}", self.number));
            let written = match create_private(&path("body")) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created
                    .and_then(|mut file| file.write_all(body))
                    .and_then(|()| create_private(&path("headers")))
                    .and_then(|mut file| file.write_all(text.as_bytes())),
            };
            written.map_err(|error| failed(&path("body"), &error))?;
            return Ok(path("body").to_string_lossy().into_owned());
        }
    }
}

fn failed(path: &Path, error: &io::Error) -> CliError {
    let why = api::plain::io_error(error);
    CliError::new(Exit::Unexpected, format!("can't write {}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_deliveries_do_not_replace_earlier_ones() {
        let dir = tempfile::tempdir().unwrap();
        let headers = vec![("webhook-id".to_owned(), "1".to_owned())];
        let first = SaveFolder::new(dir.path().join("new")).unwrap().write(&headers, b"one").unwrap();
        let second = SaveFolder::new(dir.path().join("new")).unwrap().write(&headers, b"two").unwrap();
        assert!(first.ends_with("001.body") && second.ends_with("002.body"), "{first} {second}");
        assert_eq!(fs::read(first).unwrap(), b"one");
        assert_eq!(fs::read_to_string(second.replace("body", "headers")).unwrap(), "webhook-id: 1\n");
    }
}
