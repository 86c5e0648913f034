//! Runs a program in a `tmux` terminal of a fixed size: sends keys and reads the screen.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test whose terminal can't be opened fails")]
#![allow(clippy::disallowed_methods, reason = "waits for a program, from a thread of its own")]

use std::{
    path::Path,
    process::{Command, Output},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Number of terminals opened by this process; each has its own `tmux` server.
static OPENED_TERMINALS: AtomicUsize = AtomicUsize::new(0);

/// An open terminal. Dropping the value closes it.
pub struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs a program in a terminal of this size, with these environment variables only. When the program
    /// ends, the terminal shows `exit code N`.
    pub fn open(
        size: (u16, u16),
        folder: &Path,
        program: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let socket =
            format!("loupe-{}-{}", std::process::id(), OPENED_TERMINALS.fetch_add(1, Ordering::Relaxed));
        let terminal = Self { socket };
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let mut line = String::from("env -i TERM=screen-256color LANG=C.UTF-8 TZ=UTC");
        for (name, value) in variables {
            line.push_str(&format!(" {name}={}", quoted(value)));
        }
        line.push_str(&format!(" {}", quoted(program.to_str().unwrap())));
        for argument in arguments {
            line.push_str(&format!(" {}", quoted(argument)));
        }
        line.push_str("; echo exit code $?; sleep 1000");
        let (cols, rows) = (size.0.to_string(), size.1.to_string());
        let folder = folder.to_str().unwrap();
        let opened = terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &cols,
            "-y",
            &rows,
            "-c",
            folder,
            &line,
        ]);
        assert!(opened.status.success(), "tmux is needed: {}", String::from_utf8_lossy(&opened.stderr));
        terminal
    }

    /// Presses keys by their `tmux` names: `Enter`, `Escape`, `a`.
    pub fn press(&self, keys: &[&str]) {
        let mut arguments = vec!["send-keys"];
        arguments.extend(keys);
        assert!(self.tmux(&arguments).status.success());
    }

    /// Types a text.
    pub fn enter(&self, text: &str) {
        assert!(self.tmux(&["send-keys", "-l", text]).status.success());
    }

    /// Returns the text on the screen.
    pub fn text(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// Returns the screen with the escape sequences of colours and weights.
    pub fn styled(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p", "-e"]).stdout).unwrap()
    }

    /// Appends the bytes that the program writes from now on to a file, with their control sequences.
    pub fn record(&self, file: &Path) {
        let command = format!("cat >> {}", file.display());
        assert!(self.tmux(&["pipe-pane", &command]).status.success());
    }

    /// Waits until the terminal shows a text, and returns the whole screen.
    pub fn wait_for(&self, wanted: &str, at_most: Duration) -> String {
        let started = Instant::now();
        loop {
            let text = self.text();
            if text.contains(wanted) {
                return text;
            }
            assert!(started.elapsed() < at_most, "no `{wanted}` within {at_most:?}:\n{text}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        Command::new("tmux").args(["-u", "-L", &self.socket]).args(arguments).output().unwrap_or_else(
            |error| {
                panic!("tmux is needed to test the console: {error}");
            },
        )
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
