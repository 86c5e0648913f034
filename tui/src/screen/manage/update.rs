//! Key handling of the screen Keys & Projects.

use api::{
    Timestamp,
    client::calls::{self, Page},
    page::MAX_LIMIT,
    project::{Project, ProjectStatus},
    rejection::RejectionList,
};

use crate::{
    dialog::Dialog,
    keymap::Action,
    layout::frame,
    net::{Destination, Effect, NetError, Response},
    screen::manage::{
        SCREEN_DIGIT,
        change::ManageChange,
        form,
        state::{Manage, ManageRequest, Section},
    },
    shell::{Pending, Rows, ScreenActions, ScreenRequests, Shell, notice::describe, trouble},
    travel,
};

impl ScreenActions for Manage {
    fn project_changed(&mut self, shell: &mut Shell) -> Vec<Effect> {
        // The other sections show all projects.
        self.rejections = Rows::default();
        let is_shown = shell.screen == SCREEN_DIGIT && self.section == Section::Rejections;
        if is_shown { vec![load_rejections(self, shell)] } else { Vec::new() }
    }

    fn enter(&mut self, shell: &mut Shell) -> Vec<Effect> {
        load(self, shell)
    }

    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        let (now, protected) = (shell.now, shell.target.protected);
        match action {
            Action::NextTab | Action::PreviousTab => {
                self.section = self.section.neighbour(action == Action::NextTab);
                if self.section == Section::Rejections {
                    return vec![load_rejections(self, shell)];
                }
            }
            Action::Refresh => return load(self, shell),
            Action::Back => return vec![Effect::Go(Destination::Screen(1))],
            Action::ShowArchived => shell.projects.show_archived(!shell.projects.archived),
            Action::Open => {
                let Some(project) = shell.projects.current().cloned() else { return Vec::new() };
                return vec![Effect::Go(Destination::Project(Some(Box::new(project))))];
            }
            Action::NewKey => {
                let project = shell.project.as_ref().filter(|it| it.status == ProjectStatus::Active);
                let form = form::new_key(project.map(|it| it.id), shell.active_projects());
                shell.dialog = Some(Dialog::form(form, now));
            }
            Action::NewProject => shell.dialog = Some(Dialog::form(form::new_project(), now)),
            Action::RevokeKey => match self.key() {
                Some(key) => {
                    let change = ManageChange::RevokeKey { id: key.id, name: key.name.clone() };
                    shell.dialog = Some(Dialog::confirm(change, protected, now));
                }
                None => shell.notify("no key is selected"),
            },
            Action::Archive | Action::Unarchive | Action::Autoship => {
                match shell.projects.current().map(|project| project_change(action, project)) {
                    Some(Ok(change)) => shell.dialog = Some(Dialog::confirm(change, protected, now)),
                    Some(Err(why)) => shell.notify(why),
                    None => shell.notify("no project is selected"),
                }
            }
            _ => move_cursor(self, shell, action),
        }
        Vec::new()
    }
}

impl ScreenRequests for Manage {
    type Purpose = ManageRequest;

    fn pending(&self) -> &Pending<ManageRequest> {
        &self.pending
    }

    fn pending_mut(&mut self) -> &mut Pending<ManageRequest> {
        &mut self.pending
    }

    fn fill(
        &mut self,
        _shell: &mut Shell,
        purpose: ManageRequest,
        _sent: Timestamp,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        match purpose {
            ManageRequest::Keys => self.fill_keys(response.decoded()?),
            ManageRequest::Rejections => {
                let page: RejectionList = response.decoded()?;
                self.fill_rejections(page.rejections);
            }
        }
        Ok(Vec::new())
    }

    fn fail(&mut self, shell: &mut Shell, purpose: ManageRequest, error: NetError) -> Vec<Effect> {
        if purpose == ManageRequest::Rejections {
            let effects = trouble::unauthorized(shell, &error);
            if trouble::is_new(self.rejections.error.as_ref(), &error) {
                shell.report(describe(&error));
            }
            self.rejections.error = Some(error);
            return effects;
        }
        if trouble::is_session_refused(shell, &error) {
            return trouble::session_refused(shell, &error);
        }
        let effects = trouble::unauthorized(shell, &error);
        // The panel explains a role that is too low, so the log does not.
        if error.status != Some(403) && trouble::is_new(self.keys.error.as_ref(), &error) {
            shell.report(describe(&error));
        }
        self.keys.error = Some(error);
        effects
    }
}

/// Requests everything that the screen shows.
pub fn load(manage: &mut Manage, shell: &mut Shell) -> Vec<Effect> {
    let mut effects = vec![shell.load_me(), shell.load_projects()];
    if shell.has_session() {
        effects.push(manage.pending.send_all(shell.ticket(), ManageRequest::Keys, calls::api_keys));
    }
    if manage.section == Section::Rejections {
        effects.push(load_rejections(manage, shell));
    }
    effects
}

/// Requests the newest rejections.
fn load_rejections(manage: &mut Manage, shell: &mut Shell) -> Effect {
    let page = Page { limit: Some(MAX_LIMIT), cursor: None };
    let call = calls::rejections(shell.project_id(), &page);
    manage.pending.send(shell.ticket(), ManageRequest::Rejections, call)
}

/// Returns the change of the selected project that an action makes, or why there is none.
fn project_change(action: Action, project: &Project) -> Result<ManageChange, String> {
    let (id, name) = (project.id, project.name.clone());
    match (action, project.status) {
        (Action::Archive, ProjectStatus::Active) => {
            Ok(ManageChange::SetStatus { id, name, status: ProjectStatus::Archived })
        }
        (Action::Archive, ProjectStatus::Archived) => Err(format!("{name} is archived already")),
        (Action::Unarchive, ProjectStatus::Archived) => {
            Ok(ManageChange::SetStatus { id, name, status: ProjectStatus::Active })
        }
        (Action::Unarchive, ProjectStatus::Active) => Err(format!("{name} is not archived")),
        _ => Ok(ManageChange::SetAutoship { id, name, on: !project.prompt_autoship_enabled }),
    }
}

fn move_cursor(manage: &mut Manage, shell: &mut Shell, action: Action) {
    let last = match manage.section {
        Section::Keys => manage.keys.items.len(),
        Section::Projects => shell.projects.shown_len(),
        Section::Rejections => manage.rejections.items.len(),
        Section::Plan => return,
    };
    let page = usize::from(frame(shell.size).body.height / 2).max(2) - 1;
    let selected = match manage.section {
        Section::Keys => &mut manage.keys.selected,
        Section::Rejections => &mut manage.rejections.selected,
        Section::Projects | Section::Plan => &mut shell.projects.selected,
    };
    if let Some(to) = travel::to(action, *selected, last.saturating_sub(1), page) {
        *selected = to;
    }
}
