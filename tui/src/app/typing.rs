//! The line being edited: completion, checks, and the effect of Enter.

use crossterm::event::KeyEvent;

use crate::{
    input::{Edit, Input, InputKind},
    keymap::Action,
    net::Effect,
    screen::traces,
    shell::{Completion, LineError, Overlay, Shell},
};

use super::{App, export, palette, update};

/// Maximum number of lines that a history keeps.
const MAX_HISTORY: usize = 100;

/// Opens the filter line of the list on an invalid text, with the error below it.
pub fn refuse(shell: &mut Shell, text: &str, error: LineError) {
    shell.edit(Input::new(InputKind::Screen(traces::FILTER_LINE), text));
    shell.line_error = Some(error);
    shell.line_refused = true;
}

/// Opens the line of find.
pub fn start_find(app: &mut App) {
    let input = match &app.shell.overlay {
        Some(Overlay::Help { words, .. }) => Input::new(InputKind::Help, words),
        Some(_) => return,
        None => Input::new(InputKind::Find, app.screen().find().unwrap_or("")),
    };
    app.shell.input = Some(input);
}

/// Inserts pasted text.
pub fn paste(app: &mut App, text: &str) {
    if let Some(input) = &mut app.shell.input {
        input.insert(text.trim());
        changed(app);
    }
}

/// Handles a key.
pub fn key(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    let Some(input) = &mut app.shell.input else { return Vec::new() };
    if input.kind == InputKind::Palette {
        return palette::key(app, key);
    }
    let screen = app.screens.get(app.shell.screen);
    let history = match input.kind {
        InputKind::Screen(line) => screen.history(line),
        _ => &[],
    };
    match input.key(key, history) {
        Edit::Stay => changed(app),
        Edit::Complete => {
            if let InputKind::Screen(line) = input.kind {
                let words = app.screen().completions(&app.shell, line);
                let notice = app.shell.input.as_mut().and_then(|input| complete(input, &words));
                changed(app);
                if let Some(notice) = notice {
                    app.shell.notify(notice);
                }
            }
        }
        Edit::Cancel => cancel(app),
        Edit::Accept => return accept(app),
    }
    Vec::new()
}

/// Updates the error and the completions while the text is edited.
fn changed(app: &mut App) {
    let Some(input) = &app.shell.input else { return };
    match input.kind {
        InputKind::Screen(_) => check(app),
        InputKind::Find => {
            let words = Some(input.text().trim().to_lowercase()).filter(|words| !words.is_empty());
            app.screens.get_mut(app.shell.screen).set_find(words);
        }
        InputKind::Help => {
            let typed = input.text().to_lowercase();
            if let Some(Overlay::Help { top, words }) = &mut app.shell.overlay {
                *words = typed;
                *top = 0;
            }
        }
        InputKind::Palette => {
            if let Some(Overlay::Palette { selected }) = &mut app.shell.overlay {
                *selected = 0;
            }
        }
        InputKind::Export | InputKind::Dialog => {}
    }
}

/// Checks a line while it is edited. A term's error appears once the cursor has left the term; after Enter
/// was pressed on an invalid text, at every change until the text is valid.
fn check(app: &mut App) {
    let Some(input) = &app.shell.input else { return };
    let InputKind::Screen(line) = input.kind else { return };
    let (before, _) = input.around();
    let error = app.screen().check(&app.shell, line, input.text());
    let left = |at: usize| {
        let typed = || before.chars().skip(at);
        typed().any(char::is_whitespace) && typed().filter(|c| *c == '"').count().is_multiple_of(2)
    };
    let shown = error.clone().filter(|(at, _)| app.shell.line_refused || left(*at));
    app.shell.line_refused &= error.is_some();
    app.shell.line_error = shown;
}

fn cancel(app: &mut App) {
    let Some(input) = app.shell.input.take() else { return };
    app.shell.line_error = None;
    if input.kind == InputKind::Find {
        app.screens.get_mut(app.shell.screen).set_find(None);
    }
}

