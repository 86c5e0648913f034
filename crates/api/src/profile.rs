//! The user's configuration files: servers and credentials.
//!
//! `config.toml` names contexts (address, project, protection) and contains no secret;
//! `credentials.toml` beside it contains the secrets and is readable by its owner only. The command
//! line reads and writes both; the server writes a context at its first start. Flags and environment
//! variables that override them are handled by the command line.

mod document;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Name of the file without secrets.
pub const CONFIG_FILE: &str = "config.toml";
/// Name of the file with secrets.
pub const CREDENTIALS_FILE: &str = "credentials.toml";

/// The contents of `config.toml`. Unknown sections are preserved when it is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Name of the current context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Defaults of the output.
    #[serde(default, skip_serializing_if = "OutputConfig::is_default")]
    pub output: OutputConfig,
    /// Saved filters by name, used as `@name`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filters: BTreeMap<String, String>,
    /// Contexts by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contexts: BTreeMap<String, Context>,
    /// All other sections, such as `[console]` and `[keys]`.
    #[serde(flatten)]
    pub rest: toml::Table,
}

/// A server and how the programs use it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    /// Base address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Name or ID of the default project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Whether dangerous changes require typing a name.
    #[serde(skip_serializing_if = "is_false")]
    pub protected: bool,
    /// Whether the programs refuse writes.
    #[serde(skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// Whether a program created it for its own lifetime, such as the server's demo.
    #[serde(skip_serializing_if = "is_false")]
    pub temporary: bool,
}

/// `[output]` of `config.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputConfig {
    /// Default format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// `local` or `utc`, for tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}

impl OutputConfig {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The contents of `credentials.toml`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// Secrets by the name of their context.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contexts: BTreeMap<String, Secrets>,
}

/// The secrets of one context.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Secrets {
    /// An API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// A session token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
}

/// Error of reading or writing a configuration file.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file cannot be read or written.
    #[error("{path}: {}", crate::plain::io_error(source), path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not valid TOML, or has the wrong shape. The message quotes no line, so that it shows
    /// no secret.
    #[error("{path}: {message}", path = path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The error and its line.
        message: String,
    },
}

/// Returns the folder of the configuration: `LOUPE_CONFIG_DIR`, else `loupe` in `XDG_CONFIG_HOME` or in
/// `~/.config`. `None` if none of these variables is set. `env` looks up a variable.
pub fn config_dir(env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("LOUPE_CONFIG_DIR").or_else(|| {
        let home = || set("HOME").or_else(|| set("USERPROFILE")).map(|home| home.join(".config"));
        Some(set("XDG_CONFIG_HOME").or_else(home)?.join("loupe"))
    })
}

/// Returns the folder of persistent state, such as histories: `LOUPE_CONFIG_DIR`, else `loupe` in
/// `XDG_STATE_HOME` or in `~/.local/state`. `None` if none of these variables is set.
pub fn state_dir(env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("LOUPE_CONFIG_DIR").or_else(|| {
        let home = || set("HOME").or_else(|| set("USERPROFILE")).map(|home| home.join(".local/state"));
        Some(set("XDG_STATE_HOME").or_else(home)?.join("loupe"))
    })
}

impl Config {
    /// Reads `config.toml` from a folder; a missing file is an empty configuration.
    pub fn load(dir: &Path) -> Result<Self, ProfileError> {
        load(&dir.join(CONFIG_FILE))
    }

    /// Writes `config.toml`, creating the folder if needed. Comments and unchanged lines stay as they are.
    pub fn save(&self, dir: &Path) -> Result<(), ProfileError> {
        save(dir, CONFIG_FILE, self)
    }
}

impl Credentials {
    /// Reads `credentials.toml` from a folder; a missing file means no secrets.
    pub fn load(dir: &Path) -> Result<Self, ProfileError> {
        load(&dir.join(CREDENTIALS_FILE))
    }

    /// Writes `credentials.toml` with mode 0600, creating the folder with mode 0700 if needed. Comments and
    /// unchanged lines stay as they are.
    pub fn save(&self, dir: &Path) -> Result<(), ProfileError> {
        save(dir, CREDENTIALS_FILE, self)
    }
}

/// Adds or replaces a context and its secrets, and makes it current if there is no current context. A
/// secret that is `None` keeps its stored value.
pub fn write_context(
    dir: &Path,
    name: &str,
    url: &str,
    api_key: Option<&str>,
    session_token: Option<&str>,
) -> Result<(), ProfileError> {
    let mut credentials = Credentials::load(dir)?;
    let secrets = credentials.contexts.entry(name.to_owned()).or_default();
    if let Some(key) = api_key {
        secrets.api_key = Some(key.to_owned());
    }
    if let Some(token) = session_token {
        secrets.session_token = Some(token.to_owned());
    }
    let mut config = Config::load(dir)?;
    config.contexts.entry(name.to_owned()).or_default().url = Some(url.to_owned());
    config.current.get_or_insert_with(|| name.to_owned());
    credentials.save(dir)?;
    config.save(dir)
}

