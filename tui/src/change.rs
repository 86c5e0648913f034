//! What the console can change on the server, in the words that a dialog asks and tells with.
//!
//! Each is one request. When its answer is lost, [`Change::landed`] judges from a fresh list
//! whether it happened; nothing here is ever sent twice.

use api::{
    key::ApiKey,
    project::{Project, ProjectStatus},
};
use uuid::Uuid;

/// One request that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Make an API key.
    CreateKey {
        /// Its name.
        name: String,
        /// It may only read.
        query: bool,
        /// Where its traces go; the server's choice if absent.
        project: Option<Uuid>,
    },
    /// End an API key.
    RevokeKey {
        /// Which one.
        id: Uuid,
        /// Its name.
        name: String,
    },
    /// Make a project.
    CreateProject {
        /// Its name.
        name: String,
    },
    /// Archive a project, or let it take traces again.
    SetStatus {
        /// Which one.
        id: Uuid,
        /// Its name.
        name: String,
        /// What it is to be.
        status: ProjectStatus,
    },
    /// Ship prompts that passed their test without approval, or not.
    SetAutoship {
        /// Which project.
        id: Uuid,
        /// Its name.
        name: String,
        /// What it is to be.
        on: bool,
    },
}

impl Change {
    /// Title of the dialog that asks.
    pub const fn title(&self) -> &'static str {
        match self {
            Self::CreateKey { .. } => "New API key",
            Self::RevokeKey { .. } => "Revoke an API key",
            Self::CreateProject { .. } => "New project",
            Self::SetStatus { status: ProjectStatus::Archived, .. } => "Archive a project",
            Self::SetStatus { status: ProjectStatus::Active, .. } => "Unarchive a project",
            Self::SetAutoship { .. } => "Autoship",
        }
    }

    /// The word on the button that does it.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::CreateKey { .. } | Self::CreateProject { .. } => "Create",
            Self::RevokeKey { .. } => "Revoke",
            Self::SetStatus { status: ProjectStatus::Archived, .. } => "Archive",
            Self::SetStatus { status: ProjectStatus::Active, .. } => "Unarchive",
            Self::SetAutoship { on: true, .. } => "Turn on",
            Self::SetAutoship { on: false, .. } => "Turn off",
        }
    }

    /// What it means, in a sentence or two.
    pub const fn meaning(&self) -> &'static str {
        match self {
            Self::RevokeKey { .. } => {
                "Whatever uses this key is refused at once and for good. Its traces are kept."
            }
            Self::SetStatus { status: ProjectStatus::Archived, .. } => {
                "Ingest is suspended for every key of the project at once: it answers 403, and SDKs that \
                 run now stop sending until they are restarted. Data, keys and history are kept."
            }
            Self::SetStatus { status: ProjectStatus::Active, .. } => {
                "The project takes traces again at once, with the keys it has."
            }
            Self::SetAutoship { on: true, .. } => {
                "Prompt deployments of this project that passed their test ship without anyone's approval."
            }
            Self::SetAutoship { on: false, .. } => {
                "Prompt deployments of this project wait for approval, also when they passed their test."
            }
            Self::CreateKey { .. } | Self::CreateProject { .. } => "",
        }
    }

    /// What it is done to.
    pub fn name(&self) -> &str {
        match self {
            Self::CreateKey { name, .. }
            | Self::RevokeKey { name, .. }
            | Self::CreateProject { name }
            | Self::SetStatus { name, .. }
            | Self::SetAutoship { name, .. } => name,
        }
    }

    /// The record that it is done to, where there is one already.
    pub const fn id(&self) -> Option<Uuid> {
        match self {
            Self::CreateKey { .. } | Self::CreateProject { .. } => None,
            Self::RevokeKey { id, .. } | Self::SetStatus { id, .. } | Self::SetAutoship { id, .. } => {
                Some(*id)
            }
        }
    }

    /// Whether it is about keys; if not, it is about projects.
    pub const fn of_keys(&self) -> bool {
        matches!(self, Self::CreateKey { .. } | Self::RevokeKey { .. })
    }

    /// What to tell once it happened.
    pub fn done(&self) -> String {
        let name = self.name();
        match self {
            Self::CreateKey { .. } => format!("key {name} was made"),
            Self::RevokeKey { .. } => format!("key {name} is revoked"),
            Self::CreateProject { .. } => format!("project {name} was made"),
            Self::SetStatus { status: ProjectStatus::Archived, .. } => format!("project {name} is archived"),
            Self::SetStatus { status: ProjectStatus::Active, .. } => format!("project {name} is active"),
            Self::SetAutoship { on: true, .. } => format!("autoship of {name} is on"),
            Self::SetAutoship { on: false, .. } => format!("autoship of {name} is off"),
        }
    }

    /// Whether a fresh list shows that it happened. `before` are the ids of the list as it was.
    pub fn landed(&self, before: &[Uuid], keys: &[ApiKey], projects: &[Project]) -> bool {
        let project = |id: &Uuid| projects.iter().find(|project| project.id == *id);
        match self {
            Self::CreateKey { name, .. } => {
                keys.iter().any(|key| key.name == *name && !before.contains(&key.id))
            }
            Self::RevokeKey { id, .. } => !keys.iter().any(|key| key.id == *id),
            Self::CreateProject { name } => {
                projects.iter().any(|project| project.name == *name && !before.contains(&project.id))
            }
            Self::SetStatus { id, status, .. } => project(id).is_some_and(|it| it.status == *status),
            Self::SetAutoship { id, on, .. } => {
                project(id).is_some_and(|it| it.prompt_autoship_enabled == *on)
            }
        }
    }
}
