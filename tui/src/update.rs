//! What happens to the state: one message in, effects out. Nothing here waits or draws.

mod bookmarks;
mod context;
mod copy;
mod detail;
mod dialog;
mod evals;
mod known;
mod list;
mod manage;
mod metrics;
mod network;
mod outcome;
mod palette;
mod picker;
mod rules;
mod search;
mod travel;
mod trouble;
mod typing;

use crossterm::event::{KeyEvent, KeyEventKind};

use crate::{
    content::scores::Keys,
    input::{Input, Purpose as Line},
    keymap::{Action, Binding, Lookup, Scope, key_name},
    layout,
    msg::{Effect, Msg},
    state::{EVALS, MANAGE, METRICS, Overlay, Place, SEARCH, State},
};

pub use network::start;

/// Screens by digit.
pub const SCREENS: u8 = 8;

/// Takes in a message.
pub fn update(state: &mut State, msg: Msg) -> Vec<Effect> {
    let effects = match msg {
        Msg::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
        Msg::Key(key) => press(state, key),
        Msg::Paste(text) if state.dialog.is_some() => {
            dialog::paste(state, &text);
            Vec::new()
        }
        Msg::Paste(text) => {
            typing::paste(state, &text);
            Vec::new()
        }
        Msg::Resize(cols, rows) => {
            state.size = (cols, rows);
            if let Some(detail) = &mut state.detail {
                detail.touch();
            }
            Vec::new()
        }
        Msg::Tick(now) => {
            state.now = now;
            if state.toast.as_ref().is_some_and(|toast| toast.until <= now) {
                state.toast = None;
            }
            let mut effects = network::tick(state);
            effects.extend(metrics::tick(state));
            effects.extend(evals::tick(state));
            effects.extend(detail::tick(state));
            effects
        }
        Msg::Reply(request, result) => network::reply(state, request, result),
        Msg::Stream(request, event) => network::stream(state, request, event),
        Msg::Written(result) => {
            match result {
                Ok(told) => state.tell(told),
                Err(why) => state.complain(why),
            }
            Vec::new()
        }
        Msg::Limit(limit) => {
            state.limit = Some(limit);
            Vec::new()
        }
    };
    let (size, reader, keys) = (state.size, state.reader(), Keys::of(state));
    if let Some(detail) = &mut state.detail {
        detail.compose(size, reader, &keys);
    }
    effects
}

fn press(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    // A notice was read by now; a failure stays its time.
    if state.toast.as_ref().is_some_and(|toast| !toast.bad) {
        state.toast = None;
    }
    if state.dialog.is_some() {
        return dialog::key(state, key);
    }
    if state.input.is_some() {
        return typing::key(state, key);
    }
    let Some(name) = key_name(key) else { return Vec::new() };
    let scope = state.scope();
    let prefix = state.prefix.take();
    if prefix.is_some() && name == "esc" {
        return Vec::new();
    }
    let sequence = prefix.as_ref().map_or_else(|| name.clone(), |prefix| format!("{prefix} {name}"));
    match state.keymap.lookup(scope, &sequence) {
        Lookup::Action(binding) => perform(state, binding),
        Lookup::Prefix => {
            state.prefix = Some(sequence);
            Vec::new()
        }
        Lookup::Nothing if name == "ctrl-c" => vec![Effect::Quit],
        Lookup::Nothing => {
            if prefix.is_some() {
                state.tell(format!("{sequence} does nothing here; ? lists the keys"));
            }
            Vec::new()
        }
    }
}

/// Does what a row of the table says, unless it may not be done.
fn perform(state: &mut State, binding: &Binding) -> Vec<Effect> {
    match manage::refusal(state, binding) {
        Some(why) => {
            state.tell(why);
            Vec::new()
        }
        None => act(state, binding.action),
    }
}

