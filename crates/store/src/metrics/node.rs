//! A node of the roll-up tree: the traces of one project that started within one period.

use std::{collections::BTreeMap, sync::Arc};

use super::{fact::Fact, sums::Sums};

/// Maximum number of different facts that a node lists before it stores totals.
pub const MAX_LISTED_FACTS: usize = 128;
/// Maximum number of models with separate totals in a node. Further models are added up together: a
/// client that uses a model name per trace must not make nodes as long as the list of traces.
pub const MAX_MODELS_PER_NODE: usize = 256;

/// The contents of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// All facts with their weights; there are no child nodes.
    Leaf(BTreeMap<Fact, i64>),
    /// Totals only; the facts are in the nodes of the next level.
    Sums(ByModel),
}

impl Default for Node {
    fn default() -> Self {
        Self::Leaf(BTreeMap::new())
    }
}

impl Node {
    /// Whether the node lists its facts.
    pub fn is_leaf(&self) -> bool {
        matches!(self, Self::Leaf(_))
    }

    /// Whether the node is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Leaf(facts) => facts.is_empty(),
            Self::Sums(sums) => sums.is_empty(),
        }
    }
}

/// Totals by model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByModel {
    /// Totals of all models, which most queries use.
    pub all: Sums,
    /// Totals per model, and for traces without a model.
    pub named: BTreeMap<Option<Arc<str>>, Sums>,
    /// Totals of models without separate totals.
    pub rest: Option<Sums>,
}

impl ByModel {
    /// Adds `weight` traces with this fact.
    ///
    /// A model with separate totals keeps them as long as the node exists; otherwise later subtractions
    /// could affect other totals than the additions.
    pub fn add(&mut self, fact: &Fact, weight: i64) {
        self.all.add(fact, weight);
        if let Some(sums) = self.named.get_mut(&fact.model) {
            sums.add(fact, weight);
        } else if self.named.len() < MAX_MODELS_PER_NODE {
            self.named.entry(fact.model.clone()).or_default().add(fact, weight);
        } else {
            self.rest.get_or_insert_default().add(fact, weight);
        }
    }

    fn is_empty(&self) -> bool {
        self.named.values().chain(&self.rest).all(Sums::is_empty)
    }
}
