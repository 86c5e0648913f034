//! A node of the tree: the traces of one project that started within one stretch of time.

use std::{collections::BTreeMap, sync::Arc};

use crate::metrics::{fact::Fact, sums::Sums};

/// Different facts that a node lists before it sums them up.
pub const LISTED: usize = 128;
/// Models that a node keeps sums for by name. What has other models is summed up together: a
/// caller that names a model a trace must not make every node as long as the list of traces.
pub const MODELS: usize = 256;

/// What a node holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// Every fact with its weight; there is nothing below.
    Leaf(BTreeMap<Fact, i64>),
    /// Sums; the nodes of the next level share the facts.
    Sums(ByModel),
}

impl Default for Node {
    fn default() -> Self {
        Self::Leaf(BTreeMap::new())
    }
}

impl Node {
    /// It lists its facts.
    pub fn is_leaf(&self) -> bool {
        matches!(self, Self::Leaf(_))
    }

    /// Nothing is in it.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Leaf(facts) => facts.is_empty(),
            Self::Sums(sums) => sums.is_empty(),
        }
    }
}

/// Sums by model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByModel {
    /// Of all of them, which most questions are about.
    pub all: Sums,
    /// One a model, and one for traces without.
    pub named: BTreeMap<Option<Arc<str>>, Sums>,
    /// Of models that found no place.
    pub rest: Option<Sums>,
}

impl ByModel {
    /// Adds `weight` traces that are all this fact.
    ///
    /// A model that has a place keeps it while the node lives, or what is taken back could be
    /// taken from another place than it was added to.
    pub fn add(&mut self, fact: &Fact, weight: i64) {
        self.all.add(fact, weight);
        if let Some(sums) = self.named.get_mut(&fact.model) {
            sums.add(fact, weight);
        } else if self.named.len() < MODELS {
            self.named.entry(fact.model.clone()).or_default().add(fact, weight);
        } else {
            self.rest.get_or_insert_default().add(fact, weight);
        }
    }

    fn is_empty(&self) -> bool {
        self.named.values().chain(&self.rest).all(Sums::is_empty)
    }
}
