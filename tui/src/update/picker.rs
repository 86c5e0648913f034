//! Keys of the choice of a project.

use uuid::Uuid;

use crate::{
    keymap::Action,
    layout,
    msg::Effect,
    state::{Overlay, Purpose, State},
};

use super::{network, travel};

/// Opens the choice; the projects are asked for each time, because they may have changed.
pub(super) fn open(state: &mut State) -> Vec<Effect> {
    let shown = state.project.as_ref().map(|project| project.id);
    // The one that is shown must be among those to choose from.
    if state.project.as_ref().is_some_and(|project| project.archived_at.is_some()) {
        state.manage.show_archived(true);
    }
    state.overlay = Some(Overlay::Projects { selected: shown });
    vec![Effect::LoadProjects(state.request(Purpose::Projects))]
}

pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    let page = usize::from(layout::frame(state.size).body.height).max(2) - 1;
    let Some(Overlay::Projects { selected }) = &mut state.overlay else { return Vec::new() };
    let rows: Vec<Option<Uuid>> =
        std::iter::once(None).chain(state.manage.shown().map(|project| Some(project.id))).collect();
    let at = rows.iter().position(|id| id == selected).unwrap_or(0);
    if let Some(to) = travel::to(action, at, rows.len() - 1, page) {
        *selected = rows[to];
        return Vec::new();
    }
    match action {
        Action::ShowArchived => state.manage.show_archived(!state.manage.archived),
        Action::Back => state.overlay = None,
        Action::Open if state.manage.projects.loaded => {
            let project = rows[at].and_then(|id| state.manage.named(id).cloned());
            state.overlay = None;
            return network::set_project(state, project);
        }
        _ => {}
    }
    Vec::new()
}