fn accept(app: &mut App) -> Vec<Effect> {
    let Some(input) = app.shell.input.take() else { return Vec::new() };
    app.shell.line_error = None;
    match input.kind {
        InputKind::Help | InputKind::Palette | InputKind::Dialog => Vec::new(),
        InputKind::Export => write_file(app, input.text().trim()),
        InputKind::Find if app.screen().is_on_hit() => Vec::new(),
        InputKind::Find => update::act(app, Action::FindNext),
        InputKind::Screen(line) => {
            let text = input.text().trim().to_owned();
            let loaded = app.loaded_ids();
            let screen = app.screens.get_mut(app.shell.screen);
            match screen.submit(&mut app.shell, line, &text, &loaded) {
                Ok(effects) => {
                    if let Some(history) = screen.history_mut(line) {
                        remember(history, &text);
                    }
                    effects
                }
                Err(error) => {
                    app.shell.line_error = Some(error);
                    app.shell.line_refused = true;
                    app.shell.input = Some(input);
                    Vec::new()
                }
            }
        }
    }
}

/// Writes the records of the screen to a file.
fn write_file(app: &mut App, path: &str) -> Vec<Effect> {
    let export = app.screen().export(&app.shell).filter(|_| !path.is_empty());
    let Some(export) = export else {
        app.shell.notify("nothing was written");
        return Vec::new();
    };
    let (rows, text) = export::text(export, path);
    let notice = format!("wrote {path}: {rows} loaded, {} bytes", text.len());
    vec![Effect::Write { path: path.to_owned(), text, notice }]
}

fn remember(history: &mut Vec<String>, text: &str) {
    if text.is_empty() {
        return;
    }
    history.retain(|known| known != text);
    history.push(text.to_owned());
    if history.len() > MAX_HISTORY {
        history.remove(0);
    }
}

/// Completes the word before the cursor: to a field, and then to one of its values. If several words match,
/// the word grows as far as they agree and the notice lists them.
fn complete(input: &mut Input, words: &[Completion]) -> Option<String> {
    let (before, _) = input.around();
    let start = before.rfind(' ').map_or(0, |at| at + 1);
    let word = before[start..].to_owned();
    let has_value = |it: &&Completion| !it.text.ends_with(':');
    let candidates = words.iter().filter(|it| has_value(it) == (word.contains(':') || word.starts_with('@')));
    let matching: Vec<&str> =
        candidates.map(|it| it.text.as_str()).filter(|it| it.starts_with(&word)).collect();
    let [first, rest @ ..] = matching.as_slice() else {
        let (name, _) = word.split_once(':')?;
        let field = words.iter().find(|it| it.text.strip_suffix(':') == Some(name))?;
        return Some(field.help.clone());
    };
    let shared = rest.iter().fold(first.len(), |shared, other| {
        first.bytes().zip(other.bytes()).take(shared).take_while(|(a, b)| a == b).count()
    });
    input.replace_from(start, &first[..shared]);
    if rest.is_empty() && !first.ends_with(':') {
        input.insert(" ");
    }
    (!rest.is_empty()).then(|| matching.join("  "))
}

#[cfg(test)]
mod tests {
    use api::filter::Saved;

    use super::*;
    use crate::{
        options::Target,
        shell::ScreenLines,
        theme::{Glyphs, Theme},
    };
    use present::format::Zone;

    fn filter_words(saved: &[(&str, &str)]) -> Vec<Completion> {
        let theme = Theme { colour: false, glyphs: Glyphs::ASCII };
        let now = api::Timestamp::from_micros(crate::fixture::BASE_MICROS);
        let mut shell = Shell::new(Target::default(), theme, Zone::Utc, now, (80, 24));
        let saved = saved.iter().map(|(name, filter)| ((*name).to_owned(), (*filter).to_owned()));
        shell.saved = saved.collect::<Saved>();
        traces::state::Traces::default().completions(&shell, traces::FILTER_LINE)
    }

    #[test]
    fn tab_completes_fields_and_values() {
        let input = |text: &str| Input::new(InputKind::Screen(traces::FILTER_LINE), text);
        let mut line = input("model:x lat");
        assert_eq!(complete(&mut line, &filter_words(&[])), None);
        assert_eq!(line.text(), "model:x latency:");
        let mut line = input("failure:ti");
        complete(&mut line, &filter_words(&[]));
        assert_eq!(line.text(), "failure:timeout ");
        let mut line = input("@s");
        complete(&mut line, &filter_words(&[("slow", "latency:>=5s")]));
        assert_eq!(line.text(), "@slow ");
        let notice = complete(&mut input("t"), &filter_words(&[]));
        assert!(notice.is_some_and(|it| it.contains("tag:") && it.contains("tokens:")));
    }
}
