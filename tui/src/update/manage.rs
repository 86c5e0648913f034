//! Keys of Keys & Projects, and who may press them.

use api::project::{Project, ProjectStatus};

use crate::{
    change::Change,
    dialog::{Body, Dialog},
    keymap::{Action, Binding, Scope},
    layout,
    manage::Tab,
    msg::{Effect, NetError, Reply},
    state::{Place, Purpose, State},
};

use super::{go, network, rules, travel};

/// Asks for everything that the screen shows.
pub(super) fn load(state: &mut State) -> Vec<Effect> {
    let session = state.has_session();
    let mut effects = vec![
        Effect::LoadMe { request: state.request(Purpose::Me), session },
        Effect::LoadProjects(state.request(Purpose::Projects)),
    ];
    if session {
        effects.push(Effect::LoadKeys(state.request(Purpose::Keys)));
    }
    effects
}

/// Takes in a list.
pub(super) fn fill(state: &mut State, reply: Reply) {
    match reply {
        Reply::Keys(keys) => state.manage.fill_keys(keys),
        Reply::Projects(projects) => {
            state.manage.fill_projects(projects);
            let active = rules::active(state);
            if let Some(Dialog { body: Body::Form(form), .. }) = &mut state.dialog {
                form.fill_projects(active);
            }
        }
        _ => {}
    }
    // What the header says of the project shown may have changed.
    let shown = state.project.as_ref().and_then(|project| state.manage.named(project.id));
    if let Some(project) = shown.cloned() {
        state.project = Some(project);
    }
}

/// Why what a row of the table says may not be done, for people; nothing if it may.
pub(super) fn refusal(state: &State, binding: &Binding) -> Option<String> {
    let needed = binding.needs?;
    if state.target.read_only {
        return Some("this console is read-only: it changes nothing".to_owned());
    }
    if state.failure().is_some_and(NetError::is_transient) {
        return Some("the server does not answer; nothing was sent".to_owned());
    }
    if binding.scopes.contains(&Scope::Keys) && !state.has_session() {
        return Some("keys are managed with a session token, and there is none".to_owned());
    }
    let me = state.me.as_ref()?;
    // A session goes first where there is one; the key counts only without.
    if me.subject.is_none() && me.api_key.as_ref().is_some_and(|key| !key.scopes.is_empty()) {
        return Some(
            "this API key may only read; a session or a key with full access changes things".to_owned(),
        );
    }
    let role = me.role;
    (role < needed).then(|| format!("that takes the role {needed}; yours is {role}"))
}

pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    let (now, protected) = (state.now, state.target.protected);
    match action {
        Action::NextTab | Action::PreviousTab => {
            state.manage.tab = state.manage.tab.turned(action == Action::NextTab);
        }
        Action::Refresh => return load(state),
        Action::Back => return go(state, Place { screen: 1, trace: None }),
        Action::ShowArchived => state.manage.show_archived(!state.manage.archived),
        Action::Open => {
            let Some(project) = state.manage.project().cloned() else { return Vec::new() };
            let mut effects = go(state, Place { screen: 1, trace: None });
            effects.extend(network::set_project(state, Some(project)));
            return effects;
        }
        Action::NewKey => {
            let project = state.project.as_ref().filter(|it| it.status == ProjectStatus::Active);
            state.dialog = Some(Dialog::new_key(project.map(|it| it.id), now));
        }
        Action::NewProject => state.dialog = Some(Dialog::new_project(now)),
        Action::RevokeKey => match state.manage.key() {
            Some(key) => {
                let change = Change::RevokeKey { id: key.id, name: key.name.clone() };
                state.dialog = Some(Dialog::confirm(change, protected, now));
            }
            None => state.tell("no key is selected"),
        },
        Action::Archive | Action::Unarchive | Action::Autoship => {
            match state.manage.project().map(|project| project_change(action, project)) {
                Some(Ok(change)) => state.dialog = Some(Dialog::confirm(change, protected, now)),
                Some(Err(why)) => state.tell(why),
                None => state.tell("no project is selected"),
            }
        }
        _ => move_cursor(state, action),
    }
    Vec::new()
}

/// What a key does to the selected project, or why there is nothing to do.
fn project_change(action: Action, project: &Project) -> Result<Change, String> {
    let (id, name) = (project.id, project.name.clone());
    match (action, project.status) {
        (Action::Archive, ProjectStatus::Active) => {
            Ok(Change::SetStatus { id, name, status: ProjectStatus::Archived })
        }
        (Action::Archive, ProjectStatus::Archived) => Err(format!("{name} is archived already")),
        (Action::Unarchive, ProjectStatus::Archived) => {
            Ok(Change::SetStatus { id, name, status: ProjectStatus::Active })
        }
        (Action::Unarchive, ProjectStatus::Active) => Err(format!("{name} is not archived")),
        _ => Ok(Change::SetAutoship { id, name, on: !project.prompt_autoship_enabled }),
    }
}

fn move_cursor(state: &mut State, action: Action) {
    let last = match state.manage.tab {
        Tab::Keys => state.manage.keys.items.len(),
        Tab::Projects => state.manage.shown_len(),
        Tab::Plan => return,
    };
    let page = usize::from(layout::frame(state.size).body.height / 2).max(2) - 1;
    let selected = match state.manage.tab {
        Tab::Keys => &mut state.manage.keys.selected,
        Tab::Projects | Tab::Plan => &mut state.manage.projects.selected,
    };
    if let Some(to) = travel::to(action, *selected, last.saturating_sub(1), page) {
        *selected = to;
    }
}
