//! Prompts on the terminal, and errors where there is no terminal to prompt on.

use std::{
    io::{BufRead, Write},
    sync::{Mutex, PoisonError},
};

use crossterm::{
    cursor::MoveUp,
    event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, read},
    queue,
    style::Print,
    terminal::{Clear, ClearType, disable_raw_mode, enable_raw_mode},
};

use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
};

/// Asks for confirmation: with `y`, or in a protected context by typing `word`. `--yes` confirms without
/// asking and is required without a terminal. A dry run needs no confirmation.
pub async fn confirm(ctx: &mut Ctx, what: &str, word: &str) -> Result<()> {
    let typed = ctx.settings.context.protected.then_some(word);
    ask(ctx, what, typed).await
}

/// Asks for confirmation by typing `word`, in every context.
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
        Some(word) => ctx.out.ask(&format!("Type {word} to continue: ")),
        None => ctx.out.ask("Continue? [y/N] "),
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

/// Fails if a confirmation will be needed and there is no terminal; called before any request.
pub fn require_answer(ctx: &Ctx) -> Result<()> {
    if ctx.global.yes || ctx.global.dry_run { Ok(()) } else { require_terminal(ctx, "--yes") }
}

/// Reads a secret without showing it.
pub async fn secret(ctx: &mut Ctx, label: &str, instead: &str) -> Result<String> {
    require_terminal(ctx, instead)?;
    ctx.out.ask(&format!("{label}: "));
    let typed = until_hangup(blocking(hidden)).await;
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

/// An item of a menu.
#[derive(Clone, Copy, Debug)]
pub struct MenuItem {
    /// The key that selects the item.
    pub key: char,
    /// The name of the item.
    pub label: &'static str,
    /// A short description.
    pub note: &'static str,
}

/// Asks to choose an item, by its key or with the arrows and Enter. Returns none on Esc. Reads a line where
/// the terminal cannot move its cursor.
pub async fn choose(ctx: &mut Ctx, question: &str, items: &'static [MenuItem]) -> Result<Option<usize>> {
    ctx.out.say(question);
    ctx.out.say("");
    if ctx.env.var("TERM").is_none_or(|term| term == "dumb") {
        items.iter().for_each(|item| ctx.out.say(&item.line(" ")));
        ctx.out.ask("Choose: ");
        let typed = line().await?;
        return Ok(items.iter().position(|item| typed.eq_ignore_ascii_case(&item.key.to_string())));
    }
    let (mark, columns) = (ctx.out.style.glyphs.cursor, ctx.env.columns.unwrap_or(80));
    until_hangup(blocking(move || menu(items, mark, columns))).await
}

impl MenuItem {
    fn line(&self, mark: &str) -> String {
        format!(" {mark} {}  {:<14}{}", self.key, self.label, self.note).trim_end().to_owned()
    }
}

/// Draws the items, and redraws them in place at each move until one is chosen.
fn menu(items: &[MenuItem], mark: &str, columns: usize) -> Result<Option<usize>> {
    let _raw = RawMode::enable()?;
    let mut selected = 0;
    let mut stderr = std::io::stderr();
    loop {
        for (at, item) in items.iter().enumerate() {
            let line = item.line(if at == selected { mark } else { " " });
            // The cursor moves back by the number of items, so no line may wrap.
            let line = present::text::take(&line, columns.saturating_sub(1)).to_owned();
            queue!(stderr, Clear(ClearType::CurrentLine), Print(line), Print("\r\n")).map_err(unreadable)?;
        }
        stderr.flush().map_err(unreadable)?;
        loop {
            let Event::Key(key) = read().map_err(unreadable)? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            match pressed(key, items, selected) {
                Press::Move(to) => selected = to,
                Press::Choose(at) => return Ok(at),
                Press::Interrupt => return Err(CliError::new(Exit::Interrupted, "interrupted")),
                Press::Nothing => continue,
            }
            break;
        }
        let rows = u16::try_from(items.len()).unwrap_or(u16::MAX);
        queue!(stderr, MoveUp(rows)).map_err(unreadable)?;
    }
}

/// The effect of a key on a menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Press {
    Move(usize),
    Choose(Option<usize>),
    Interrupt,
    Nothing,
}

