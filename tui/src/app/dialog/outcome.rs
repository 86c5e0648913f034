//! The request of a dialog: it is sent once, and a lost response is replaced by reading a list that shows the change.

use std::sync::Arc;

use api::{Timestamp, client::Auth};

use crate::{
    change::{Change, ChangeOutcome, CheckContext, SentState},
    dialog::{Body, Dialog, Phase, Stop},
    net::{Effect, NetError, Response},
    screen::Screens,
    shell::{Purpose, Screen, notice::describe},
};

use super::super::App;

/// A generous bound, in microseconds, by which this machine's clock may be ahead of the server's.
const MAX_CLOCK_SKEW_MICROS: i64 = 120_000_000;

/// Sends the request.
pub fn send(app: &mut App) -> Vec<Effect> {
    let loaded = app.loaded_ids();
    let Some(dialog) = &mut app.shell.dialog else { return Vec::new() };
    if !dialog.armed() {
        dialog.complaint = Some("type the characters first".to_owned());
        return Vec::new();
    }
    let change = match dialog.change(&loaded) {
        Ok(Some(change)) => change,
        Ok(None) => return Vec::new(),
        Err((field, problem)) => {
            dialog.complaint = Some(problem);
            dialog.focus = Stop::Field(field);
            return Vec::new();
        }
    };
    dialog.complaint = None;
    dialog.sent = app.shell.now;
    dialog.phase = Phase::Sending { change: Arc::clone(&change), before: loaded.records };
    let auth = if app.shell.has_session() { Auth::Session } else { Auth::Key };
    app.shell.send_request(Purpose::Change, |id| Some(change.request(id, auth))).into_iter().collect()
}

/// Returns the screen that defines a change.
fn owner<'a>(screens: &'a mut Screens, change: &dyn Change) -> Option<&'a mut dyn Screen> {
    screens.all_mut().into_iter().find(|screen| screen.owns_change(change))
}

/// Handles the end of the request.
pub fn sent(app: &mut App, result: Result<Response, NetError>) -> Vec<Effect> {
    let Some(Dialog { phase: Phase::Sending { change, before }, .. }) = &app.shell.dialog else {
        return Vec::new();
    };
    let (change, before) = (Arc::clone(change), before.clone());
    // A screen can open the next dialog.
    let dialog = app.shell.dialog.take();
    let made = result.and_then(|response| match owner(&mut app.screens, &*change) {
        Some(screen) => screen.change_reply(&mut app.shell, &*change, response),
        None => Ok(Vec::new()),
    });
    let error = match made {
        Ok(effects) => return effects,
        Err(error) => error,
    };
    app.shell.dialog = dialog;
    let is_lost = matches!(error.status, None | Some(200..=299 | 500..=599));
    if !is_lost {
        return refused(app, &*change, &error);
    }
    // Without a conclusive response, a list shows whether the change happened.
    let why = describe(&error);
    if let Some(dialog) = &mut app.shell.dialog {
        dialog.phase = Phase::Checking { change, before, why: why.clone(), stuck: None };
    }
    let effects = check(app);
    if effects.is_empty() {
        app.shell.dialog = None;
        app.shell.report(format!("no result: {why}; nothing was stored"));
    }
    effects
}

/// Handles a refused change.
fn refused(app: &mut App, change: &dyn Change, error: &NetError) -> Vec<Effect> {
    let now = app.shell.now;
    match &mut app.shell.dialog {
        // The form stays open, so that the input can be corrected.
        Some(dialog) if matches!(dialog.body, Body::Form(_)) && !error.is_unauthorized() => {
            dialog.ask_again(describe(error), now);
        }
        Some(Dialog { body: Body::Confirm { .. }, .. }) if error.status == Some(404) => {
            app.shell.dialog = None;
            app.shell.report(format!("{} no longer exists: it was deleted elsewhere", change.name()));
        }
        _ => {
            app.shell.dialog = None;
            app.shell.report(describe(error));
        }
    }
    match owner(&mut app.screens, change) {
        Some(screen) => screen.refusal(&mut app.shell, change),
        None => Vec::new(),
    }
}

/// Requests the list that shows whether the change happened. Returns no effect if there is no such list.
pub fn check(app: &mut App) -> Vec<Effect> {
    let project = app.shell.project_id();
    let Some(Dialog { phase: Phase::Checking { change, stuck, .. }, sent, .. }) = &mut app.shell.dialog
    else {
        return Vec::new();
    };
    *stuck = None;
    let since = Timestamp::from_micros(sent.micros() - MAX_CLOCK_SKEW_MICROS);
    let change = Arc::clone(change);
    let context = CheckContext { project, since };
    app.shell.send_request(Purpose::Check, |id| change.check(id, context)).into_iter().collect()
}

/// Handles the list that shows whether the change happened, or the error of reading it.
pub fn checked(app: &mut App, result: Result<Response, NetError>) -> Vec<Effect> {
    let Some(Dialog { phase: Phase::Checking { change, before, why, .. }, sent, .. }) = &app.shell.dialog
    else {
        return Vec::new();
    };
    let (change, before, why, at) = (Arc::clone(change), before.clone(), why.clone(), *sent);
    let sent = SentState { records: &before, at };
    let found = result.and_then(|response| match owner(&mut app.screens, &*change) {
        Some(screen) => screen.check_reply(&mut app.shell, &*change, sent, response),
        None => Ok((ChangeOutcome::NotMade, Vec::new())),
    });
    let now = app.shell.now;
    let (outcome, effects) = match found {
        Ok(found) => found,
        Err(error) => {
            if let Some(Dialog { phase: Phase::Checking { stuck, .. }, .. }) = &mut app.shell.dialog {
                *stuck = Some(describe(&error));
            }
            return Vec::new();
        }
    };
    match outcome {
        ChangeOutcome::NotMade => {
            if let Some(dialog) = &mut app.shell.dialog {
                dialog.ask_again(format!("the change was not made: {why}"), now);
            }
        }
        ChangeOutcome::Made => {
            app.shell.dialog = None;
            app.shell.notify(format!("{}; its response was lost", change.done()));
        }
        ChangeOutcome::NeedsAttention(sentence) => {
            app.shell.dialog = None;
            app.shell.report(sentence);
        }
    }
    effects
}
