//! Going to another context: another server, with its own credentials and nothing of this one's.

use crate::{
    keymap::Action,
    layout,
    msg::Effect,
    state::{Overlay, State},
};

use super::{network, travel};

/// Opens the choice; the cursor stands at the context in use.
pub(super) fn open(state: &mut State) {
    if state.contexts.is_empty() {
        state.tell("there is no context to go to; loupe context set NAME --url URL makes one");
        return;
    }
    let here = state.contexts.iter().position(|it| it.context == state.target.context);
    state.overlay = Some(Overlay::Contexts { selected: here.unwrap_or(0) });
}

pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    let page = usize::from(layout::frame(state.size).body.height).max(2) - 1;
    let last = state.contexts.len().saturating_sub(1);
    let Some(Overlay::Contexts { selected }) = &mut state.overlay else { return Vec::new() };
    if let Some(to) = travel::to(action, *selected, last, page) {
        *selected = to;
        return Vec::new();
    }
    match action {
        Action::Back => state.overlay = None,
        Action::Open => {
            let number = *selected;
            state.overlay = None;
            return go(state, number);
        }
        _ => {}
    }
    Vec::new()
}

/// Leaves everything of this context and begins in another one, on the same screen.
pub(super) fn go(state: &mut State, number: usize) -> Vec<Effect> {
    let Some(target) = state.contexts.get(number).cloned() else { return Vec::new() };
    let name = target.context.clone().unwrap_or_default();
    if target.context == state.target.context {
        state.tell(format!("{name} is the context in use"));
        return Vec::new();
    }
    *state = state.moved(target);
    let mut effects = vec![Effect::Connect(number)];
    effects.extend(network::begin(state));
    state.tell(format!("context {name}: {}", state.target.url));
    effects
}