fn act(state: &mut State, action: Action) -> Vec<Effect> {
    match action {
        Action::Quit => return vec![Effect::Quit],
        Action::Suspend => return vec![Effect::Suspend],
        Action::Redraw => return vec![Effect::Redraw],
        Action::Help => {
            let open = matches!(state.overlay, Some(Overlay::Help { .. }));
            state.overlay = (!open).then(|| Overlay::Help { top: 0, words: String::new() });
            return Vec::new();
        }
        Action::Problems => {
            let open = matches!(state.overlay, Some(Overlay::Problems { .. }));
            state.overlay = (!open).then_some(Overlay::Problems { top: 0 });
            return Vec::new();
        }
        Action::Screen(screen) => return go(state, Place { screen, trace: None }),
        Action::NextScreen => return go(state, Place { screen: state.screen % SCREENS + 1, trace: None }),
        Action::PreviousScreen => {
            return go(state, Place { screen: (state.screen + SCREENS - 2) % SCREENS + 1, trace: None });
        }
        Action::LastPlace => {
            return match state.last_place {
                Some(place) => go(state, place),
                None => Vec::new(),
            };
        }
        Action::Find => {
            typing::start_find(state);
            return Vec::new();
        }
        Action::Projects => return picker::open(state),
        Action::Contexts => {
            context::open(state);
            return Vec::new();
        }
        Action::Palette => return palette::open(state),
        Action::Bookmark if state.overlay.is_none() => return bookmarks::toggle(state),
        Action::Bookmarks if state.overlay.is_none() => {
            state.overlay = Some(Overlay::Bookmarks { selected: 0 });
            return Vec::new();
        }
        Action::TraceEvals if state.overlay.is_none() => {
            return match known::at_hand(state) {
                Some(trace) => evals::of(state, "trace", trace),
                None => {
                    state.tell("no trace is selected");
                    Vec::new()
                }
            };
        }
        Action::Evaluate if state.overlay.is_none() => return evals::ask(state),
        Action::Export => {
            match crate::export::suggested(state) {
                Some(name) => state.input = Some(Input::new(Line::Export, &name)),
                None => state.tell("nothing to write here"),
            }
            return Vec::new();
        }
        Action::CopyId | Action::CopyText | Action::CopyUrl | Action::CopyJson | Action::CopyCurl => {
            return copy::copy(state, action);
        }
        _ => {}
    }
    // A refresh of any screen retries the list too, because its requests detect that the server is back.
    let retried = action == Action::Refresh && state.scope() != Scope::List && state.failure().is_some();
    let mut effects = if retried { network::retry(state) } else { Vec::new() };
    effects.extend(of_scope(state, action));
    effects
}

/// Applies an action to the current screen.
fn of_scope(state: &mut State, action: Action) -> Vec<Effect> {
    match state.scope() {
        Scope::Overlay => {
            overlay(state, action);
            Vec::new()
        }
        Scope::Picker => picker::act(state, action),
        Scope::Contexts => context::act(state, action),
        Scope::Bookmarks => bookmarks::act(state, action),
        Scope::Evals => evals::act(state, action),
        Scope::Rules => rules::act(state, action),
        Scope::Metrics => metrics::act(state, action),
        Scope::Search => search::act(state, action),
        Scope::Keys | Scope::Projects | Scope::Plan => manage::act(state, action),
        Scope::List => list::act(state, action),
        Scope::Tree | Scope::Pane => detail::act(state, action),
        Scope::Panel => {
            if action == Action::Back {
                return go(state, Place { screen: 1, trace: None });
            }
            Vec::new()
        }
    }
}

/// Goes to a place and remembers this one.
fn go(state: &mut State, place: Place) -> Vec<Effect> {
    let here = state.place();
    if here == place {
        return Vec::new();
    }
    state.last_place = Some(here);
    state.overlay = None;
    state.screen = place.screen.clamp(1, SCREENS);
    match place.trace {
        Some(id) => detail::open(state, id),
        None => {
            state.detail = None;
            enter(state)
        }
    }
}

/// Asks for what the screen shows beyond what is always kept.
fn enter(state: &mut State) -> Vec<Effect> {
    match state.screen {
        EVALS => evals::enter(state),
        METRICS => metrics::load(state),
        SEARCH => search::enter(state),
        MANAGE => manage::load(state),
        _ => Vec::new(),
    }
}

fn overlay(state: &mut State, action: Action) {
    let page = usize::from(layout::frame(state.size).body.height.saturating_sub(2)).max(1);
    let lines = crate::screens::help::overlay_len(state);
    let Some(Overlay::Help { top, .. } | Overlay::Problems { top }) = &mut state.overlay else { return };
    if let Some(to) = travel::to(action, *top, lines.saturating_sub(page), page) {
        *top = to;
    } else if action == Action::Back {
        state.overlay = None;
    }
}
