//! Keys of the palette.

use crossterm::event::{KeyCode, KeyEvent};

use crate::{
    input::{Edit, Input, Purpose as Line},
    layout,
    msg::Effect,
    palette::{Pick, items},
    state::{Overlay, Place, Purpose, State},
};

use super::{context, go, network, perform};

/// Opens the palette; the projects in it are read afresh.
pub(super) fn open(state: &mut State) -> Vec<Effect> {
    state.overlay = Some(Overlay::Palette { selected: 0 });
    state.input = Some(Input::new(Line::Palette, ""));
    vec![Effect::LoadProjects(state.request(Purpose::Projects))]
}

/// Performs a key; what is no movement edits the words.
pub(super) fn key(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    let page = usize::from(layout::frame(state.size).body.height).max(2) - 1;
    let words = state.input.as_ref().map(|input| input.text().to_owned()).unwrap_or_default();
    let last = items(state, &words).len().saturating_sub(1);
    let (Some(Overlay::Palette { selected }), Some(input)) = (&mut state.overlay, &mut state.input) else {
        state.input = None;
        return Vec::new();
    };
    match key.code {
        KeyCode::Up | KeyCode::BackTab => *selected = selected.saturating_sub(1),
        KeyCode::Down | KeyCode::Tab => *selected = (*selected + 1).min(last),
        KeyCode::PageUp => *selected = selected.saturating_sub(page),
        KeyCode::PageDown => *selected = (*selected + page).min(last),
        _ => match input.key(key, &[]) {
            Edit::Stay | Edit::Complete => *selected = 0,
            Edit::Cancel => close(state),
            Edit::Accept => {
                let at = *selected;
                let picked = items(state, &words).into_iter().nth(at).map(|item| item.pick);
                close(state);
                return picked.map(|pick| choose(state, pick)).unwrap_or_default();
            }
        },
    }
    Vec::new()
}

fn close(state: &mut State) {
    state.overlay = None;
    state.input = None;
}

fn choose(state: &mut State, pick: Pick) -> Vec<Effect> {
    match pick {
        Pick::Do(binding) => perform(state, binding),
        Pick::Project(id) => {
            let project = id.and_then(|id| state.manage.named(id).cloned());
            network::set_project(state, project)
        }
        Pick::Context(number) => context::go(state, number),
        Pick::Filter(text) => {
            let mut effects = go(state, Place { screen: 1, trace: None });
            match state.parse(&text) {
                Ok(_) => effects.extend(network::set_filter(state, text)),
                Err((_, message)) => state.complain(format!("filter {text}: {message}")),
            }
            effects
        }
        Pick::Trace(id) => go(state, Place { screen: 1, trace: Some(id) }),
    }
}
