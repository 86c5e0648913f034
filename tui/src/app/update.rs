//! The effect of each message on the console. Nothing here waits or draws.

use crossterm::event::{KeyEvent, KeyEventKind};

use crate::{
    input::{Input, InputKind},
    keymap::{Action, Binding, Lookup, key_name},
    layout,
    net::{Destination, Effect, Msg},
    screen::{
        SCREEN_COUNT,
        approvals::{self, SCREEN_DIGIT as APPROVALS},
        evals,
        traces::{SCREEN_DIGIT as TRACES, detail, feed, keys::LIST_SCOPE},
    },
    shell::{Location, Overlay},
    travel,
};

use super::{App, bookmarks, connection, context, copy, dialog, help, palette, permission, picker, typing};

/// Handles a message.
pub fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    let effects = handle(app, msg);
    let effects = resolve(app, effects);
    app.settle();
    effects
}

fn handle(app: &mut App, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
        Msg::Key(key) => press(app, key),
        Msg::Paste(text) => {
            if app.shell.dialog.is_some() {
                dialog::paste(&mut app.shell, &text);
            } else {
                typing::paste(app, &text);
            }
            Vec::new()
        }
        Msg::Resize(cols, rows) => {
            app.shell.size = (cols, rows);
            if let Some(detail) = &mut app.screens.traces.detail {
                detail.touch();
            }
            Vec::new()
        }
        Msg::Tick(now) => {
            app.shell.now = now;
            if app.shell.toast.as_ref().is_some_and(|toast| toast.until <= now) {
                app.shell.toast = None;
            }
            connection::tick(app)
        }
        Msg::Reply(request, result) => connection::reply(app, request, result),
        Msg::Stream(request, event) => feed::stream(&mut app.screens.traces, &mut app.shell, request, event),
        Msg::Written(result) => {
            match result {
                Ok(notice) => app.shell.notify(notice),
                Err(problem) => app.shell.report(problem),
            }
            Vec::new()
        }
        Msg::Limit(limit) => {
            app.shell.limit = Some(limit);
            Vec::new()
        }
    }
}

/// Performs the effects that concern the console itself, and returns the others in their order.
pub fn resolve(app: &mut App, effects: Vec<Effect>) -> Vec<Effect> {
    let mut resolved = Vec::new();
    for effect in effects {
        let inner = match effect {
            Effect::Go(destination) => go(app, destination),
            Effect::RefreshList => connection::refresh_list(app),
            Effect::ShowEvaluations => show_evaluations(app),
            Effect::Reconnected { refused } => connection::reconnected(app, refused),
            effect => {
                resolved.push(effect);
                continue;
            }
        };
        resolved.extend(resolve(app, inner));
    }
    resolved
}

/// Shows the evaluation that was just created, on the current screen if it can.
fn show_evaluations(app: &mut App) -> Vec<Effect> {
    if app.shell.screen == evals::SCREEN_DIGIT {
        return evals::update::created(&mut app.screens.evals, &mut app.shell);
    }
    if app.shell.screen == TRACES && app.screens.traces.detail.is_some() {
        return detail::update::show_evals(&mut app.screens.traces, &mut app.shell);
    }
    let key = app.shell.key_named("trace.evals");
    app.shell.notify(format!("the evaluation was requested; {key} shows it"));
    Vec::new()
}

