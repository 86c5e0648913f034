//! Keys of the choice of a project.

pub mod view;

use uuid::Uuid;

use crate::{
    keymap::Action,
    layout,
    net::Effect,
    shell::{Overlay, Shell},
    travel,
};

use super::{App, connection};

/// Opens the list of projects. The projects are requested each time, because they can have changed.
pub fn open(shell: &mut Shell) -> Vec<Effect> {
    let shown = shell.project_id();
    // An archived project that is shown must be in the list.
    if shell.project.as_ref().is_some_and(|project| project.archived_at.is_some()) {
        shell.projects.show_archived(true);
    }
    shell.overlay = Some(Overlay::Projects { selected: shown });
    vec![shell.load_projects()]
}

pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let page = usize::from(layout::frame(app.shell.size).body.height).max(2) - 1;
    let Some(Overlay::Projects { selected }) = &mut app.shell.overlay else { return Vec::new() };
    let rows: Vec<Option<Uuid>> =
        std::iter::once(None).chain(app.shell.projects.shown().map(|project| Some(project.id))).collect();
    let at = rows.iter().position(|id| id == selected).unwrap_or(0);
    if let Some(to) = travel::to(action, at, rows.len() - 1, page) {
        *selected = rows[to];
        return Vec::new();
    }
    match action {
        Action::ShowArchived => app.shell.projects.show_archived(!app.shell.projects.archived),
        Action::Back => app.shell.overlay = None,
        Action::Open if app.shell.projects.loaded => {
            let project = rows[at].and_then(|id| app.shell.projects.get(id).cloned());
            app.shell.overlay = None;
            return connection::set_project(app, project);
        }
        _ => {}
    }
    Vec::new()
}
