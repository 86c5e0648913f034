//! Settings of a run. Precedence: flags, environment, `.loupe.toml`, the context, defaults.
//!
//! [`api::profile`] reads and writes the files; the client chooses the credential of each call. Every
//! value records its source, for `auth status` and `context show`.

pub mod expiry;
mod format;
pub mod local;

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use api::{
    client::{Observer, Options, Retry},
    filter::{Saved, when::duration_ms},
    profile::{self, Config, Context, Credentials, Secrets},
};

use crate::{
    args::GlobalArgs,
    env::Env,
    error::{CliError, Result},
    format::Format,
};

/// Default address of the server.
pub const DEFAULT_URL: &str = "http://127.0.0.1:4600";

/// A value and its source.
#[derive(Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// The source, such as `flag`, `LOUPE_URL` or `context prod`.
    pub source: String,
}

impl<T> Sourced<T> {
    /// Creates a value with its source.
    pub fn new(value: T, source: impl Into<String>) -> Self {
        Self { value, source: source.into() }
    }
}

impl<T> fmt::Debug for Sourced<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from {}", self.source)
    }
}

/// The settings of a run, resolved before the command starts.
#[derive(Debug)]
pub struct Settings {
    /// Folder of the profile, if one can be determined.
    pub dir: Option<PathBuf>,
    /// `config.toml`.
    pub config: Config,
    /// The context in use, if any.
    pub context_name: Option<Sourced<String>>,
    /// Settings of the context in use; empty without a context.
    pub context: Context,
    /// Address of the server.
    pub url: Sourced<String>,
    /// API key.
    pub api_key: Option<Sourced<String>>,
    /// Session token.
    pub session: Option<Sourced<String>>,
    /// Project by name or id.
    pub project: Option<Sourced<String>>,
    /// Output format.
    pub format: Sourced<Format>,
    /// Saved filters.
    pub filters: Saved,
    /// Time limit of the whole command, if one is set.
    pub timeout: Option<Sourced<Duration>>,
    /// Maximum number of attempts for a request.
    pub attempts: Sourced<u32>,
    /// Whether tables show UTC instead of local time.
    pub utc: bool,
    /// Warnings about the configuration files, for stderr.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Resolves all settings. Fails if a file cannot be read or a value is invalid.
    pub fn resolve(global: &GlobalArgs, env: &Env) -> Result<Self> {
        let dir = profile::config_dir(|name| env.var(name).map(str::to_owned));
        let config = dir.as_deref().map(Config::load).transpose()?.unwrap_or_default();
        let credentials = dir.as_deref().map(Credentials::load).transpose()?.unwrap_or_default();
        let local = env.cwd.as_deref().map(local::find).transpose()?.flatten();

        let context_name = flag_or_variable(&global.context, env, "LOUPE_CONTEXT")
            .or_else(|| Some(Sourced::new(config.current.clone()?, profile::CONFIG_FILE)));
        let context = match &context_name {
            None => Context::default(),
            Some(name) => match config.contexts.get(&name.value) {
                Some(context) => context.clone(),
                // `auth login` and `context set` create contexts, so the flag may contain a new name.
                None if global.new_context => Context::default(),
                None => return Err(unknown_context(name, &config.contexts)),
            },
        };
        let context_source =
            context_name.as_ref().map(|name| format!("context {}", name.value)).unwrap_or_default();
        let secrets = context_name.as_ref().and_then(|name| credentials.contexts.get(&name.value)).cloned();
        let Secrets { api_key, session_token } = secrets.unwrap_or_default();

        let url = flag_or_variable(&global.url, env, "LOUPE_URL")
            .or_else(|| Some(Sourced::new(context.url.clone()?, context_source.as_str())))
            .unwrap_or_else(|| Sourced::new(DEFAULT_URL.to_owned(), "default"));
        let project = flag_or_variable(&global.project, env, "LOUPE_PROJECT")
            .or_else(|| {
                let (path, file) = local.as_ref()?;
                Some(Sourced::new(file.project.clone()?, path.display().to_string()))
            })
            .or_else(|| Some(Sourced::new(context.project.clone()?, context_source.as_str())));

        let local_output = local
            .as_ref()
            .and_then(|(path, file)| Some(Sourced::new(file.output.clone()?, path.display().to_string())));
        let configured =
            local_output.or_else(|| Some(Sourced::new(config.output.format.clone()?, profile::CONFIG_FILE)));
        let format = format::resolve(global, env, configured)?;
        let mut filters = config.filters.clone();
        filters.extend(local.iter().flat_map(|(_, file)| file.filters.clone()));

        Ok(Self {
            api_key: secret(env, "LOUPE_API_KEY", api_key, &context_source)?,
            session: secret(env, "LOUPE_SESSION_TOKEN", session_token, &context_source)?,
            timeout: timeout(global, env)?,
            attempts: attempts(global, env)?,
            utc: config.output.time.as_deref() == Some("utc"),
            warnings: loose_mode(dir.as_deref()),
            dir,
            config,
            context_name,
            context,
            url,
            project,
            format,
            filters,
        })
    }

