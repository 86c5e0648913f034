//! Putting facts into the tree.

use std::collections::BTreeMap;

use crate::metrics::{
    fact::Fact,
    level::Level,
    node::{ByModel, LISTED, Node},
};

/// Facts with their weights.
pub type Facts = BTreeMap<Fact, i64>;

/// What became of a node.
#[derive(Debug, Default)]
pub struct Change {
    /// Nodes to store, by level and start; an empty one is to be removed.
    pub nodes: Vec<(Level, i64, Node)>,
    /// Facts that belong to nodes of the next level too, by their starts.
    pub below: BTreeMap<i64, Facts>,
}

/// Adds a fact; one whose weights come to nothing is gone.
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

/// Sorts facts by the nodes of a level that they belong to.
pub fn by_start(level: Level, facts: Facts) -> BTreeMap<i64, Facts> {
    let mut sorted: BTreeMap<i64, Facts> = BTreeMap::new();
    for (fact, weight) in facts {
        sorted.entry(level.start(fact.at)).or_default().insert(fact, weight);
    }
    sorted
}

/// Adds facts to a node that holds `stored`.
///
/// A list that grows too long becomes sums, and its facts are handed down to new nodes; sums never
/// become a list again, as what is below them would be in the way.
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

/// A new node for these facts, and those below it.
fn grow(level: Level, start: i64, facts: Facts, nodes: &mut Vec<(Level, i64, Node)>) {
    if facts.len() <= LISTED {
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
