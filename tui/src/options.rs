//! The options that the console is started with.

use std::{fmt, path::PathBuf};

use api::filter::Saved;

use crate::keymap::Rebinding;

/// The options of the console.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The server to begin with.
    pub connection: Connection,
    /// The contexts that the console can switch to, each with its stored credentials.
    pub contexts: Vec<Connection>,
    /// Saved filters, used as `@name`.
    pub filters: Saved,
    /// The configured keys of actions.
    pub keys: Rebinding,
    /// The folder of the bookmarks; without one, they are not stored.
    pub state_dir: Option<PathBuf>,
    /// Filter to begin with.
    pub filter: Option<String>,
    /// Id of the trace to open.
    pub trace: Option<String>,
    /// Digit or name of the screen to begin with.
    pub screen: Option<String>,
}

/// A server, how to sign in to it, and how to treat it.
#[derive(Clone, Default)]
pub struct Connection {
    /// Base address of the server.
    pub url: String,
    /// API key, if there is one.
    pub api_key: Option<String>,
    /// Session token, if there is one. Some endpoints accept no API key.
    pub session_token: Option<String>,
    /// Name of the context, shown in the header.
    pub context: Option<String>,
    /// Whether the context is protected: a confirmation requires typing.
    pub protected: bool,
    /// Whether changes are hidden.
    pub read_only: bool,
    /// Name or id of the project to show; all projects if absent.
    pub project: Option<String>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = |secret: &Option<String>| secret.as_ref().map(|_| "***");
        f.debug_struct("Connection")
            .field("url", &self.url)
            .field("api_key", &secret(&self.api_key))
            .field("session_token", &secret(&self.session_token))
            .field("context", &self.context)
            .field("protected", &self.protected)
            .field("read_only", &self.read_only)
            .field("project", &self.project)
            .finish()
    }
}

/// The part of a [`Connection`] that can be shown. It contains no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Address of the server, without a slash at its end.
    pub url: String,
    /// Name of the context in use.
    pub context: Option<String>,
    /// Whether the context is protected.
    pub protected: bool,
    /// Whether changes are hidden.
    pub read_only: bool,
    /// Whether there is an API key.
    pub api_key: bool,
    /// Whether there is a session token.
    pub session: bool,
    /// A description of the credential used for reading: its kind and first characters.
    pub credential: Option<String>,
    /// The environment variable that contains a credential of this kind.
    pub variable: &'static str,
    /// Name or id of the requested project.
    pub project: Option<String>,
}

impl Target {
    /// Returns the part of a connection that can be shown.
    pub fn of(connection: &Connection) -> Self {
        let prefix = |secret: &str| secret.chars().take(11).collect::<String>();
        let (credential, variable) = match (&connection.api_key, &connection.session_token) {
            (Some(key), _) => (Some(format!("API key {}...", prefix(key))), "LOUPE_API_KEY"),
            (None, Some(_)) => (Some("session token".to_owned()), "LOUPE_SESSION_TOKEN"),
            (None, None) => (None, "LOUPE_API_KEY"),
        };
        Self {
            url: connection.url.trim_end_matches('/').to_owned(),
            context: connection.context.clone(),
            protected: connection.protected,
            read_only: connection.read_only,
            api_key: connection.api_key.is_some(),
            session: connection.session_token.is_some(),
            credential,
            variable,
            project: connection.project.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let connection = Connection {
            api_key: Some("lp_abcdefghSECRET".to_owned()),
            session_token: Some("SECRET".to_owned()),
            ..Connection::default()
        };
        let shown = format!("{connection:?} {:?}", Target::of(&connection));
        assert!(!shown.contains("SECRET") && shown.contains("lp_abcdefgh..."), "{shown}");
    }
}
