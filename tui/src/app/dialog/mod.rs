//! The keys of dialogs. The request of a dialog is in [`outcome`].

pub mod outcome;
pub mod view;

use api::evaluator::Evaluator;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::{
    dialog::{Body, Dialog, GUARD_MICROS, Phase, Stop},
    input::Input,
    layout,
    net::Effect,
    shell::Shell,
};

use super::App;
use outcome::{check, send};

/// Lines by which the excerpt of a confirmation scrolls.
const EXCERPT_STEP: usize = 4;

/// Handles a key.
pub fn key(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    let (now, hidden) = (app.shell.now, layout::too_small(app.shell.size));
    let Some(dialog) = &mut app.shell.dialog else { return Vec::new() };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control && key.code == KeyCode::Char('c') {
        return interrupt(app);
    }
    dialog.interrupted = false;
    // Keys in a field of a form send nothing; only the buttons do.
    let line = dialog.types() || matches!(dialog.focus, Stop::Field(_));
    let typing = line && dialog.is_asking();
    // Keys that repeat, that were pressed before the dialog was visible, or that act on a hidden dialog
    // must not send a change.
    let early = !typing && now.micros() - dialog.opened.micros() < GUARD_MICROS;
    if early || hidden || (key.kind == KeyEventKind::Repeat && !typing) {
        return Vec::new();
    }
    match &dialog.phase {
        Phase::Sending { .. } => {
            app.shell.notify("the change was sent; waiting for the response");
            Vec::new()
        }
        Phase::Checking { stuck: None, .. } => {
            app.shell.notify("reading whether the change happened");
            Vec::new()
        }
        Phase::Checking { stuck: Some(_), .. } => match key.code {
            KeyCode::Esc => close(app),
            KeyCode::Enter | KeyCode::Char('R' | 'r') => check(app),
            _ => Vec::new(),
        },
        Phase::Asking => asking(app, key),
    }
}

fn asking(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    let Some(dialog) = &mut app.shell.dialog else { return Vec::new() };
    let secret = matches!(dialog.body, Body::Secret { .. });
    match key.code {
        KeyCode::Esc if secret && !dialog.armed() => not_stored(dialog),
        KeyCode::Esc => return close(app),
        KeyCode::Tab | KeyCode::Down => dialog.step(true),
        KeyCode::BackTab | KeyCode::Up => dialog.step(false),
        KeyCode::Enter => return enter(app),
        KeyCode::Left | KeyCode::Right => sideways(app, key),
        KeyCode::PageUp | KeyCode::PageDown => scroll(&mut app.shell, key.code == KeyCode::PageDown),
        _ => return other(app, key),
    }
    Vec::new()
}

/// Scrolls what a change changes, where it does not fit into the confirmation.
fn scroll(shell: &mut Shell, down: bool) {
    let last = view::excerpt_overflow(shell);
    let Some(Dialog { body: Body::Confirm { top, .. }, .. }) = &mut shell.dialog else { return };
    *top = if down { (*top + EXCERPT_STEP).min(last) } else { (*top).min(last).saturating_sub(EXCERPT_STEP) };
}

/// Inserts pasted text into a field. A confirmation must be typed.
pub fn paste(shell: &mut Shell, text: &str) {
    let Some(dialog) = &mut shell.dialog else { return };
    if dialog.types() && dialog.is_asking() {
        edit(dialog, &shell.evaluators.items, |line| line.insert(text.trim()));
        dialog.complaint = None;
    }
}

/// Changes the line of text with the focus.
fn edit(dialog: &mut Dialog, evaluators: &[Evaluator], change: impl FnOnce(&mut Input)) {
    if let (Body::Form(form), Stop::Field(at)) = (&mut dialog.body, dialog.focus) {
        form.edit(at, evaluators, change);
    } else if let Some(line) = dialog.text_mut() {
        change(line);
    }
}

/// Handles Enter: presses the focused button, or goes to the next element.
fn enter(app: &mut App) -> Vec<Effect> {
    let Some(dialog) = &mut app.shell.dialog else { return Vec::new() };
    match dialog.focus {
        Stop::Cancel => return close(app),
        Stop::Act if matches!(dialog.body, Body::Secret { .. }) => {
            if dialog.armed() {
                return close(app);
            }
            not_stored(dialog);
        }
        Stop::Act => return send(app),
        Stop::Tick => dialog.complaint = Some("the space key ticks the box".to_owned()),
        Stop::Field(_) => dialog.step(true),
    }
    Vec::new()
}

/// Handles left and right: goes between values, between buttons, or within the text.
fn sideways(app: &mut App, key: KeyEvent) {
    let forward = key.code == KeyCode::Right;
    let Some(dialog) = &mut app.shell.dialog else { return };
    match (dialog.focus, &mut dialog.body) {
        (Stop::Field(at), Body::Form(form)) => form.key(at, key, &app.shell.evaluators.items),
        (Stop::Field(_), Body::Confirm { note: Some(note), .. }) => _ = note.key(key, &[]),
        _ => dialog.step(forward),
    }
}

fn other(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    let Some(dialog) = &mut app.shell.dialog else { return Vec::new() };
    let mut text = None;
    match (&mut dialog.body, dialog.focus, key.code) {
        (Body::Secret { shown, .. }, _, KeyCode::Char('v')) => *shown = !*shown,
        (Body::Secret { secret, .. }, _, KeyCode::Char('y')) => text = Some(secret.0.clone()),
        (Body::Secret { stored, .. }, Stop::Tick, KeyCode::Char(' ' | 'x')) => {
            *stored = !*stored;
            dialog.complaint = None;
        }
        (Body::Confirm { note: Some(note), .. }, Stop::Field(_), _) => {
            note.key(key, &[]);
            dialog.complaint = None;
        }
        (Body::Confirm { typed: None, .. }, _, KeyCode::Char('y')) => return send(app),
        (Body::Confirm { typed: None, .. }, _, KeyCode::Char('n')) => return close(app),
        (Body::Confirm { typed: Some((_, given)), .. }, ..) => {
            given.key(key, &[]);
            dialog.complaint = None;
            dialog.focus = if dialog.armed() { Stop::Act } else { Stop::Cancel };
        }
        (Body::Form(form), Stop::Field(at), _) => {
            form.key(at, key, &app.shell.evaluators.items);
            dialog.complaint = None;
        }
        _ => {}
    }
    let Some(text) = text else { return Vec::new() };
    app.shell.notify("the terminal was asked to copy the secret; check the clipboard");
    vec![Effect::Copy(text)]
}

fn not_stored(dialog: &mut Dialog) {
    dialog.complaint = Some("store the secret first, then tick the box: it can't be shown again".to_owned());
}

/// Handles `ctrl-c`: clears the text, else closes the dialog, else quits if pressed twice.
fn interrupt(app: &mut App) -> Vec<Effect> {
    let Some(dialog) = &mut app.shell.dialog else { return Vec::new() };
    if dialog.interrupted {
        return vec![Effect::Quit];
    }
    if dialog.is_asking() {
        if dialog.text_mut().is_some_and(|text| !text.text().is_empty()) {
            edit(dialog, &app.shell.evaluators.items, Input::clear);
            return Vec::new();
        }
        if !matches!(dialog.body, Body::Secret { .. }) {
            return close(app);
        }
    }
    dialog.interrupted = true;
    app.shell.notify("ctrl-c once more quits");
    Vec::new()
}

fn close(app: &mut App) -> Vec<Effect> {
    app.shell.dialog = None;
    Vec::new()
}
