//! Texts taller than the screen, through the reader's pager.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::{args::GlobalArgs, config::env::Env};

/// What is used where nothing else is said: ends at once for a text that fits, keeps colours,
/// leaves the text on the screen.
const DEFAULT: &str = "less -FRX";

/// A pager, and the screen that it is for.
pub struct Pager {
    command: String,
    rows: usize,
}

impl Pager {
    /// The pager of this run: `LOUPE_PAGER`, `PAGER`, `less`. None off a terminal, with
    /// `--no-pager`, and where it is `cat`.
    pub fn of(global: &GlobalArgs, env: &Env) -> Option<Self> {
        let rows = env.rows.filter(|_| env.stdout_tty && !global.no_pager)?;
        let (command, _) = command(env);
        (command != "cat").then_some(Self { command, rows })
    }

    /// Shows a text; false if it is short, or the pager can't be run.
    pub fn show(&self, text: &str) -> bool {
        if text.lines().count() < self.rows {
            return false;
        }
        let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        let child = Command::new(shell).arg(flag).arg(&self.command).stdin(Stdio::piped()).spawn();
        let Ok(mut child) = child else { return false };
        if let Some(mut stdin) = child.stdin.take() {
            // A reader who leaves early has seen enough.
            _ = stdin.write_all(text.as_bytes());
        }
        // A shell that does not find the program ends with 127, and has shown nothing.
        child.wait().is_ok_and(|status| status.code() != Some(127))
    }
}

/// The command line of the pager, and where it comes from.
pub fn command(env: &Env) -> (String, &'static str) {
    let named = |name: &'static str| env.var(name).map(|command| (command.to_owned(), name));
    named("LOUPE_PAGER").or_else(|| named("PAGER")).unwrap_or_else(|| (DEFAULT.to_owned(), "default"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_variable_wins_and_pipes_have_none() {
        let mut env = Env { stdout_tty: true, rows: Some(24), ..Env::default() };
        assert_eq!(command(&env).1, "default");
        env.vars.insert("PAGER".into(), "more".into());
        env.vars.insert("LOUPE_PAGER".into(), "most".into());
        assert_eq!(command(&env), ("most".to_owned(), "LOUPE_PAGER"));
        let mut global = GlobalArgs::default();
        assert!(Pager::of(&global, &env).is_some());
        global.no_pager = true;
        assert!(Pager::of(&global, &env).is_none());
        assert!(Pager::of(&GlobalArgs::default(), &Env { stdout_tty: false, ..env }).is_none());
    }

    #[test]
    fn short_texts_and_missing_pagers_are_left_to_the_caller() {
        let pager = |command: &str| Pager { command: command.to_owned(), rows: 3 };
        assert!(!pager("true").show("one\ntwo\n"));
        assert!(!pager("no-such-pager-here 2> /dev/null").show("1\n2\n3\n4\n"));
        assert!(pager("cat > /dev/null").show("1\n2\n3\n4\n"));
    }
}
