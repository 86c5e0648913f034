//! The changes of Keys & Projects.

use api::{
    client::{Auth, calls},
    key::{ApiKey, NewApiKey},
    project::{NewProject, Project, ProjectChange, ProjectStatus},
};
use uuid::Uuid;

use super::{state::Manage, update::load, view::access};
use crate::{
    change::{Change, ChangeOutcome, CheckContext, SentState},
    dialog::Dialog,
    net::{Effect, NetError, Request, RequestId, Response},
    shell::{ScreenChanges, Shell},
};

/// A change of an API key or a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManageChange {
    /// Create an API key.
    CreateKey {
        /// The name.
        name: String,
        /// Whether the key is limited to reading.
        query: bool,
        /// The project of its traces; none leaves the choice to the server.
        project: Option<Uuid>,
    },
    /// Revoke an API key.
    RevokeKey {
        /// The id.
        id: Uuid,
        /// The name.
        name: String,
    },
    /// Create a project.
    CreateProject {
        /// The name.
        name: String,
    },
    /// Archive or unarchive a project.
    SetStatus {
        /// The id.
        id: Uuid,
        /// The name.
        name: String,
        /// The new value.
        status: ProjectStatus,
    },
    /// Turn shipping without approval on or off for prompts that passed their test.
    SetAutoship {
        /// The id of the project.
        id: Uuid,
        /// The name.
        name: String,
        /// The new value.
        on: bool,
    },
}

impl Change for ManageChange {
    fn title(&self) -> &'static str {
        match self {
            Self::CreateKey { .. } => "New API key",
            Self::RevokeKey { .. } => "Revoke an API key",
            Self::CreateProject { .. } => "New project",
            Self::SetStatus { status: ProjectStatus::Archived, .. } => "Archive a project",
            Self::SetStatus { status: ProjectStatus::Active, .. } => "Unarchive a project",
            Self::SetAutoship { .. } => "Autoship",
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            Self::CreateKey { .. } | Self::CreateProject { .. } => "Create",
            Self::RevokeKey { .. } => "Revoke",
            Self::SetStatus { status: ProjectStatus::Archived, .. } => "Archive",
            Self::SetStatus { status: ProjectStatus::Active, .. } => "Unarchive",
            Self::SetAutoship { on: true, .. } => "Turn on",
            Self::SetAutoship { on: false, .. } => "Turn off",
        }
    }

    fn consequences(&self) -> &'static str {
        match self {
            Self::RevokeKey { .. } => {
                "Requests with this key are refused at once and for good. Its traces are kept."
            }
            Self::SetStatus { status: ProjectStatus::Archived, .. } => {
                "Ingest is suspended for every key of the project at once: it returns 403, and SDKs that \
                 run now stop sending until they are restarted. Data, keys and history are kept."
            }
            Self::SetStatus { status: ProjectStatus::Active, .. } => {
                "The project accepts traces again at once, with the keys that it has."
            }
            Self::SetAutoship { on: true, .. } => {
                "Prompt deployments of this project that passed their test ship without approval."
            }
            Self::SetAutoship { on: false, .. } => {
                "Prompt deployments of this project wait for approval, even if they passed their test."
            }
            Self::CreateKey { .. } | Self::CreateProject { .. } => "",
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::CreateKey { name, .. }
            | Self::RevokeKey { name, .. }
            | Self::CreateProject { name }
            | Self::SetStatus { name, .. }
            | Self::SetAutoship { name, .. } => name,
        }
    }

    fn id(&self) -> Option<Uuid> {
        match self {
            Self::CreateKey { .. } | Self::CreateProject { .. } => None,
            Self::RevokeKey { id, .. } | Self::SetStatus { id, .. } | Self::SetAutoship { id, .. } => {
                Some(*id)
            }
        }
    }

    fn done(&self) -> String {
        let name = self.name();
        match self {
            Self::CreateKey { .. } => format!("API key {name} was created"),
            Self::RevokeKey { .. } => format!("API key {name} was revoked"),
            Self::CreateProject { .. } => format!("project {name} was created"),
            Self::SetStatus { status: ProjectStatus::Archived, .. } => format!("project {name} is archived"),
            Self::SetStatus { status: ProjectStatus::Active, .. } => format!("project {name} is active"),
            Self::SetAutoship { on: true, .. } => format!("autoship of {name} is on"),
            Self::SetAutoship { on: false, .. } => format!("autoship of {name} is off"),
        }
    }

    // The endpoints of keys and projects accept a session token only, as their calls declare.
    fn request(&self, request: RequestId, _auth: Auth) -> Request {
        match self {
            Self::CreateKey { name, query, project } => {
                let scopes = query.then(|| vec![api::Scope::Query.as_str().to_owned()]);
                let new = NewApiKey { name: name.clone(), scopes, project_id: *project, expires_at: None };
                Request::new(request, calls::create_api_key(&new))
            }
            Self::RevokeKey { id, .. } => Request::new(request, calls::revoke_api_key(*id)),
            Self::CreateProject { name } => {
                let new = NewProject { name: name.clone(), ..NewProject::default() };
                Request::new(request, calls::create_project(&new))
            }
            Self::SetStatus { id, status: ProjectStatus::Archived, .. } => {
                Request::new(request, calls::archive_project(*id))
            }
            Self::SetStatus { id, status: ProjectStatus::Active, .. } => {
                Request::new(request, calls::unarchive_project(*id))
            }
            Self::SetAutoship { id, on, .. } => {
                let change = ProjectChange { prompt_autoship_enabled: Some(*on), ..ProjectChange::default() };
                Request::new(request, calls::change_project(*id, &change))
            }
        }
    }

    fn check(&self, request: RequestId, _context: CheckContext) -> Option<Request> {
        Some(match self {
            Self::CreateKey { .. } | Self::RevokeKey { .. } => Request::all(request, calls::api_keys),
            Self::CreateProject { .. } | Self::SetStatus { .. } | Self::SetAutoship { .. } => {
                Request::all(request, |page| calls::projects(None, page))
            }
        })
    }
}

