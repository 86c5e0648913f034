//! Keys of a dialog. What becomes of its one request is in [`super::outcome`].

use api::{evaluator::Evaluator, project::ProjectStatus};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use uuid::Uuid;

use crate::{
    dialog::{Body, DEAF, Dialog, Phase, Stop},
    input::Input,
    layout,
    msg::Effect,
    state::State,
};

use super::outcome::{check, send};

/// Performs a key.
pub(super) fn key(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    let (now, hidden) = (state.now, layout::too_small(state.size));
    let Some(dialog) = &mut state.dialog else { return Vec::new() };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control && key.code == KeyCode::Char('c') {
        return interrupt(state);
    }
    dialog.interrupted = false;
    // The lines of a form decide nothing; only its buttons do.
    let line = dialog.types() || matches!(dialog.focus, Stop::Field(_));
    let typing = line && dialog.phase == Phase::Asking;
    // Keys that repeat, that were meant for what was there before, or that can't be seen to
    // do anything must not decide.
    let early = !typing && now.micros() - dialog.opened.micros() < DEAF;
    if early || hidden || (key.kind == KeyEventKind::Repeat && !typing) {
        return Vec::new();
    }
    match &dialog.phase {
        Phase::Sending { .. } => {
            state.tell("it was sent; waiting for the answer");
            Vec::new()
        }
        Phase::Checking { stuck: None, .. } => {
            state.tell("reading what happened");
            Vec::new()
        }
        Phase::Checking { stuck: Some(_), .. } => match key.code {
            KeyCode::Esc => close(state),
            KeyCode::Enter | KeyCode::Char('R' | 'r') => check(state),
            _ => Vec::new(),
        },
        Phase::Asking => asking(state, key),
    }
}

fn asking(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    let Some(dialog) = &mut state.dialog else { return Vec::new() };
    let secret = matches!(dialog.body, Body::Secret { .. });
    match key.code {
        KeyCode::Esc if secret && !dialog.armed() => not_stored(dialog),
        KeyCode::Esc => return close(state),
        KeyCode::Tab | KeyCode::Down => dialog.step(true),
        KeyCode::BackTab | KeyCode::Up => dialog.step(false),
        KeyCode::Enter => return enter(state),
        KeyCode::Left | KeyCode::Right => sideways(state, key),
        _ => return other(state, key),
    }
    Vec::new()
}

/// Takes in pasted text, where a name is asked for; a confirmation has to be typed.
pub(super) fn paste(state: &mut State, text: &str) {
    let Some(dialog) = &mut state.dialog else { return };
    if dialog.types() && dialog.phase == Phase::Asking {
        edit(dialog, &state.evals.evaluators.items, |line| line.insert(text.trim()));
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

/// Enter: the focused button, or on to the next place.
fn enter(state: &mut State) -> Vec<Effect> {
    let Some(dialog) = &mut state.dialog else { return Vec::new() };
    match dialog.focus {
        Stop::Cancel => return close(state),
        Stop::Act if matches!(dialog.body, Body::Secret { .. }) => {
            if dialog.armed() {
                return close(state);
            }
            not_stored(dialog);
        }
        Stop::Act => return send(state),
        Stop::Tick => dialog.complaint = Some("the space key ticks the box".to_owned()),
        Stop::Text | Stop::Access | Stop::Project | Stop::Field(_) => dialog.step(true),
    }
    Vec::new()
}

/// Left and right: between values, between buttons, or within the text.
fn sideways(state: &mut State, key: KeyEvent) {
    let forward = key.code == KeyCode::Right;
    let projects: Vec<Uuid> = state
        .manage
        .projects
        .items
        .iter()
        .filter(|project| project.status == ProjectStatus::Active)
        .map(|project| project.id)
        .collect();
    let Some(dialog) = &mut state.dialog else { return };
    match (dialog.focus, &mut dialog.body) {
        (Stop::Field(at), Body::Form(form)) => form.key(at, key, &state.evals.evaluators.items),
        (Stop::Text, _) => {
            if let Some(text) = dialog.text_mut() {
                text.key(key, &[]);
            }
        }
        (Stop::Access, Body::NewKey { query, .. }) => *query = !*query,
        (Stop::Project, Body::NewKey { project, .. }) => {
            // The first choice is to leave it to the server.
            let at = project.and_then(|id| projects.iter().position(|it| *it == id)).map_or(0, |at| at + 1);
            let count = projects.len() + 1;
            let to = if forward { at + 1 } else { at + count - 1 } % count;
            *project = to.checked_sub(1).map(|at| projects[at]);
        }
        _ => dialog.step(forward),
    }
}

fn other(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    let Some(dialog) = &mut state.dialog else { return Vec::new() };
    let mut text = None;
    match (&mut dialog.body, dialog.focus, key.code) {
        (Body::Secret { shown, .. }, _, KeyCode::Char('v')) => *shown = !*shown,
        (Body::Secret { secret, .. }, _, KeyCode::Char('y')) => text = Some(secret.0.clone()),
        (Body::Secret { stored, .. }, Stop::Tick, KeyCode::Char(' ' | 'x')) => {
            *stored = !*stored;
            dialog.complaint = None;
        }
        (Body::NewKey { query, .. }, Stop::Access, KeyCode::Char(' ')) => *query = !*query,
        (Body::Confirm { typed: None, .. }, _, KeyCode::Char('y')) => return send(state),
        (Body::Confirm { typed: None, .. }, _, KeyCode::Char('n')) => return close(state),
        (Body::Confirm { typed: Some((_, given)), .. }, ..) => {
            given.key(key, &[]);
            dialog.complaint = None;
            dialog.focus = if dialog.armed() { Stop::Act } else { Stop::Cancel };
        }
        (Body::Form(form), Stop::Field(at), _) => {
            form.key(at, key, &state.evals.evaluators.items);
            dialog.complaint = None;
        }
        (Body::NewKey { name, .. } | Body::NewProject { name }, Stop::Text, _) => {
            name.key(key, &[]);
            dialog.complaint = None;
        }
        _ => {}
    }
    let Some(text) = text else { return Vec::new() };
    state.tell("the secret was handed to the terminal's clipboard; check that it arrived");
    vec![Effect::Copy(text)]
}

fn not_stored(dialog: &mut Dialog) {
    dialog.complaint = Some("store the secret first, then tick the box: it can't be shown again".to_owned());
}

/// `ctrl-c`: clears the text, else closes, else quits when pressed twice.
fn interrupt(state: &mut State) -> Vec<Effect> {
    let Some(dialog) = &mut state.dialog else { return Vec::new() };
    if dialog.interrupted {
        return vec![Effect::Quit];
    }
    if dialog.phase == Phase::Asking {
        if dialog.text_mut().is_some_and(|text| !text.text().is_empty()) {
            edit(dialog, &state.evals.evaluators.items, Input::clear);
            return Vec::new();
        }
        if !matches!(dialog.body, Body::Secret { .. }) {
            return close(state);
        }
    }
    dialog.interrupted = true;
    state.tell("ctrl-c once more quits");
    Vec::new()
}

fn close(state: &mut State) -> Vec<Effect> {
    state.dialog = None;
    Vec::new()
}