fn press(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    // A key dismisses a notice; a failure stays for its time.
    if app.shell.toast.as_ref().is_some_and(|toast| !toast.is_failure) {
        app.shell.toast = None;
    }
    if app.shell.dialog.is_some() {
        return dialog::key(app, key);
    }
    if app.shell.input.is_some() {
        return typing::key(app, key);
    }
    let Some(name) = key_name(key) else { return Vec::new() };
    let scope = app.shell.active_scope();
    let prefix = app.shell.prefix.take();
    if prefix.is_some() && name == "esc" {
        return Vec::new();
    }
    let sequence = prefix.as_ref().map_or_else(|| name.clone(), |prefix| format!("{prefix} {name}"));
    match app.shell.keymap.lookup(scope, &sequence) {
        Lookup::Action(binding) => perform(app, binding),
        Lookup::Prefix => {
            app.shell.prefix = Some(sequence);
            Vec::new()
        }
        Lookup::Nothing if name == "ctrl-c" => vec![Effect::Quit],
        Lookup::Nothing => {
            if prefix.is_some() {
                app.shell.notify(format!("{sequence} does nothing here; ? lists the keys"));
            }
            Vec::new()
        }
    }
}

/// Performs the action of a binding if the user may.
pub fn perform(app: &mut App, binding: &Binding) -> Vec<Effect> {
    match permission::refusal(&app.shell, binding) {
        Some(reason) => {
            app.shell.notify(reason);
            Vec::new()
        }
        None => act(app, binding.action),
    }
}

/// Performs an action.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    match action {
        Action::Quit => return vec![Effect::Quit],
        Action::Suspend => return vec![Effect::Suspend],
        Action::Redraw => return vec![Effect::Redraw],
        Action::Help => {
            let open = matches!(app.shell.overlay, Some(Overlay::Help { .. }));
            app.shell.overlay = (!open).then(|| Overlay::Help { top: 0, words: String::new() });
            return Vec::new();
        }
        Action::Problems => {
            let open = matches!(app.shell.overlay, Some(Overlay::Problems { .. }));
            app.shell.overlay = (!open).then_some(Overlay::Problems { top: 0 });
            return Vec::new();
        }
        Action::Screen(screen) => return vec![Effect::Go(Destination::Screen(screen))],
        Action::NextScreen => {
            return vec![Effect::Go(Destination::Screen(app.shell.screen % SCREEN_COUNT + 1))];
        }
        Action::PreviousScreen => {
            let screen = (app.shell.screen + SCREEN_COUNT - 2) % SCREEN_COUNT + 1;
            return vec![Effect::Go(Destination::Screen(screen))];
        }
        Action::LastPlace => {
            return match app.shell.last_place {
                Some(place) => go_to(app, place),
                None => Vec::new(),
            };
        }
        Action::Find => {
            typing::start_find(app);
            return Vec::new();
        }
        Action::Projects => return picker::open(&mut app.shell),
        Action::Contexts => {
            context::open(&mut app.shell);
            return Vec::new();
        }
        Action::Palette => return palette::open(&mut app.shell),
        Action::Bookmark if app.shell.overlay.is_none() => return bookmarks::toggle(app),
        Action::Bookmarks if app.shell.overlay.is_none() => {
            app.shell.overlay = Some(Overlay::Bookmarks { selected: 0 });
            return Vec::new();
        }
        Action::TraceEvals if app.shell.overlay.is_none() => {
            let Some(trace) = app.screen().current_trace() else {
                app.shell.notify("no trace is selected");
                return Vec::new();
            };
            return evals::update::show(&mut app.screens.evals, &mut app.shell, "trace", trace);
        }
        Action::TraceApproval if app.shell.overlay.is_none() => {
            let Some(trace) = app.screen().current_trace() else {
                app.shell.notify("no trace is selected");
                return Vec::new();
            };
            return vec![Effect::Go(Destination::Approval { trace })];
        }
        // Evals copies the evaluation under the cursor, so it handles the action itself.
        Action::Evaluate if app.shell.overlay.is_none() && app.shell.screen != evals::SCREEN_DIGIT => {
            let trace = app.screen().current_trace();
            return evals::update::run_form(&mut app.shell, trace);
        }
        Action::Export => {
            match app.screen().export_name() {
                Some(name) => app.shell.input = Some(Input::new(InputKind::Export, &name)),
                None => app.shell.notify("nothing to write here"),
            }
            return Vec::new();
        }
        Action::CopyId | Action::CopyText | Action::CopyUrl | Action::CopyJson | Action::CopyCurl => {
            return copy::copy(app, action);
        }
        _ => {}
    }
    // A refresh of any screen retries the list too, because its requests detect that the server is back.
    let retried =
        action == Action::Refresh && app.shell.active_scope() != LIST_SCOPE && app.shell.failure().is_some();
    let mut effects = if retried { feed::retry(&mut app.shell) } else { Vec::new() };
    effects.extend(act_in_scope(app, action));
    effects
}

