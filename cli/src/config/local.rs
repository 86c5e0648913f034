//! The file `.loupe.toml` in the working directory or the nearest folder above it. It may set the project,
//! the output format and filters, but nothing that decides where a credential is sent.

use std::path::{Path, PathBuf};

use api::filter::Saved;
use serde::Deserialize;

use crate::error::{CliError, Result};

/// Name of the file.
pub const LOCAL_FILE_NAME: &str = ".loupe.toml";

/// The settings that the file may contain.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalFile {
    /// Project by name or id.
    pub project: Option<String>,
    /// Output format.
    pub output: Option<String>,
    /// Saved filters by name.
    pub filters: Saved,
}

/// Finds and reads the nearest file in a folder or those above it.
pub fn find(from: &Path) -> Result<Option<(PathBuf, LocalFile)>> {
    for folder in from.ancestors() {
        let path = folder.join(LOCAL_FILE_NAME);
        match std::fs::read_to_string(&path) {
            Ok(text) => return read(&text, &path).map(|file| Some((path, file))),
            Err(_) => continue,
        }
    }
    Ok(None)
}

fn read(text: &str, path: &Path) -> Result<LocalFile> {
    let name = path.display();
    let table: toml::Table = toml::from_str(text).map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |it| text[..it.start.min(text.len())].matches('\n').count() + 1);
        CliError::usage(format!("{name}: line {line} is not valid TOML"))
    })?;
    if table.contains_key("url") {
        // Otherwise a file in a repository could send the key of everyone who works in it to any server.
        let message = format!("{name} sets `url`, which only a flag, the environment or a context may set");
        return Err(CliError::usage(message).hint("remove it, and use `loupe context set NAME --url URL`"));
    }
    table.try_into().map_err(|_: toml::de::Error| {
        CliError::usage(format!("{name} contains an unknown setting or a value of the wrong type"))
            .hint("it may contain project, output and [filters], all with text values")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_file_with_an_address_is_refused() {
        let path = Path::new("/w/.loupe.toml");
        assert!(read("url = \"http://evil\"", path).unwrap_err().message.contains("sets `url`"));
        assert!(read("api_key = \"x\"", path).is_err());
        let file = read("project = \"p\"\n[filters]\nslow = \"latency:>1s\"", path).unwrap();
        assert_eq!(file.project.as_deref(), Some("p"));
        assert_eq!(file.filters["slow"], "latency:>1s");
    }
}
