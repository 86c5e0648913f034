//! Keys of a dialog, and what becomes of its one request.

use api::project::ProjectStatus;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use uuid::Uuid;

use crate::{
    dialog::{Body, DEAF, Dialog, Phase, Stop},
    layout,
    msg::{Effect, NetError, Reply},
    screens::{manage::access, notice::describe},
    state::{Purpose, State},
};

use super::manage;

/// Performs a key.
pub(super) fn key(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    let (now, hidden) = (state.now, layout::too_small(state.size));
    let Some(dialog) = &mut state.dialog else { return Vec::new() };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control && key.code == KeyCode::Char('c') {
        return interrupt(state);
    }
    dialog.interrupted = false;
    let typing = dialog.focus == Stop::Text && dialog.phase == Phase::Asking;
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
    let asks = dialog.focus == Stop::Text && dialog.phase == Phase::Asking;
    if let Some(name) = dialog.text_mut().filter(|_| asks) {
        name.insert(text.trim());
        dialog.complaint = None;
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
        Stop::Text | Stop::Access | Stop::Project => dialog.step(true),
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
        if let Some(text) = dialog.text_mut().filter(|text| !text.text().is_empty()) {
            text.clear();
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

/// Sends the one request.
fn send(state: &mut State) -> Vec<Effect> {
    let Some(dialog) = &mut state.dialog else { return Vec::new() };
    if !dialog.armed() {
        dialog.complaint = Some(match dialog.body {
            Body::Confirm { .. } => "type the characters first".to_owned(),
            _ => "a name is needed".to_owned(),
        });
        return Vec::new();
    }
    let Some(change) = dialog.change() else { return Vec::new() };
    let before = if change.of_keys() {
        state.manage.keys.items.iter().map(|key| key.id).collect()
    } else {
        state.manage.projects.items.iter().map(|project| project.id).collect()
    };
    dialog.complaint = None;
    dialog.phase = Phase::Sending { change: change.clone(), before };
    let request = state.request(Purpose::Change);
    vec![Effect::Send { request, change }]
}

/// The request came to its end.
pub(super) fn sent(state: &mut State, result: Result<Reply, NetError>) -> Vec<Effect> {
    let now = state.now;
    let Some(dialog) = &mut state.dialog else { return Vec::new() };
    let Phase::Sending { change, before } = &dialog.phase else { return Vec::new() };
    let (change, before) = (change.clone(), before.clone());
    match result {
        Ok(Reply::Key(key)) => {
            let (name, access) = (key.name.clone(), access(&key));
            let secret = state.manage.add_key(*key);
            match secret {
                Some(secret) => state.dialog = Some(Dialog::secret(name, access, secret, now)),
                None => {
                    state.dialog = None;
                    state.complain(format!("{}, but the answer holds no secret", change.done()));
                }
            }
            manage::load(state)
        }
        Ok(_) => {
            state.dialog = None;
            state.tell(change.done());
            manage::load(state)
        }
        // No answer, or one that leaves open what happened: the lists tell.
        Err(error) if matches!(error.status, None | Some(200..=299 | 500..=599)) => {
            dialog.phase = Phase::Checking { change, before, why: describe(&error), stuck: None };
            check(state)
        }
        Err(error) => {
            refused(state, &error);
            manage::load(state)
        }
    }
}

/// The server answered that it did nothing.
fn refused(state: &mut State, error: &NetError) {
    let now = state.now;
    let Some(dialog) = &mut state.dialog else { return };
    match &dialog.body {
        // What was typed can be mended.
        Body::NewKey { .. } | Body::NewProject { .. } if !error.unauthorized() => {
            dialog.ask_again(describe(error), now);
        }
        Body::Confirm { change, .. } if error.status == Some(404) => {
            let name = change.name().to_owned();
            state.dialog = None;
            state.complain(format!("{name} is gone: someone else was first"));
        }
        _ => {
            state.dialog = None;
            state.complain(describe(error));
        }
    }
}

/// Reads the list that tells whether the change happened.
fn check(state: &mut State) -> Vec<Effect> {
    let Some(Dialog { phase: Phase::Checking { change, stuck, .. }, .. }) = &mut state.dialog else {
        return Vec::new();
    };
    *stuck = None;
    let of_keys = change.of_keys();
    let request = state.request(Purpose::Check);
    vec![if of_keys { Effect::LoadKeys(request) } else { Effect::LoadProjects(request) }]
}

/// The list is here that tells whether the change happened, or can't be had either.
pub(super) fn checked(state: &mut State, result: Result<Reply, NetError>) -> Vec<Effect> {
    match result {
        Ok(reply) => manage::fill(state, reply),
        Err(error) => {
            if let Some(Dialog { phase: Phase::Checking { stuck, .. }, .. }) = &mut state.dialog {
                *stuck = Some(describe(&error));
            }
            return Vec::new();
        }
    }
    let now = state.now;
    let Some(dialog) = &mut state.dialog else { return Vec::new() };
    let Phase::Checking { change, before, why, .. } = &dialog.phase else { return Vec::new() };
    let happened = change.landed(before, &state.manage.keys.items, &state.manage.projects.items);
    let of_new_key = change.of_keys() && change.id().is_none();
    match (happened, of_new_key) {
        (true, true) => {
            let text = format!(
                "{}, but its secret was lost with the answer; revoke it and make another",
                change.done()
            );
            state.dialog = None;
            state.complain(text);
        }
        (true, false) => {
            let text = format!("{}; its answer was lost", change.done());
            state.dialog = None;
            state.tell(text);
        }
        (false, _) => {
            let complaint = format!("it did not happen: {why}");
            dialog.ask_again(complaint, now);
        }
    }
    Vec::new()
}