/// Performs an action of the overlay or the screen.
fn act_in_scope(app: &mut App, action: Action) -> Vec<Effect> {
    match &app.shell.overlay {
        None => app.screens.get_mut(app.shell.screen).act(&mut app.shell, action),
        Some(Overlay::Projects { .. }) => picker::act(app, action),
        Some(Overlay::Contexts { .. }) => context::act(app, action),
        Some(Overlay::Bookmarks { .. }) => bookmarks::act(app, action),
        Some(Overlay::Help { .. } | Overlay::Problems { .. } | Overlay::Palette { .. }) => {
            scroll_overlay(app, action);
            Vec::new()
        }
    }
}

/// Goes to a place and remembers the current one.
fn go(app: &mut App, destination: Destination) -> Vec<Effect> {
    match destination {
        Destination::Screen(screen) => go_to(app, Location { screen, trace: None }),
        Destination::Trace { id, span, from } => {
            open_trace(app, Location { screen: TRACES, trace: Some(id) }, span, from)
        }
        Destination::Traces { filter } => {
            let mut effects = go_to(app, Location { screen: TRACES, trace: None });
            effects.extend(feed::set_filter(&mut app.screens.traces, &mut app.shell, filter));
            effects
        }
        Destination::Approval { trace } => {
            let mut effects = go_to(app, Location { screen: APPROVALS, trace: None });
            effects.extend(approvals::update::show_trace(&mut app.screens.approvals, &mut app.shell, trace));
            effects
        }
        Destination::Remediation { action, trace, span } => {
            let mut effects = go_to(app, Location { screen: APPROVALS, trace: None });
            let (screen, back) = (&mut app.screens.approvals, Some((trace, span)));
            effects.extend(approvals::update::show_remediation(screen, &mut app.shell, action, back));
            effects
        }
        Destination::Project(project) => {
            let mut effects = go_to(app, Location { screen: TRACES, trace: None });
            effects.extend(connection::set_project(app, project.map(|project| *project)));
            effects
        }
    }
}

fn go_to(app: &mut App, place: Location) -> Vec<Effect> {
    open_trace(app, place, None, None)
}

fn open_trace(app: &mut App, place: Location, span: Option<uuid::Uuid>, from: Option<u8>) -> Vec<Effect> {
    let here = app.place();
    if here == place {
        return Vec::new();
    }
    app.shell.last_place = Some(here);
    app.shell.overlay = None;
    app.shell.screen = place.screen.clamp(1, SCREEN_COUNT);
    let effects = match place.trace {
        Some(id) => app.screens.traces.open(&mut app.shell, id, span, from),
        None => {
            app.screens.traces.detail = None;
            app.screens.get_mut(app.shell.screen).enter(&mut app.shell)
        }
    };
    app.shell.scope = app.screen().scope();
    effects
}

fn scroll_overlay(app: &mut App, action: Action) {
    let page = usize::from(layout::frame(app.shell.size).body.height.saturating_sub(2)).max(1);
    let lines = help::overlay_len(&app.shell);
    let Some(Overlay::Help { top, .. } | Overlay::Problems { top }) = &mut app.shell.overlay else { return };
    if let Some(to) = travel::to(action, *top, lines.saturating_sub(page), page) {
        *top = to;
    } else if action == Action::Back {
        app.shell.overlay = None;
    }
}