    /// Returns the options of the client.
    pub fn client(&self, observer: Option<Observer>) -> Options {
        let mut options = Options::new(self.url.value.clone());
        options.api_key = self.api_key.as_ref().map(|key| key.value.clone());
        options.session_token = self.session.as_ref().map(|token| token.value.clone());
        options.retry = Retry { attempts: self.attempts.value, ..Retry::default() };
        options.timeout = self.timeout.as_ref().map_or(options.timeout, |limit| limit.value);
        options.observer = observer;
        options
    }

    /// Returns the folder of the profile, for commands that write to it.
    pub fn profile_dir(&self) -> Result<&std::path::Path> {
        let missing =
            || CliError::usage("no folder for the configuration").hint("set LOUPE_CONFIG_DIR or HOME");
        self.dir.as_deref().ok_or_else(missing)
    }
}

/// Parses a duration of the command line.
pub fn duration(text: &str) -> Result<Duration> {
    duration_ms(text).map(Duration::from_millis).map_err(CliError::usage)
}

fn flag_or_variable(flag: &Option<String>, env: &Env, variable: &str) -> Option<Sourced<String>> {
    let flag = flag.as_ref().map(|value| Sourced::new(value.clone(), "flag"));
    flag.or_else(|| Some(Sourced::new(env.var(variable)?.to_owned(), variable)))
}

/// Returns a secret: from its variable, otherwise from the file that the variable with `_FILE` names,
/// otherwise the stored one.
fn secret(
    env: &Env,
    variable: &str,
    stored: Option<String>,
    context_source: &str,
) -> Result<Option<Sourced<String>>> {
    if let Some(value) = env.var(variable) {
        return Ok(Some(Sourced::new(value.trim().to_owned(), variable)));
    }
    let file = format!("{variable}_FILE");
    if let Some(path) = env.var(&file) {
        let text = std::fs::read_to_string(path).map_err(|error| {
            CliError::new(
                crate::exit::Exit::Unauthenticated,
                format!("{file}: {path}: {}", api::plain::io_error(&error)),
            )
        })?;
        return Ok(Some(Sourced::new(text.trim().to_owned(), format!("{file} ({path})"))));
    }
    Ok(stored.filter(|value| !value.is_empty()).map(|value| Sourced::new(value, context_source)))
}

fn timeout(global: &GlobalArgs, env: &Env) -> Result<Option<Sourced<Duration>>> {
    let text = flag_or_variable(&global.timeout, env, "LOUPE_TIMEOUT");
    text.map(|text| Ok(Sourced::new(duration(&text.value)?, text.source))).transpose()
}

fn attempts(global: &GlobalArgs, env: &Env) -> Result<Sourced<u32>> {
    if let Some(tries) = global.retries {
        return Ok(Sourced::new(tries, "flag"));
    }
    let Some(text) = env.var("LOUPE_RETRIES") else {
        return Ok(Sourced::new(Retry::default().attempts, "default"));
    };
    let tries =
        crate::args::positive(text).map_err(|why| CliError::usage(format!("LOUPE_RETRIES: {why}")))?;
    Ok(Sourced::new(tries, "LOUPE_RETRIES"))
}

fn unknown_context(name: &Sourced<String>, contexts: &BTreeMap<String, Context>) -> CliError {
    let known: Vec<_> = contexts.keys().map(String::as_str).collect();
    let hint = match known.as_slice() {
        [] => "there are no contexts yet: `loupe auth login --url URL` creates one".to_owned(),
        known => format!("contexts: {}", known.join(", ")),
    };
    CliError::usage(format!("there is no context `{}` (from {})", name.value, name.source)).hint(hint)
}

fn loose_mode(dir: Option<&std::path::Path>) -> Vec<String> {
    #[cfg(unix)]
    if let Some(path) = dir.map(|dir| dir.join(profile::CREDENTIALS_FILE)) {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).map(|data| data.permissions().mode() & 0o777).unwrap_or_default();
        if mode & 0o077 != 0 {
            let path = path.display();
            return vec![format!(
                "warning: {path} can be read by others (mode {mode:o}); run: chmod 600 {path}"
            )];
        }
    }
    #[cfg(not(unix))]
    let _ = dir;
    Vec::new()
}

#[cfg(test)]
mod tests;
