//! The records of Keys & Projects: the API keys, and which section and key are selected.

use api::key::{ApiKey, ApiKeyList};

use crate::screen::manage::keys::{KEYS_SCOPE, PLAN_SCOPE, PROJECTS_SCOPE};
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
}

impl Section {
    /// The sections, from top to bottom.
    pub const ALL: [Self; 3] = [Self::Keys, Self::Projects, Self::Plan];

    /// Returns the title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Keys => "Keys",
            Self::Projects => "Projects",
            Self::Plan => "Plan",
        }
    }

    /// Returns the key scope.
    pub const fn scope(self) -> Scope {
        match self {
            Self::Keys => KEYS_SCOPE,
            Self::Projects => PROJECTS_SCOPE,
            Self::Plan => PLAN_SCOPE,
        }
    }

    /// Returns the next or the previous section, wrapping around at the ends.
    pub const fn neighbour(self, forward: bool) -> Self {
        match (self, forward) {
            (Self::Keys, true) | (Self::Plan, false) => Self::Projects,
            (Self::Projects, true) | (Self::Keys, false) => Self::Plan,
            (Self::Plan, true) | (Self::Projects, false) => Self::Keys,
        }
    }
}

/// The purpose of an open request of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManageRequest {
    /// The API keys.
    Keys,
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
    /// Open requests.
    pub pending: Pending<ManageRequest>,
}

impl Manage {
    /// Returns the key under the cursor.
    pub fn key(&self) -> Option<&ApiKey> {
        self.keys.items.get(self.keys.selected)
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
