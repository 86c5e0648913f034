//! The spans of a trace in the order of a tree.
//!
//! Every span is listed once. A span whose parent is missing is a root; in a cycle of parents, the first span is
//! the root. Nothing here recurses, so that memory alone limits the depth.

use std::{collections::HashMap, hash::Hash};

/// A span in the order of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeNode {
    /// Index of the span.
    pub index: usize,
    /// Distance from the root.
    pub depth: usize,
    /// Whether other spans name it as their parent.
    pub is_parent: bool,
    /// Whether the span is the last child of its parent.
    pub is_last: bool,
}

/// Orders spans, given as ids with the ids of their parents, so that children follow their parents.
pub fn flatten<K: Copy + Eq + Hash>(
    spans: impl IntoIterator<Item = (Option<K>, Option<K>)>,
) -> Vec<TreeNode> {
    let spans: Vec<(Option<K>, Option<K>)> = spans.into_iter().collect();
    let mut index: HashMap<K, usize> = HashMap::with_capacity(spans.len());
    for (at, (id, _)) in spans.iter().enumerate() {
        if let Some(id) = id {
            index.entry(*id).or_insert(at);
        }
    }
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); spans.len()];
    let mut roots = Vec::new();
    for (at, (_, parent)) in spans.iter().enumerate() {
        match parent.and_then(|parent| index.get(&parent).copied()) {
            Some(parent) if parent != at => children[parent].push(at),
            _ => roots.push(at),
        }
    }
    let mut nodes = Vec::with_capacity(spans.len());
    let mut seen = vec![false; spans.len()];
    // The roots first, then the spans of cycles, which no root leads to.
    for start in roots.into_iter().chain(0..spans.len()) {
        let mut stack = vec![(start, 0, true)];
        while let Some((at, depth, is_last)) = stack.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            nodes.push(TreeNode { index: at, depth, is_parent: !children[at].is_empty(), is_last });
            let last = children[at].last().copied();
            let unseen = children[at].iter().rev().filter(|child| !seen[**child]);
            stack.extend(unseen.map(|child| (*child, depth + 1, Some(*child) == last)));
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(spans: &[(u32, Option<u32>)]) -> Vec<(usize, usize, bool)> {
        let nodes = flatten(spans.iter().map(|(id, parent)| (Some(*id), *parent)));
        nodes.into_iter().map(|it| (it.index, it.depth, it.is_last)).collect()
    }

    #[test]
    fn children_follow_their_parent() {
        let spans = [(1, None), (2, Some(1)), (3, None), (4, Some(2)), (5, Some(1))];
        let wanted = [(0, 0, true), (1, 1, false), (3, 2, true), (4, 1, true), (2, 0, true)];
        assert_eq!(shape(&spans), wanted);
    }

    #[test]
    fn orphans_and_cycles_are_listed_once() {
        let spans = [(1, Some(99)), (2, Some(3)), (3, Some(2)), (4, Some(4)), (5, Some(3)), (5, None)];
        let mut listed: Vec<usize> = shape(&spans).iter().map(|it| it.0).collect();
        assert_eq!(listed[0], 0);
        listed.sort_unstable();
        assert_eq!(listed, [0, 1, 2, 3, 4, 5]);
        assert_eq!(flatten::<u32>([(None, None), (None, None)]).len(), 2);
    }

    #[test]
    fn chain_of_25_000_spans_ends() {
        let spans: Vec<(u32, Option<u32>)> = (1..=25_000).map(|n| (n, (n > 1).then(|| n - 1))).collect();
        assert_eq!(shape(&spans).last(), Some(&(24_999, 24_999, true)));
    }
}
