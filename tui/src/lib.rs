//! `loupe console`: the terminal console.
//!
//! The shape is one loop: a message goes into `update`, which changes the state and answers
//! effects; the driver performs them with the REST client and feeds back what they brought;
//! `view` draws the state and changes nothing.
//!
//! The command line shows the same things in the same words, so it borrows how they read:
//! [`mod@format`], [`text`] and [`theme`].

mod content;
mod detail;
mod driver;
#[cfg(test)]
mod fixture;
pub mod format;
mod input;
mod keymap;
mod layout;
mod list;
mod msg;
mod screens;
mod state;
mod terminal;
pub mod text;
pub mod theme;
mod tree;
mod update;
mod view;
mod widgets;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    io::{self, IsTerminal, Write},
};

use anyhow::Context;
use api::client::{Client, Retry};
use ratatui::{Terminal, backend::CrosstermBackend};

use crate::{
    format::Zone,
    state::{State, Target},
    theme::Theme,
};

/// How the console is started.
#[derive(Clone, Default)]
pub struct Options {
    /// Base address of the server.
    pub url: String,
    /// API key, if there is one.
    pub api_key: Option<String>,
    /// Session token, if there is one; used when there is no API key.
    pub session_token: Option<String>,
    /// Name of the context, shown in the header.
    pub context_name: Option<String>,
    /// The context is marked as one to be careful with.
    pub protected: bool,
    /// Offer nothing that changes the server. This version offers nothing of the kind anyway.
    pub read_only: bool,
    /// Name or id of the project to show; all projects if absent.
    pub project: Option<String>,
    /// Filter to begin with.
    pub filter: Option<String>,
    /// Id of the trace to open.
    pub trace: Option<String>,
    /// Digit or name of the screen to begin with.
    pub screen: Option<String>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = |secret: &Option<String>| secret.as_ref().map(|_| "***");
        f.debug_struct("Options")
            .field("url", &self.url)
            .field("api_key", &secret(&self.api_key))
            .field("session_token", &secret(&self.session_token))
            .field("context_name", &self.context_name)
            .field("protected", &self.protected)
            .field("read_only", &self.read_only)
            .field("project", &self.project)
            .field("filter", &self.filter)
            .field("trace", &self.trace)
            .field("screen", &self.screen)
            .finish()
    }
}

/// Standard input or output is not a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTerminal;

impl fmt::Display for NoTerminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("console needs a terminal; for pipes use `loupe traces tail`")
    }
}

impl std::error::Error for NoTerminal {}

/// Runs the console until the reader quits, and leaves the terminal as it was.
///
/// # Errors
/// [`NoTerminal`] when there is none; otherwise an address or a credential that can't be
/// used, or a terminal that can't be drawn to. A server that is away is no error: the console
/// shows that and waits for it.
pub async fn run(options: Options) -> anyhow::Result<()> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(NoTerminal.into());
    }
    let mut connection = api::client::Options::new(&options.url);
    connection.api_key.clone_from(&options.api_key);
    connection.session_token.clone_from(&options.session_token);
    connection.timeout = std::time::Duration::from_secs(20);
    // The console shows the wait and repeats by itself.
    connection.retry = Retry::NEVER;
    let client = Client::new(connection)?;

    #[expect(clippy::disallowed_methods, reason = "colours and characters are the terminal's own settings")]
    let theme = Theme::of_environment(|name| std::env::var(name).ok());
    let size = crossterm::terminal::size().context("the terminal does not tell its size")?;
    let mut state = State::new(target(&options), theme, Zone::Local, driver::now(), size);
    let effects = update::start(&mut state, &options);
    let result = {
        let guard = terminal::Guard::take().context("can't take the terminal over")?;
        let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let result = driver::run(client, &mut state, &mut terminal, effects).await;
        drop(guard);
        result
    };
    result?;
    // A terminal that is gone by now has no reader for these lines.
    let _ = io::stdout().write_all(farewell().as_bytes());
    Ok(())
}

/// The keys as TOML: a `[keys]` section of action names and their sequences.
pub fn print_keymap() -> String {
    keymap::to_toml()
}

fn target(options: &Options) -> Target {
    let prefix = |secret: &str| secret.chars().take(11).collect::<String>();
    let (credential, variable) = match (&options.api_key, &options.session_token) {
        (Some(key), _) => (Some(format!("API key {}...", prefix(key))), "LOUPE_API_KEY"),
        (None, Some(_)) => (Some("session token".to_owned()), "LOUPE_SESSION_TOKEN"),
        (None, None) => (None, "LOUPE_API_KEY"),
    };
    Target {
        url: options.url.trim_end_matches('/').to_owned(),
        context: options.context_name.clone(),
        protected: options.protected,
        credential,
        variable,
        project: options.project.clone(),
    }
}

fn farewell() -> &'static str {
    "What next:\n  \
     loupe traces tail     follow in a pipe\n  \
     loupe traces get ID   one trace, as text or JSON\n  \
     loupe auth login      store a key or a session\n  \
     loupe help            everything else\n"
}
