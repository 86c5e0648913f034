//! `loupe console`: the terminal console.
//!
//! The console is one loop: a message goes into `update`, which changes the state and returns
//! effects; the driver performs them with the HTTP client and sends back their results as
//! messages; `view` draws the state and changes nothing.
//!
//! Formats, text width, tones and charts are those of the crate `present`, which the command line uses too.

mod anomalies;
mod app;
mod bookmarks;
mod change;
mod dialog;
mod evaluations;
mod find;
#[cfg(test)]
mod fixture;
mod fuzzy;
mod ids;
mod input;
mod keymap;
mod layout;
mod net;
mod options;
mod record;
mod screen;
mod shell;
mod terminal;
mod theme;
mod travel;
mod widgets;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    io::{self, IsTerminal, Write},
};

use anyhow::Context;
use ratatui::{Terminal, backend::CrosstermBackend};

use crate::{
    app::{App, connection, driver},
    bookmarks::Bookmarks,
    options::Target,
    theme::Theme,
};
pub use crate::{
    keymap::{KeymapError, Rebinding},
    options::{Connection, Options},
};
use present::format::Zone;

/// Standard input or output is not a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTerminal;

impl fmt::Display for NoTerminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("console needs a terminal; for pipes use `loupe traces tail`")
    }
}

impl std::error::Error for NoTerminal {}

/// Runs the console until the user quits, and leaves the terminal as it was.
///
/// # Errors
/// [`NoTerminal`] without a terminal, [`KeymapError`] if the keys cannot be used; otherwise an
/// address or a credential that cannot be used, or a terminal that cannot be drawn to. An
/// unreachable server is not an error: the console shows it and keeps trying.
pub async fn run(options: Options) -> anyhow::Result<()> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(NoTerminal.into());
    }
    let keymap = screen::keymap(&options.keys)?;
    let client = net::server::connect(&options.connection)?;

    #[expect(clippy::disallowed_methods, reason = "colours and characters are the terminal's own settings")]
    let theme = Theme::of_environment(|name| std::env::var(name).ok());
    let size = crossterm::terminal::size().context("the terminal does not report its size")?;
    let mut app = App::new(Target::of(&options.connection), theme, Zone::Local, driver::now(), size);
    app.shell.keymap = keymap;
    app.shell.rng = fastrand::Rng::new();
    app.shell.saved.clone_from(&options.filters);
    if let Some(dir) = &options.state_dir {
        app.shell.bookmarks = Bookmarks::load(dir);
    }
    app.shell.contexts = options.contexts.iter().map(Target::of).collect();
    let effects = connection::start(&mut app, &options);
    let result = {
        let guard = terminal::Guard::take().context("can't take the terminal over")?;
        let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let result =
            driver::run(client, options.contexts, options.state_dir, &mut app, &mut terminal, effects).await;
        drop(guard);
        result
    };
    result?;
    // The write fails if the terminal was closed, and then there is no place to report that.
    let _ = io::stdout().write_all(farewell().as_bytes());
    Ok(())
}

/// Describes an error of [`run`] in one line, with plain sentences for the errors of the operating system.
pub fn describe(error: &anyhow::Error) -> String {
    let sentence = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref::<io::Error>() {
        Some(error) => api::plain::io_error(error),
        None => cause.to_string(),
    };
    error.chain().map(sentence).collect::<Vec<_>>().join(": ")
}

/// Returns the current keys as TOML: a `[keys]` section of action names and their sequences.
///
/// # Errors
/// The configured keys cannot be used.
pub fn print_keymap(keys: &Rebinding) -> Result<String, KeymapError> {
    Ok(screen::keymap(keys)?.to_toml())
}

fn farewell() -> &'static str {
    "What next:\n  \
     loupe traces tail     follow in a pipe\n  \
     loupe traces get ID   one trace, as text or JSON\n  \
     loupe auth login      store a key or a session\n  \
     loupe help            everything else\n"
}
