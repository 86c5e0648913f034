//! Keys of the choice of a project.

use api::project::Project;

use crate::{
    keymap::Action,
    layout,
    msg::Effect,
    state::{Overlay, Purpose, State},
};

use super::network;

/// Opens the choice; the projects are asked for each time, because they may have changed.
pub(super) fn open(state: &mut State) -> Vec<Effect> {
    state.overlay = Some(Overlay::Projects { all: None, selected: 0 });
    vec![Effect::LoadProjects(state.request(Purpose::Picker))]
}

/// The projects are here: active ones first, by name. The cursor goes to the one shown.
pub(super) fn fill(state: &mut State, mut projects: Vec<Project>) {
    let shown = state.project.as_ref().map(|project| project.id);
    let Some(Overlay::Projects { all, selected }) = &mut state.overlay else { return };
    projects.sort_by(|a, b| (a.archived_at.is_some(), &a.name).cmp(&(b.archived_at.is_some(), &b.name)));
    *selected = projects.iter().position(|project| Some(project.id) == shown).map_or(0, |at| at + 1);
    *all = Some(projects);
}

pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    let page = usize::from(layout::frame(state.size).body.height).max(2) - 1;
    let Some(Overlay::Projects { all, selected }) = &mut state.overlay else { return Vec::new() };
    let last = all.as_ref().map_or(0, Vec::len);
    match action {
        Action::Up => *selected = selected.saturating_sub(1),
        Action::Down => *selected = (*selected + 1).min(last),
        Action::PageUp => *selected = selected.saturating_sub(page),
        Action::PageDown => *selected = (*selected + page).min(last),
        Action::Top => *selected = 0,
        Action::Bottom => *selected = last,
        Action::Back => state.overlay = None,
        Action::Open => {
            let Some(all) = all else { return Vec::new() };
            let project = selected.checked_sub(1).and_then(|at| all.get(at).cloned());
            state.overlay = None;
            return network::set_project(state, project);
        }
        _ => {}
    }
    Vec::new()
}
