//! The records of Keys & Projects: API keys and rejections, and which section and row are selected.

use api::{
    key::{ApiKey, ApiKeyList},
    rejection::Rejection,
};

use crate::screen::manage::keys::{KEYS_SCOPE, PLAN_SCOPE, PROJECTS_SCOPE, REJECTIONS_SCOPE};
use crate::{
    keymap::Scope,
    net::List,
    shell::{Pending, RequestPurpose, Rows},
};

/// A section of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Section {
    /// API keys.
    #[default]
    Keys,
    /// Projects.
    Projects,
    /// Plan, limits and usage.
    Plan,
    /// Rejected input.
    Rejections,
}

impl Section {
    /// The sections, from top to bottom.
    pub const ALL: [Self; 4] = [Self::Keys, Self::Projects, Self::Plan, Self::Rejections];

    /// Returns the title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Keys => "Keys",
            Self::Projects => "Projects",
            Self::Plan => "Plan",
            Self::Rejections => "Rejections",
        }
    }

    /// Returns the key scope.
    pub const fn scope(self) -> Scope {
        match self {
            Self::Keys => KEYS_SCOPE,
            Self::Projects => PROJECTS_SCOPE,
            Self::Plan => PLAN_SCOPE,
            Self::Rejections => REJECTIONS_SCOPE,
        }
    }

    /// Returns the next or the previous section, wrapping around at the ends.
    pub const fn neighbour(self, forward: bool) -> Self {
        match (self, forward) {
            (Self::Rejections, true) | (Self::Projects, false) => Self::Keys,
            (Self::Keys, true) | (Self::Plan, false) => Self::Projects,
            (Self::Projects, true) | (Self::Rejections, false) => Self::Plan,
            (Self::Plan, true) | (Self::Keys, false) => Self::Rejections,
        }
    }
}

/// The purpose of an open request of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManageRequest {
    /// The API keys.
    Keys,
    /// The newest rejections.
    Rejections,
}

impl RequestPurpose for ManageRequest {}

impl List for ApiKeyList {
    type Row = ApiKey;

    fn into_rows(self) -> (Vec<ApiKey>, Option<String>) {
        (self.apikeys, self.next_cursor)
    }
}

/// The state of the screen.
#[derive(Debug, Default)]
pub struct Manage {
    /// The section in use.
    pub section: Section,
    /// API keys that are not revoked, newest first.
    pub keys: Rows<ApiKey>,
    /// The newest rejections of the selected project, or of all projects.
    pub rejections: Rows<Rejection>,
    /// Open requests.
    pub pending: Pending<ManageRequest>,
}

impl Manage {
    /// Returns the key under the cursor.
    pub fn key(&self) -> Option<&ApiKey> {
        self.keys.items.get(self.keys.selected)
    }

    /// Returns the rejection under the cursor.
    pub fn rejection(&self) -> Option<&Rejection> {
        self.rejections.items.get(self.rejections.selected)
    }

    /// Stores a fresh list of rejections; the cursor stays on its rejection.
    pub fn fill_rejections(&mut self, rejections: Vec<Rejection>) {
        let selected = self.rejection().map(|it| it.id);
        let kept = rejections.iter().position(|it| Some(it.id) == selected);
        self.rejections =
            Rows { selected: kept.unwrap_or_default(), items: rejections, loaded: true, error: None };
    }

    /// Stores a fresh list of keys; the cursor stays on its key.
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

    /// Adds a new key at the top and selects it. Returns its secret, which is not kept.
    pub fn add_key(&mut self, mut key: ApiKey) -> Option<String> {
        let secret = key.secret.take();
        self.keys.items.retain(|it| it.id != key.id);
        self.keys.items.insert(0, key);
        self.keys.selected = 0;
        secret
    }
}
