//! What screen 7 knows: the tenant's keys and projects, and which of them is selected.
//!
//! The projects also serve the choice of a project and the palette.

use api::{
    key::ApiKey,
    project::{Project, ProjectStatus},
};
use uuid::Uuid;

use crate::{
    ids::{Unknown, ending},
    keymap::Scope,
    msg::NetError,
};

/// The parts of the screen; one has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// API keys.
    #[default]
    Keys,
    /// Projects.
    Projects,
    /// Plan, limits and usage.
    Plan,
}

impl Tab {
    /// In the order of the screen.
    pub const ALL: [Self; 3] = [Self::Keys, Self::Projects, Self::Plan];

    /// Its title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Keys => "Keys",
            Self::Projects => "Projects",
            Self::Plan => "Plan",
        }
    }

    /// Where its keys are pressed.
    pub const fn scope(self) -> Scope {
        match self {
            Self::Keys => Scope::Keys,
            Self::Projects => Scope::Projects,
            Self::Plan => Scope::Plan,
        }
    }

    /// The neighbour, in turn.
    pub const fn turned(self, forward: bool) -> Self {
        match (self, forward) {
            (Self::Keys, true) | (Self::Plan, false) => Self::Projects,
            (Self::Projects, true) | (Self::Keys, false) => Self::Plan,
            (Self::Plan, true) | (Self::Projects, false) => Self::Keys,
        }
    }
}

/// A list that the server answers as a whole.
#[derive(Debug)]
pub struct Rows<T> {
    /// What it answered last.
    pub items: Vec<T>,
    /// It answered once.
    pub loaded: bool,
    /// Why it could not be read, when that was the last answer.
    pub error: Option<NetError>,
    /// The row under the cursor, among those that are shown.
    pub selected: usize,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { items: Vec::new(), loaded: false, error: None, selected: 0 }
    }
}

/// The screen.
#[derive(Debug, Default)]
pub struct Manage {
    /// The part that has the keys.
    pub tab: Tab,
    /// API keys that are not revoked, newest first.
    pub keys: Rows<ApiKey>,
    /// Projects: active ones first, by name.
    pub projects: Rows<Project>,
    /// Archived projects are shown too.
    pub archived: bool,
}

impl Manage {
    /// Returns whether the last request for a list failed.
    pub fn failed(&self) -> bool {
        self.keys.error.is_some() || self.projects.error.is_some()
    }

    /// The projects that are shown.
    pub fn shown(&self) -> impl Iterator<Item = &Project> {
        self.projects.items.iter().filter(|project| self.archived || project.status == ProjectStatus::Active)
    }

    /// How many projects are shown.
    pub fn shown_len(&self) -> usize {
        self.shown().count()
    }

    /// The key under the cursor.
    pub fn key(&self) -> Option<&ApiKey> {
        self.keys.items.get(self.keys.selected)
    }

    /// The project under the cursor.
    pub fn project(&self) -> Option<&Project> {
        self.shown().nth(self.projects.selected)
    }

    /// A project by its id.
    pub fn named(&self, id: Uuid) -> Option<&Project> {
        self.projects.items.iter().find(|project| project.id == id)
    }

    /// A project by its name or its id, or by the end of its id.
    ///
    /// # Errors
    /// Whether there is none, or more than one.
    pub fn told(&self, wanted: &str) -> Result<&Project, Unknown> {
        let exact = |it: &&Project| it.name == wanted || it.id.to_string() == wanted;
        if let Some(project) = self.projects.items.iter().find(exact) {
            return Ok(project);
        }
        let id = ending(self.projects.items.iter().map(|project| project.id), wanted)?;
        self.named(id).ok_or(Unknown::Nothing)
    }

    /// Takes in a fresh list of keys; the cursor stays with its key.
    pub fn fill_keys(&mut self, keys: Vec<ApiKey>) {
        let selected = self.key().map(|key| key.id);
        let kept = keys.iter().position(|key| Some(key.id) == selected);
        self.keys = Rows {
            selected: kept.unwrap_or_else(|| self.keys.selected.min(keys.len().saturating_sub(1))),
            items: keys,
            loaded: true,
            error: None,
        };
    }

    /// Puts a key that was just made before the others and selects it. Its secret is handed
    /// back and not kept.
    pub fn add_key(&mut self, mut key: ApiKey) -> Option<String> {
        let secret = key.secret.take();
        self.keys.items.retain(|it| it.id != key.id);
        self.keys.items.insert(0, key);
        self.keys.selected = 0;
        secret
    }

    /// Takes in a fresh list of projects; the cursor stays with its project.
    pub fn fill_projects(&mut self, mut projects: Vec<Project>) {
        projects.sort_by(|a, b| (a.archived_at.is_some(), &a.name).cmp(&(b.archived_at.is_some(), &b.name)));
        let selected = self.project().map(|project| project.id);
        self.projects.items = projects;
        self.projects.loaded = true;
        self.projects.error = None;
        self.reselect(selected);
    }

    /// Shows archived projects too, or not; the cursor stays with its project.
    pub fn show_archived(&mut self, archived: bool) {
        let selected = self.project().map(|project| project.id);
        self.archived = archived;
        self.reselect(selected);
    }

    fn reselect(&mut self, id: Option<Uuid>) {
        let last = self.shown_len().saturating_sub(1);
        let kept = self.shown().position(|project| Some(project.id) == id);
        self.projects.selected = kept.unwrap_or_else(|| self.projects.selected.min(last));
    }
}
