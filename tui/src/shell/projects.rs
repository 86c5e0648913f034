//! The projects of the tenant, and lists that the server returns as a whole.

use api::project::{Project, ProjectList, ProjectStatus};
use uuid::Uuid;

use crate::{
    ids::{IdError, resolve_suffix},
    net::{List, NetError},
};

/// A list that the server returns as a whole.
#[derive(Debug)]
pub struct Rows<T> {
    /// The records of the last response.
    pub items: Vec<T>,
    /// Whether a response has arrived.
    pub loaded: bool,
    /// The error of the last request, if it failed.
    pub error: Option<NetError>,
    /// The row under the cursor, among those shown.
    pub selected: usize,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { items: Vec::new(), loaded: false, error: None, selected: 0 }
    }
}

impl List for ProjectList {
    type Row = Project;

    fn into_rows(self) -> (Vec<Project>, Option<String>) {
        (self.projects, self.next_cursor)
    }
}

/// The projects of the tenant: active ones first, by name.
#[derive(Debug, Default)]
pub struct Projects {
    /// The projects, archived ones too.
    pub items: Vec<Project>,
    /// Whether a response has arrived.
    pub loaded: bool,
    /// The error of the last request, if it failed.
    pub error: Option<NetError>,
    /// The row under the cursor, among those shown.
    pub selected: usize,
    /// Whether archived projects are shown.
    pub archived: bool,
}

impl Projects {
    /// Returns the projects that are shown.
    pub fn shown(&self) -> impl Iterator<Item = &Project> {
        self.items.iter().filter(|project| self.archived || project.status == ProjectStatus::Active)
    }

    /// Returns how many projects are shown.
    pub fn shown_len(&self) -> usize {
        self.shown().count()
    }

    /// Returns the project under the cursor.
    pub fn current(&self) -> Option<&Project> {
        self.shown().nth(self.selected)
    }

    /// Returns a project by its id.
    pub fn get(&self, id: Uuid) -> Option<&Project> {
        self.items.iter().find(|project| project.id == id)
    }

    /// Returns a project by its name, its id, or the end of its id.
    ///
    /// # Errors
    /// No project matches, or more than one does.
    pub fn resolve(&self, wanted: &str) -> Result<&Project, IdError> {
        let exact = |it: &&Project| it.name == wanted || it.id.to_string() == wanted;
        if let Some(project) = self.items.iter().find(exact) {
            return Ok(project);
        }
        let id = resolve_suffix(self.items.iter().map(|project| project.id), wanted)?;
        self.get(id).ok_or(IdError::NotFound)
    }

    /// Stores a fresh list of projects; the cursor stays on its project.
    pub fn fill(&mut self, mut projects: Vec<Project>) {
        projects.sort_by(|a, b| (a.archived_at.is_some(), &a.name).cmp(&(b.archived_at.is_some(), &b.name)));
        let selected = self.current().map(|project| project.id);
        self.items = projects;
        self.loaded = true;
        self.error = None;
        self.select(selected);
    }

    /// Shows or hides archived projects; the cursor stays on its project.
    pub fn show_archived(&mut self, archived: bool) {
        let selected = self.current().map(|project| project.id);
        self.archived = archived;
        self.select(selected);
    }

    fn select(&mut self, id: Option<Uuid>) {
        let last = self.shown_len().saturating_sub(1);
        let kept = self.shown().position(|project| Some(project.id) == id);
        self.selected = kept.unwrap_or_else(|| self.selected.min(last));
    }
}
