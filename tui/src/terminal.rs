//! Takes the terminal over and restores it, also after an error or a panic.

use std::{io, panic, sync::Once};

use crossterm::{
    cursor::Show,
    event::{DisableBracketedPaste, EnableBracketedPaste},
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};

/// The terminal, which is restored when the value is dropped.
#[derive(Debug)]
pub struct Guard(());

impl Guard {
    /// Takes the terminal over. A panic restores it before its message is printed.
    ///
    /// # Errors
    /// Fails when the output is not a terminal, or raw mode is not available.
    pub fn take() -> io::Result<Self> {
        static PANIC_HOOK: Once = Once::new();
        PANIC_HOOK.call_once(|| {
            let next = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                restore();
                next(info);
            }));
        });
        let guard = Self(());
        enter()?;
        Ok(guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
}

/// Restores the terminal. Failures are ignored: there is no output left to report them on.
fn restore() {
    let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// Gives the terminal to the shell until it resumes this process.
///
/// # Errors
/// The terminal cannot be taken over again.
#[cfg(unix)]
pub fn suspend() -> io::Result<()> {
    restore();
    // The program `kill`, because raising a signal directly needs unsafe code. Outside raw mode, ctrl-z
    // stops the whole process group as well.
    let stopped = std::process::Command::new("kill").args(["-TSTP", "0"]).status();
    enter()?;
    stopped.map(|_| ())
}

/// Does nothing: this system cannot suspend a process.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub fn suspend() -> io::Result<()> {
    Ok(())
}