/// Replaces a file atomically; the new file is readable by its owner only. A reader sees the old or the
/// new content, and a crash leaves no partial file.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("file");
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = create_private(&temporary)
        .and_then(|mut file| {
            io::Write::write_all(&mut file, content)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to report.
        _ = fs::remove_file(&temporary);
    }
    written
}

/// Creates a file with mode 0600. Fails if the file or a link of this name exists.
pub fn create_private(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn load<T: DeserializeOwned + Default>(path: &Path) -> Result<T, ProfileError> {
    read(path)?.map_or_else(|| Ok(T::default()), |text| parse(path, &text))
}

/// Reads a file of the profile; none if it does not exist.
fn read(path: &Path) -> Result<Option<String>, ProfileError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ProfileError::Io { path: path.to_owned(), source }),
    }
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ProfileError> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let place = line.map(|line| format!("line {line} ")).unwrap_or_default();
        let message = format!("{place}is not valid TOML, or holds a value of the wrong type");
        ProfileError::Syntax { path: path.to_owned(), message }
    })
}

fn save<T: Serialize + DeserializeOwned>(dir: &Path, file: &str, value: &T) -> Result<(), ProfileError> {
    let path = dir.join(file);
    let unwritable =
        || ProfileError::Syntax { path: path.clone(), message: "it can't be written as TOML".to_owned() };
    let table = |value: &T| toml::Table::try_from(value).map_err(|_| unwritable());
    let text = read(&path)?.unwrap_or_default();
    let stored = table(&parse(&path, &text)?)?;
    let changed = document::change(&text, &stored, &table(value)?).ok_or_else(unwritable)?;
    private_dir(dir)
        .and_then(|()| write_private(&path, changed.as_bytes()))
        .map_err(|source| ProfileError::Io { path, source })
}

fn private_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn written_context_is_read_back_and_unknown_sections_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(CONFIG_FILE), "[console]\ntheme = \"dark\"\n").unwrap();
        write_context(dir.path(), "local", "http://127.0.0.1:4600", Some("lp_a"), None).unwrap();
        write_context(dir.path(), "local", "http://127.0.0.1:4601", None, Some("token")).unwrap();

        let config = Config::load(dir.path()).unwrap();
        assert_eq!(config.current.as_deref(), Some("local"));
        assert_eq!(config.contexts["local"].url.as_deref(), Some("http://127.0.0.1:4601"));
        assert_eq!(config.rest["console"]["theme"].as_str(), Some("dark"));
        let secrets = &Credentials::load(dir.path()).unwrap().contexts["local"];
        assert_eq!(secrets.api_key.as_deref(), Some("lp_a"));
        assert_eq!(secrets.session_token.as_deref(), Some("token"));
    }

    #[test]
    fn writing_a_context_keeps_comments_and_unchanged_lines() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let config = "# servers of our team\ncurrent = 'prod' # not staging\n\n# keep in step with the wiki\n\
                      [contexts.prod]\nurl = \"https://prod\"\nprotected = false\n";
        fs::write(dir.path().join(CONFIG_FILE), config).unwrap();
        fs::write(dir.path().join(CREDENTIALS_FILE), "# rotate in May\n").unwrap();
        write_context(dir.path(), "local", "http://127.0.0.1:4600", Some("lp_a"), None).unwrap();
        let added = "\n[contexts.local]\nurl = \"http://127.0.0.1:4600\"\n";
        assert_eq!(file(CONFIG_FILE), format!("{config}{added}"));
        assert_eq!(file(CREDENTIALS_FILE), "# rotate in May\n\n[contexts.local]\napi_key = \"lp_a\"\n");
        write_context(dir.path(), "prod", "https://new", None, None).unwrap();
        assert_eq!(file(CONFIG_FILE), format!("{config}{added}").replace("https://prod", "https://new"));
    }

    #[cfg(unix)]
    #[test]
    fn credentials_are_written_with_mode_0600_over_a_public_file() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("loupe");
        write_context(&dir, "a", "http://x", Some("k"), None).unwrap();
        let file = dir.join(CREDENTIALS_FILE);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        write_context(&dir, "a", "http://x", Some("k"), None).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn credentials_syntax_error_names_line_without_secret() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(CREDENTIALS_FILE), "[contexts.a]\napi_key = lp_secret\n").unwrap();
        let message = Credentials::load(dir.path()).err().unwrap().to_string();
        assert!(message.contains("line 2") && !message.contains("lp_secret"), "{message}");
    }

    #[test]
    fn config_folder_follows_environment_variables() {
        let env = |pairs: &'static [(&str, &str)]| {
            config_dir(|name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(env(&[("LOUPE_CONFIG_DIR", "/c"), ("HOME", "/h")]), Some("/c".into()));
        assert_eq!(env(&[("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")]), Some("/x/loupe".into()));
        assert_eq!(env(&[("XDG_CONFIG_HOME", ""), ("HOME", "/h")]), Some("/h/.config/loupe".into()));
        assert_eq!(env(&[]), None);
    }
}