impl ScreenChanges for Manage {
    type Change = ManageChange;

    fn changed(
        &mut self,
        shell: &mut Shell,
        change: &ManageChange,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        if let ManageChange::CreateKey { .. } = change {
            self.created_key(shell, change, response.decoded()?);
        } else {
            shell.notify(change.done());
        }
        Ok(load(self, shell))
    }

    fn checked(
        &mut self,
        shell: &mut Shell,
        change: &ManageChange,
        sent: SentState<'_>,
        response: Response,
    ) -> Result<(ChangeOutcome, Vec<Effect>), NetError> {
        match change {
            ManageChange::CreateKey { .. } | ManageChange::RevokeKey { .. } => {
                self.fill_keys(response.decoded()?);
            }
            _ => shell.fill_projects(response.decoded()?),
        }
        let (keys, projects) = (&self.keys.items, &shell.projects);
        let is_new = |id: Uuid| !sent.records.contains(&id);
        let project = |id: &Uuid| projects.get(*id);
        let outcome = match change {
            ManageChange::CreateKey { name, .. } => {
                if keys.iter().any(|key| key.name == *name && is_new(key.id)) {
                    let done = change.done();
                    ChangeOutcome::NeedsAttention(format!(
                        "{done}, but its secret was lost with the response; revoke it and create another"
                    ))
                } else {
                    ChangeOutcome::NotMade
                }
            }
            ManageChange::RevokeKey { id, .. } => ChangeOutcome::of(!keys.iter().any(|key| key.id == *id)),
            ManageChange::CreateProject { name } => {
                let made = |project: &Project| project.name == *name && is_new(project.id);
                ChangeOutcome::of(projects.items.iter().any(made))
            }
            ManageChange::SetStatus { id, status, .. } => {
                ChangeOutcome::of(project(id).is_some_and(|it| it.status == *status))
            }
            ManageChange::SetAutoship { id, on, .. } => {
                ChangeOutcome::of(project(id).is_some_and(|it| it.prompt_autoship_enabled == *on))
            }
        };
        Ok((outcome, Vec::new()))
    }

    fn change_refused(&mut self, shell: &mut Shell, _change: &ManageChange) -> Vec<Effect> {
        load(self, shell)
    }
}

impl Manage {
    /// Adds a new key and shows its secret in a dialog.
    fn created_key(&mut self, shell: &mut Shell, change: &ManageChange, key: ApiKey) {
        let sentence = format!("Key {} created ({}).", key.name, access(&key));
        match self.add_key(key) {
            Some(secret) => {
                shell.dialog = Some(Dialog::secret(change.title(), sentence, secret, shell.now));
            }
            None => shell.report(format!("{}, but the response contains no secret", change.done())),
        }
    }
}