fn pressed(key: KeyEvent, items: &[MenuItem], selected: usize) -> Press {
    let last = items.len().saturating_sub(1);
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Press::Interrupt,
        KeyCode::Esc => Press::Choose(None),
        KeyCode::Enter => Press::Choose(Some(selected)),
        KeyCode::Up | KeyCode::Char('k') => Press::Move(selected.saturating_sub(1)),
        KeyCode::Down | KeyCode::Char('j') => Press::Move((selected + 1).min(last)),
        KeyCode::Char(typed) => match items.iter().position(|item| item.key.eq_ignore_ascii_case(&typed)) {
            Some(at) => Press::Choose(Some(at)),
            None => Press::Nothing,
        },
        _ => Press::Nothing,
    }
}

/// Fails if there is no terminal to prompt on, with an error that names the flag to pass instead.
pub fn require_terminal(ctx: &Ctx, instead: &str) -> Result<()> {
    let refused = ctx.global.no_input || ctx.env.flag("LOUPE_NO_INPUT");
    if !refused && ctx.env.stdin_tty && ctx.env.stderr_tty {
        return Ok(());
    }
    let why = if refused { "prompts are disabled" } else { "there is no terminal to prompt on" };
    Err(CliError::usage(format!("the command needs an answer, and {why}; pass {instead}")))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err(CliError::new(Exit::Unexpected, "the prompt could not be shown")))
}

/// Waits for an answer, or for the end of the terminal (SIGHUP) or a SIGQUIT, which would otherwise end the
/// process in raw mode.
async fn until_hangup<T>(answer: impl Future<Output = Result<T>>) -> Result<T> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut hangup = signal(SignalKind::hangup()).map_err(unreadable)?;
        let mut quit = signal(SignalKind::quit()).map_err(unreadable)?;
        tokio::select! {
            answer = answer => return answer,
            _ = hangup.recv() => {}
            _ = quit.recv() => {}
        }
        restore_terminal();
        Err(CliError::new(Exit::Terminated, "the question was not answered: a signal ended the program"))
    }
    #[cfg(not(unix))]
    answer.await
}

/// Whether a prompt may still switch the terminal to raw mode.
static MAY_ENABLE_RAW_MODE: Mutex<bool> = Mutex::new(true);

/// Switches raw mode off for good. The program is about to end, and a prompt's thread may still be running.
pub fn restore_terminal() {
    let mut may_enable = MAY_ENABLE_RAW_MODE.lock().unwrap_or_else(PoisonError::into_inner);
    *may_enable = false;
    // A failure here cannot be handled.
    _ = disable_raw_mode();
}

/// The raw mode of a prompt; dropping the value switches it off.
struct RawMode;

impl RawMode {
    fn enable() -> Result<Self> {
        let may_enable = MAY_ENABLE_RAW_MODE.lock().unwrap_or_else(PoisonError::into_inner);
        if !*may_enable {
            return Err(CliError::new(Exit::Interrupted, "interrupted"));
        }
        enable_raw_mode().map_err(unreadable)?;
        Ok(Self)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A failure here cannot be handled.
        _ = disable_raw_mode();
    }
}

fn hidden() -> Result<String> {
    let _raw = RawMode::enable()?;
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
    fn menu_item_is_chosen_by_its_key_or_with_the_arrows() {
        const ITEMS: [MenuItem; 3] = [
            MenuItem { key: '1', label: "one", note: "" },
            MenuItem { key: '2', label: "two", note: "" },
            MenuItem { key: 'q', label: "quit", note: "" },
        ];
        let press = |code, selected| pressed(KeyEvent::new(code, KeyModifiers::NONE), &ITEMS, selected);
        assert_eq!(press(KeyCode::Char('2'), 0), Press::Choose(Some(1)));
        assert_eq!(press(KeyCode::Char('Q'), 0), Press::Choose(Some(2)));
        assert_eq!(press(KeyCode::Down, 2), Press::Move(2));
        assert_eq!(press(KeyCode::Up, 1), Press::Move(0));
        assert_eq!(press(KeyCode::Enter, 1), Press::Choose(Some(1)));
        assert_eq!(press(KeyCode::Esc, 1), Press::Choose(None));
        assert_eq!(press(KeyCode::Char('x'), 1), Press::Nothing);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(pressed(interrupt, &ITEMS, 1), Press::Interrupt);
    }

    #[test]
    fn confirmation_by_word_refuses_y() {
        assert!(agrees("y", None) && agrees("YES", None));
        assert!(!agrees("", None) && !agrees("delete", None));
        assert!(agrees("delete", Some("delete")));
        assert!(!agrees("y", Some("delete")) && !agrees("", Some("delete")));
    }
}
