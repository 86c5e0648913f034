//! Adds facts to the roll-up tree.

use std::collections::BTreeMap;

use super::{
    fact::Fact,
    level::Level,
    node::{ByModel, MAX_LISTED_FACTS, Node},
};

/// Facts with their weights.
pub type Facts = BTreeMap<Fact, i64>;

/// The result of adding facts to a node.
#[derive(Debug, Default)]
pub struct Change {
    /// Nodes to store, by level and start; an empty node is to be deleted.
    pub nodes: Vec<(Level, i64, Node)>,
    /// Facts that belong to nodes of the next level too, by their starts.
    pub below: BTreeMap<i64, Facts>,
}

/// Adds a fact; a fact with weight zero is removed.
pub fn put(facts: &mut Facts, fact: Fact, weight: i64) {
    use std::collections::btree_map::Entry;
    match facts.entry(fact) {
        Entry::Vacant(it) => {
            it.insert(weight);
        }
        Entry::Occupied(mut it) => {
            *it.get_mut() += weight;
            if *it.get() == 0 {
                it.remove();
            }
        }
    }
}

/// Groups facts by the nodes of a level.
pub fn by_start(level: Level, facts: Facts) -> BTreeMap<i64, Facts> {
    let mut sorted: BTreeMap<i64, Facts> = BTreeMap::new();
    for (fact, weight) in facts {
        sorted.entry(level.start(fact.at)).or_default().insert(fact, weight);
    }
    sorted
}

/// Adds facts to a node with the contents `stored`.
///
/// A list that grows too long is replaced by totals, and its facts are moved to new child nodes; totals
/// never become a list again, because of their child nodes.
pub fn apply(level: Level, start: i64, stored: Node, facts: Facts) -> Change {
    let mut change = Change::default();
    match stored {
        Node::Leaf(mut list) => {
            for (fact, weight) in facts {
                put(&mut list, fact, weight);
            }
            grow(level, start, list, &mut change.nodes);
        }
        Node::Sums(mut sums) => {
            for (fact, weight) in &facts {
                sums.add(fact, *weight);
            }
            if let Some(next) = level.next() {
                change.below = by_start(next, facts);
            }
            change.nodes.push((level, start, Node::Sums(sums)));
        }
    }
    change
}

/// Creates a node for these facts, and its child nodes.
fn grow(level: Level, start: i64, facts: Facts, nodes: &mut Vec<(Level, i64, Node)>) {
    if facts.len() <= MAX_LISTED_FACTS {
        nodes.push((level, start, Node::Leaf(facts)));
        return;
    }
    let mut sums = ByModel::default();
    for (fact, weight) in &facts {
        sums.add(fact, *weight);
    }
    nodes.push((level, start, Node::Sums(sums)));
    if let Some(next) = level.next() {
        for (start, facts) in by_start(next, facts) {
            grow(next, start, facts, nodes);
        }
    }
}
