//! The environment of the process: variables, terminals and the clock.

use std::{collections::HashMap, io::IsTerminal, path::PathBuf};

use chrono::{DateTime, Local};

/// The variables, the working directory and the terminals of the process. Tests construct it directly.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// Environment variables; those that are not UTF-8 are left out.
    pub vars: HashMap<String, String>,
    /// Working directory.
    pub cwd: Option<PathBuf>,
    /// Whether stdin is a terminal.
    pub stdin_tty: bool,
    /// Whether stdout is a terminal.
    pub stdout_tty: bool,
    /// Whether stderr is a terminal.
    pub stderr_tty: bool,
    /// Columns of the terminal of stdout, if it is one of known size.
    pub columns: Option<usize>,
    /// Rows of the terminal of stdout, if it is one of known size.
    pub rows: Option<usize>,
    /// Columns of the terminal of stderr, if it is one of known size.
    pub stderr_columns: Option<usize>,
}

impl Env {
    /// Reads the environment of this process.
    pub fn of_process() -> Self {
        let vars = std::env::vars_os();
        let stdout_tty = std::io::stdout().is_terminal();
        let stderr_tty = std::io::stderr().is_terminal();
        let size = (stdout_tty || stderr_tty).then(crossterm::terminal::size).and_then(Result::ok);
        // A terminal that does not know its size reports 0.
        let (columns, rows) = size.filter(|it| it.0 > 0 && it.1 > 0).unzip();
        let (columns, rows) = (columns.map(usize::from), rows.map(usize::from));
        Self {
            vars: vars
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
            cwd: std::env::current_dir().ok(),
            stdin_tty: std::io::stdin().is_terminal(),
            stdout_tty,
            stderr_tty,
            columns: columns.filter(|_| stdout_tty),
            rows: rows.filter(|_| stdout_tty),
            stderr_columns: columns.filter(|_| stderr_tty),
        }
    }

    /// Returns a variable; an empty variable counts as unset.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns whether a variable is set to a value other than `0`, `false` or `no`.
    pub fn flag(&self, name: &str) -> bool {
        self.var(name).is_some_and(|value| !matches!(value, "0" | "false" | "no"))
    }
}

/// Returns the current time in the time zone of this machine.
#[expect(clippy::disallowed_methods, reason = "the one place where the programs for people read the clock")]
pub fn now() -> DateTime<Local> {
    Local::now()
}
