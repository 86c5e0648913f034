//! A trace's spans as the rows of a tree.
//!
//! Every span is shown: a span without its parent is a root, and so is the earliest of spans
//! that are parents of each other in a cycle. The functions do not recurse, so the depth is
//! bounded by memory only.

use std::collections::HashSet;

use api::trace::Span;
use present::tree::TreeNode;
use uuid::Uuid;

/// One visible span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeRow {
    /// Index into the spans.
    pub span: usize,
    /// The number of spans above it, up to a root.
    pub depth: usize,
    /// Whether other spans name it as their parent.
    pub parent: bool,
    /// Whether its children are hidden.
    pub folded: bool,
    /// Whether a span below it failed.
    pub failed_below: bool,
}

/// The tree of a trace's spans.
#[derive(Debug, Default)]
pub struct Tree {
    /// Every span in the order of the tree, with its depth; folding does not change this list.
    whole: Vec<TreeRow>,
    /// The visible rows.
    pub rows: Vec<TreeRow>,
    folded: HashSet<Uuid>,
}

impl Tree {
    /// Builds the tree from spans in the order of their start. Folded spans stay folded.
    pub fn rebuild(&mut self, spans: &[Span]) {
        self.whole = flatten(spans);
        self.refold(spans);
    }

    /// Folds or unfolds a span.
    pub fn set_folded(&mut self, spans: &[Span], id: Uuid, folded: bool) {
        if folded {
            self.folded.insert(id);
        } else {
            self.folded.remove(&id);
        }
        self.refold(spans);
    }

    /// Returns the visible row of a span.
    pub fn position(&self, spans: &[Span], id: Uuid) -> Option<usize> {
        self.rows.iter().position(|row| spans.get(row.span).is_some_and(|span| span.id == id))
    }

    /// Returns the first failed span without a failed span below it: the failure began there.
    pub fn first_failure(&self, spans: &[Span]) -> Option<usize> {
        let failed = |row: &TreeRow| spans.get(row.span).is_some_and(|span| span.error.is_some());
        self.rows.iter().position(|row| failed(row) && !row.failed_below)
    }

    fn refold(&mut self, spans: &[Span]) {
        self.rows.clear();
        let mut hidden_below = None;
        for row in &self.whole {
            if hidden_below.is_some_and(|depth| row.depth > depth) {
                continue;
            }
            let folded = row.parent && spans.get(row.span).is_some_and(|span| self.folded.contains(&span.id));
            hidden_below = folded.then_some(row.depth);
            self.rows.push(TreeRow { folded, ..*row });
        }
    }
}

fn flatten(spans: &[Span]) -> Vec<TreeRow> {
    let nodes = present::tree::flatten(spans.iter().map(|span| (Some(span.id), span.parent_span_id)));
    let row = |node: TreeNode| TreeRow {
        span: node.index,
        depth: node.depth,
        parent: node.is_parent,
        folded: false,
        failed_below: false,
    };
    let mut rows: Vec<TreeRow> = nodes.into_iter().map(row).collect();
    mark_failures(&mut rows, spans);
    rows
}

/// Marks every row with a failed span below it, walking from the last row to the first.
fn mark_failures(rows: &mut [TreeRow], spans: &[Span]) {
    // For each depth, whether a failed row was met since the last row above that depth.
    let mut failed_at: Vec<bool> = Vec::new();
    for row in rows.iter_mut().rev() {
        if failed_at.len() < row.depth + 2 {
            failed_at.resize(row.depth + 2, false);
        }
        row.failed_below = failed_at.get(row.depth + 1).copied().unwrap_or(false);
        failed_at.truncate(row.depth + 1);
        let failed = row.failed_below || spans.get(row.span).is_some_and(|span| span.error.is_some());
        failed_at[row.depth] |= failed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{id, span};

    fn shape(spans: &[Span]) -> Vec<(usize, usize)> {
        let mut tree = Tree::default();
        tree.rebuild(spans);
        tree.rows.iter().map(|row| (row.span, row.depth)).collect()
    }

    #[test]
    fn children_follow_their_parent() {
        let spans = [span(1, None), span(2, Some(1)), span(3, None), span(4, Some(2)), span(5, Some(1))];
        assert_eq!(shape(&spans), [(0, 0), (1, 1), (3, 2), (4, 1), (2, 0)]);
    }

    #[test]
    fn orphans_and_cycles_are_all_shown() {
        let spans =
            [span(1, Some(99)), span(2, Some(3)), span(3, Some(2)), span(4, Some(4)), span(5, Some(3))];
        let rows = shape(&spans);
        assert_eq!(rows.len(), spans.len());
        assert_eq!(rows[0], (0, 0));
        assert!(rows.contains(&(1, 0)) && rows.contains(&(2, 1)) && rows.contains(&(4, 2)));
    }

    #[test]
    fn folded_span_hides_its_descendants() {
        let spans = [span(1, None), span(2, Some(1)), span(3, Some(2)), span(4, None)];
        let mut tree = Tree::default();
        tree.rebuild(&spans);
        tree.set_folded(&spans, id(1), true);
        assert_eq!(tree.rows.iter().map(|row| row.span).collect::<Vec<_>>(), [0, 3]);
        tree.set_folded(&spans, id(1), false);
        assert_eq!(tree.rows.len(), 4);
    }

    #[test]
    fn first_failure_is_the_deepest_failed_span() {
        let mut spans =
            vec![span(1, None), span(2, Some(1)), span(3, Some(1)), span(4, Some(3)), span(5, Some(1))];
        for at in [0, 2, 3, 4] {
            spans[at].error = Some("down".into());
        }
        let mut tree = Tree::default();
        tree.rebuild(&spans);
        assert_eq!(tree.first_failure(&spans), Some(3));
        assert!(tree.rows[0].failed_below && !tree.rows[1].failed_below && tree.rows[2].failed_below);
    }

    #[test]
    fn chain_of_25_000_spans_is_laid_out() {
        let spans: Vec<Span> = (1..=25_000).map(|n| span(n, (n > 1).then(|| n - 1))).collect();
        assert_eq!(shape(&spans).last(), Some(&(24_999, 24_999)));
    }
}
