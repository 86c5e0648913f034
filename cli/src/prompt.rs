//! Questions to the person at the terminal, and what happens when there is none.

use std::io::BufRead;

use crossterm::{
    event::{Event, KeyCode, KeyEventKind, KeyModifiers, read},
    terminal::{disable_raw_mode, enable_raw_mode},
};

use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
};

/// Asks whether to go on: with y, on a protected context with this word. `--yes` answers for the
/// person; without a terminal it is required. A dry run has nothing to confirm.
pub async fn confirm(ctx: &mut Ctx, what: &str, word: &str) -> Result<()> {
    let typed = ctx.settings.context.protected.then_some(word);
    ask(ctx, what, typed).await
}

/// The same, with the word on every context.
pub async fn confirm_by_word(ctx: &mut Ctx, what: &str, word: &str) -> Result<()> {
    ask(ctx, what, Some(word)).await
}

async fn ask(ctx: &mut Ctx, what: &str, typed: Option<&str>) -> Result<()> {
    if ctx.global.yes || ctx.global.dry_run {
        return Ok(());
    }
    require_terminal(ctx, "--yes")?;
    ctx.out.say(what);
    match typed {
        Some(word) => ctx.out.ask(&format!("Type {word} to go on: ")),
        None => ctx.out.ask("Go on? [y/N] "),
    }
    if agrees(&line().await?, typed) {
        Ok(())
    } else {
        Err(CliError::new(Exit::Declined, "nothing was changed"))
    }
}

fn agrees(answer: &str, typed: Option<&str>) -> bool {
    match typed {
        Some(word) => answer == word,
        None => matches!(answer.to_lowercase().as_str(), "y" | "yes"),
    }
}

/// Fails before any request where a confirmation will be needed and nobody can give it.
pub fn require_answer(ctx: &Ctx) -> Result<()> {
    if ctx.global.yes || ctx.global.dry_run { Ok(()) } else { require_terminal(ctx, "--yes") }
}

/// Reads a secret without showing it.
pub async fn secret(ctx: &mut Ctx, label: &str, instead: &str) -> Result<String> {
    require_terminal(ctx, instead)?;
    ctx.out.ask(&format!("{label}: "));
    let typed = blocking(hidden).await;
    ctx.out.end_question();
    typed
}

/// Reads one line of stdin.
pub async fn line() -> Result<String> {
    blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map_err(unreadable)?;
        Ok(line.trim().to_owned())
    })
    .await
}

/// Fails where nobody can answer, naming the flag to pass instead.
pub fn require_terminal(ctx: &Ctx, instead: &str) -> Result<()> {
    let refused = ctx.global.no_input || ctx.env.flag("LOUPE_NO_INPUT");
    if !refused && ctx.env.stdin_tty && ctx.env.stderr_tty {
        return Ok(());
    }
    let why = if refused { "questions are turned off" } else { "there is no terminal to ask on" };
    Err(CliError::usage(format!("this needs an answer, and {why}; pass {instead}")))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err(CliError::new(Exit::Unexpected, "the question could not be asked")))
}

/// Makes the terminal echo again, if a question for a secret turned that off.
pub fn restore_terminal() {
    // There is nothing left to try.
    _ = disable_raw_mode();
}

/// Puts the terminal back whatever happens while it does not echo.
struct Raw;

impl Drop for Raw {
    fn drop(&mut self) {
        restore_terminal();
    }
}

fn hidden() -> Result<String> {
    enable_raw_mode().map_err(unreadable)?;
    let _raw = Raw;
    let mut typed = String::new();
    loop {
        match read().map_err(unreadable)? {
            Event::Key(key) if key.kind != KeyEventKind::Release => match key.code {
                KeyCode::Enter => return Ok(typed.trim().to_owned()),
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                    return Err(CliError::new(Exit::Interrupted, "interrupted"));
                }
                KeyCode::Esc => return Err(CliError::new(Exit::Declined, "nothing was stored")),
                KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => typed.push(c),
                KeyCode::Backspace => _ = typed.pop(),
                _ => {}
            },
            Event::Paste(text) => typed.push_str(&text),
            _ => {}
        }
    }
}

fn unreadable(error: std::io::Error) -> CliError {
    CliError::new(Exit::Unexpected, format!("can't read the answer: {}", api::plain::io_error(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_word_is_asked_for_y_is_not_enough() {
        assert!(agrees("y", None) && agrees("YES", None));
        assert!(!agrees("", None) && !agrees("delete", None));
        assert!(agrees("delete", Some("delete")));
        assert!(!agrees("y", Some("delete")) && !agrees("", Some("delete")));
    }
}
