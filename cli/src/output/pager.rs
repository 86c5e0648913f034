//! Shows texts taller than the screen in the user's pager.

use std::{
    io::Write,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{args::GlobalArgs, env::Env};

/// Default pager. Its options: exit if the text fits, keep colours, leave the text on the screen.
const DEFAULT_PAGER: &str = "less -FRX";

/// A pager command and the size of its screen.
pub struct Pager {
    command: String,
    rows: usize,
    columns: usize,
}

/// Whether a pager is running.
static IS_PAGER_OPEN: AtomicBool = AtomicBool::new(false);

impl Pager {
    /// Returns the pager of this run: `LOUPE_PAGER`, `PAGER`, or `less`. Returns none without a terminal,
    /// on one that cannot move its cursor (`TERM=dumb`) or does not report its size, with `--no-pager`, and
    /// for `cat`.
    pub fn of(global: &GlobalArgs, env: &Env) -> Option<Self> {
        let can_page = env.stdout_tty && !global.no_pager && env.var("TERM") != Some("dumb");
        let (rows, columns) = env.rows.zip(env.columns).filter(|it| can_page && it.0 > 0 && it.1 > 0)?;
        let (command, _) = command(env);
        (command != "cat").then_some(Self { command, rows, columns })
    }

    /// Returns whether a text fits on the screen, with a row left for the shell's prompt.
    fn fits(&self, text: &str) -> bool {
        let rows = text.lines().map(|line| screen_width(line).div_ceil(self.columns).max(1));
        rows.sum::<usize>() < self.rows
    }

    /// Shows a text; returns false if it fits on the screen or the pager cannot be started.
    pub fn show(&self, text: &str) -> bool {
        if self.fits(text) {
            return false;
        }
        let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        let child = Command::new(shell).arg(flag).arg(&self.command).stdin(Stdio::piped()).spawn();
        let Ok(mut child) = child else { return false };
        IS_PAGER_OPEN.store(true, Ordering::Relaxed);
        if let Some(mut stdin) = child.stdin.take() {
            // A user may quit the pager before the whole text is written.
            _ = stdin.write_all(text.as_bytes());
        }
        // The shell exits with 127 if it does not find the program, and then nothing was shown.
        let ended = child.wait();
        IS_PAGER_OPEN.store(false, Ordering::Relaxed);
        ended.is_ok_and(|status| status.code() != Some(127))
    }
}

/// Returns whether a pager is running, which then receives Ctrl-C.
pub fn is_open() -> bool {
    IS_PAGER_OPEN.load(Ordering::Relaxed)
}

/// Returns the columns of a line, without escape sequences.
fn screen_width(line: &str) -> usize {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, sequence)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = sequence.split_once('m').map_or("", |it| it.1);
    }
    present::text::width(&(plain + rest))
}

/// Returns the command line of the pager and its source.
pub fn command(env: &Env) -> (String, &'static str) {
    let named = |name: &'static str| env.var(name).map(|command| (command.to_owned(), name));
    named("LOUPE_PAGER").or_else(|| named("PAGER")).unwrap_or_else(|| (DEFAULT_PAGER.to_owned(), "default"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pager_prefers_its_own_variable_and_needs_a_terminal() {
        let mut env = Env { stdout_tty: true, rows: Some(24), columns: Some(80), ..Env::default() };
        assert_eq!(command(&env).1, "default");
        env.vars.insert("PAGER".into(), "more".into());
        env.vars.insert("LOUPE_PAGER".into(), "most".into());
        assert_eq!(command(&env), ("most".to_owned(), "LOUPE_PAGER"));
        let mut global = GlobalArgs::default();
        assert!(Pager::of(&global, &env).is_some());
        global.no_pager = true;
        assert!(Pager::of(&global, &env).is_none());
        let global = GlobalArgs::default();
        assert!(Pager::of(&global, &Env { rows: Some(0), ..env.clone() }).is_none());
        let mut dumb = env.clone();
        dumb.vars.insert("TERM".into(), "dumb".into());
        assert!(Pager::of(&global, &dumb).is_none());
        assert!(Pager::of(&global, &Env { stdout_tty: false, ..env }).is_none());
    }

    #[test]
    fn pager_refuses_short_texts_and_missing_programs() {
        let pager = |command: &str| Pager { command: command.to_owned(), rows: 3, columns: 10 };
        assert!(pager("true").fits("0123456789\n\u{1b}[31m0123456789\u{1b}[0m\n"));
        assert!(!pager("true").fits("0123456789x\nline\n"), "a wrapped line takes two rows");
        assert!(!pager("true").show("one\ntwo\n"));
        assert!(!pager("no-such-pager-here 2> /dev/null").show("1\n2\n3\n4\n"));
        assert!(pager("cat > /dev/null").show("1\n2\n3\n4\n"));
    }
}
