//! The ids of records that a command has printed.

use std::collections::{HashSet, VecDeque};

/// Maximum number of ids that are kept.
pub const MAX_SEEN_IDS: usize = 10_000;

/// The latest ids seen.
#[derive(Debug, Default)]
pub struct SeenIds {
    order: VecDeque<String>,
    ids: HashSet<String>,
}

impl SeenIds {
    /// Records an id, and returns whether it is new. The oldest id is dropped beyond [`MAX_SEEN_IDS`].
    pub fn record(&mut self, id: &str) -> bool {
        if !self.ids.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > MAX_SEEN_IDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }

    /// Returns whether an id was recorded before.
    pub fn contains(&self, id: &str) -> bool {
        self.ids.contains(id)
    }
}
