//! Parent links between the spans of a trace, safe to follow.
//!
//! Traces may contain missing parents, spans that are their own parent, and loops. Links are resolved
//! to positions once, and every loop is cut at its earliest span.

use uuid::Uuid;

use super::SpanFacts;

/// The position of each span's parent; following the links always ends.
pub(super) struct SpanTree {
    parents: Vec<Option<usize>>,
}

impl SpanTree {
    /// Resolves the parents of all spans.
    pub(super) fn of(spans: &[SpanFacts<'_>]) -> Self {
        let mut by_id: Vec<(Uuid, usize)> = spans.iter().enumerate().map(|(at, it)| (it.id, at)).collect();
        by_id.sort_unstable();
        let position = |id: Uuid| {
            let found = by_id.binary_search_by_key(&id, |&(id, _)| id).ok()?;
            Some(by_id[found].1)
        };
        let mut parents: Vec<_> = spans.iter().map(|it| position(it.parent?)).collect();
        cut_loops(spans, &mut parents);
        Self { parents }
    }

    /// Returns for each span whether it is a proper ancestor of one of `spans`.
    pub(super) fn ancestors_of(&self, spans: &[usize]) -> Vec<bool> {
        let mut marked = vec![false; self.parents.len()];
        for &span in spans {
            let mut at = self.parents[span];
            // Ancestors of a marked span are marked too, so each link is followed once.
            while let Some(ancestor) = at.filter(|&it| !marked[it]) {
                marked[ancestor] = true;
                at = self.parents[ancestor];
            }
        }
        marked
    }
}

/// Makes the earliest span of every loop a root, so that the cut does not depend on the order.
fn cut_loops(spans: &[SpanFacts<'_>], parents: &mut [Option<usize>]) {
    /// Number of the walk that reached a span first; 0 means none.
    const NO_WALK: usize = 0;
    let mut seen_by = vec![NO_WALK; parents.len()];
    for start in 0..parents.len() {
        let walk = start + 1;
        let mut at = Some(start);
        while let Some(span) = at.filter(|&it| seen_by[it] == NO_WALK) {
            seen_by[span] = walk;
            at = parents[span];
        }
        // Meeting the current walk again is a loop; spans of earlier walks are safe already.
        if let Some(entry) = at.filter(|&it| seen_by[it] == walk) {
            let (mut earliest, mut next) = (entry, parents[entry]);
            while let Some(span) = next.filter(|&it| it != entry) {
                if (spans[span].start_us, spans[span].id) < (spans[earliest].start_us, spans[earliest].id) {
                    earliest = span;
                }
                next = parents[span];
            }
            parents[earliest] = None;
        }
    }
}
