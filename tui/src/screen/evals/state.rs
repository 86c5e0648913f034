//! The records of Evals: the loaded evaluations, which is selected, and the rules.
//!
//! Rows are newest first, as the server returns them. The requests are in [`super::update`].

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use api::{
    Timestamp,
    eval::{Evaluation, EvaluationContext, EvaluationList, EvaluationStatus},
};
use uuid::Uuid;

use crate::{
    evaluations::{score_drop, standing},
    find,
    net::NetError,
    screen::evals::rules::state::Rules,
    shell::{Older, Pending, RequestPurpose},
};
use present::evaluation::EvaluationMark;

/// Maximum number of evaluations that are kept; further pages are not requested.
pub const MAX_EVALUATIONS: usize = 2_000;

/// The section of the screen that handles the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvalsSection {
    /// The evaluations.
    #[default]
    List,
    /// The rules.
    Rules,
}

/// A summary of the loaded evaluations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvalsSummary {
    /// The number of pending and running evaluations.
    pub unfinished: usize,
    /// The number of evaluations that ended without a score.
    pub failed: usize,
    /// The number of evaluations with the label `pass`, `warn` or `fail`.
    pub labelled: usize,
    /// The number of evaluations with the label `pass`.
    pub passed: usize,
    /// The number of evaluations below their baseline.
    pub below: usize,
    /// Whether there may be more below their baseline, because not every baseline is loaded.
    pub unsure: bool,
}

/// The purpose of an open request of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalsRequest {
    /// The first page.
    First,
    /// An older page, with a filter whose times count from this instant.
    Older(Timestamp),
    /// The newest page again.
    Newest,
    /// The visible rows again, further down.
    Visible,
    /// The evaluation that fills the screen, after it no longer matches the filter.
    Opened(Uuid),
    /// The evaluation that a visible one is compared with.
    Baseline(Uuid),
    /// The rules.
    Rules,
    /// The recent evaluations of a rule.
    RuleSample(Uuid),
    /// The decisions of a rule.
    Decisions(Uuid),
}

impl RequestPurpose for EvalsRequest {
    fn is_shown(self) -> bool {
        matches!(self, Self::First | Self::Older(_) | Self::Rules | Self::Decisions(_))
    }
}

/// The state of the screen.
#[derive(Debug, Default)]
pub struct Evals {
    /// The filter line that is applied.
    pub text: String,
    /// Lines used before, oldest first.
    pub history: Vec<String>,
    /// The evaluations, newest first.
    pub rows: Vec<Evaluation>,
    /// The row under the cursor.
    pub selected: usize,
    /// Whether the cursor stays on its row. Otherwise it is at the top and follows the newest row.
    pub held: bool,
    /// The row that the cursor moves to as soon as it is loaded.
    pub wanted: Option<Uuid>,
    /// The cursor of the older rows.
    pub older: Option<Older>,
    /// Whether the first page has arrived.
    pub loaded: bool,
    /// Whether more rows arrived than fit on a page while the user was further down.
    pub newer: bool,
    /// The error of the last request, if it failed.
    pub error: Option<NetError>,
    /// Time at which the newest page last arrived.
    pub heard: Option<Timestamp>,
    /// Number of consecutive failed requests.
    pub failures: u32,
    /// Time at which to request the newest page again.
    pub next: Option<Timestamp>,
    /// The section that handles the keys.
    pub part: EvalsSection,
    /// The first visible line of the selected evaluation while it fills the screen.
    pub zoom: Option<usize>,
    /// Whether the evaluation that fills the screen no longer matches the filter. It is removed when the list is
    /// shown again.
    pub strayed: bool,
    /// Scores of baselines that are not among the rows; none for a baseline without a score.
    pub baselines: HashMap<Uuid, Option<f64>>,
    /// The rules.
    pub rules: Rules,
    /// Open requests.
    pub pending: Pending<EvalsRequest>,
    /// Words that find looks for, in lower case.
    find: Option<String>,
    /// The rows that contain these words. They are stored, because many long texts are too slow to search for each
    /// frame.
    hits: HashSet<Uuid>,
}

impl Evals {
    /// Returns the evaluation that fills the screen, if it no longer matches the filter.
    pub fn stray(&self) -> Option<&Evaluation> {
        self.current().filter(|_| self.strayed && self.zoom.is_some())
    }

    /// Returns the evaluation under the cursor.
    pub fn current(&self) -> Option<&Evaluation> {
        self.rows.get(self.selected)
    }

    /// Puts the cursor on a row. A cursor that is not held follows the newest row.
    pub fn select(&mut self, at: usize, held: bool) {
        self.selected = at;
        self.held = held;
        self.strayed = false;
    }

    /// Discards the rows, because others are requested.
    pub fn forget(&mut self) {
        self.rows.clear();
        self.selected = 0;
        self.held = false;
        self.wanted = None;
        self.older = None;
        self.loaded = false;
        self.newer = false;
        self.error = None;
        self.next = None;
        self.zoom = None;
        self.strayed = false;
    }

    /// Adds the first page or an older one. The times of its filter count from `at`.
    pub fn extend(&mut self, page: EvaluationList, at: Timestamp) {
        let fresh = page.evaluations.into_iter().filter(|it| !self.rows.iter().any(|row| row.id == it.id));
        let fresh: Vec<_> = fresh.collect();
        self.rows.extend(fresh);
        self.rows.truncate(MAX_EVALUATIONS);
        self.older = Older::of(page.next_cursor, page.has_more && self.rows.len() < MAX_EVALUATIONS, at);
        self.settle(None);
    }

    /// Stores the newest page. The page is complete from its first row to its last, so a loaded row between them
    /// that is not on it no longer matches the filter. Returns whether the older rows begin at another position
    /// than before.
    pub fn refresh(&mut self, page: EvaluationList, at: Timestamp) -> bool {
        let more = page.has_more && page.next_cursor.is_some();
        let known = |it: &Evaluation| self.rows.iter().any(|row| row.id == it.id);
        let met = self.rows.is_empty() || !more || page.evaluations.iter().any(known);
        let kept = self.held || self.zoom.is_some();
        if !met && kept {
            // The rows stay in place while the user is below the top; going to the top shows new rows.
            self.newer = true;
            self.settle(None);
            return false;
        }
        let current = self.current().map(|row| row.id).filter(|_| kept);
        let read = self.current().filter(|_| self.zoom.is_some()).cloned();
        let end = page.evaluations.last().map(order);
        let older = |row: &Evaluation| met && more && end.is_some_and(|end| order(row) < end);
        let mut rows = page.evaluations;
        let kept: Vec<_> = self.rows.drain(..).filter(older).collect();
        let replaced = kept.is_empty();
        if replaced {
            self.older = Older::of(page.next_cursor, page.has_more, at);
        }
        rows.extend(kept);
        rows.truncate(MAX_EVALUATIONS);
        // The opened evaluation stays in the list even if it no longer matches the filter.
        let gone = read.filter(|it| !rows.iter().any(|row| row.id == it.id));
        self.strayed = gone.is_some();
        if let Some(it) = gone {
            rows.insert(rows.partition_point(|row| order(row) > order(&it)), it);
        }
        self.rows = rows;
        self.newer = false;
        self.settle(current);
        replaced
    }

    /// Updates the rows that are loaded; others are ignored.
    pub fn revise(&mut self, news: Vec<Evaluation>) {
        for one in news {
            if let Some(row) = self.rows.iter_mut().find(|row| row.id == one.id) {
                *row = one;
            }
        }
        self.search();
    }

    /// Moves the cursor after the rows changed: to the wanted row, else to this one, else to its previous
    /// position.
    fn settle(&mut self, current: Option<Uuid>) {
        self.loaded = true;
        self.error = None;
        self.failures = 0;
        self.search();
        let position = |id: Uuid| self.rows.iter().position(|row| row.id == id);
        // The opened evaluation stays open; the cursor moves to the wanted one afterwards.
        let wanted = self.wanted.filter(|_| self.zoom.is_none());
        if let Some(at) = wanted.and_then(position) {
            self.wanted = None;
            self.select(at, true);
        } else if let Some(at) = current.and_then(position) {
            self.selected = at;
        }
        self.selected = self.selected.min(self.rows.len().saturating_sub(1));
        if self.rows.is_empty() {
            self.zoom = None;
        }
    }

    /// Returns the words that find looks for.
    pub fn find(&self) -> Option<&str> {
        self.find.as_deref()
    }

    /// Looks for other words, in lower case, or for none.
    pub fn set_find(&mut self, words: Option<String>) {
        self.find = words;
        self.search();
    }

    fn search(&mut self) {
        let Some(words) = &self.find else { return self.hits.clear() };
        self.hits = self.rows.iter().filter(|row| holds(row, words)).map(|row| row.id).collect();
    }

    /// Returns whether find's words occur in the row at a position.
    pub fn hit(&self, at: usize) -> bool {
        self.rows.get(at).is_some_and(|row| self.hits.contains(&row.id))
    }

    /// Returns the next or previous row that matches the text of find; the search continues at the other end.
    pub fn find_from(&self, forward: bool) -> Option<usize> {
        find::next(self.rows.len(), self.selected, forward, |at| self.hit(at))
    }

    /// Returns the number of the match at or before the cursor, from 1, and the number of matches.
    pub fn hits(&self) -> Option<(usize, usize)> {
        self.find.as_ref()?;
        Some(find::counted(self.rows.len(), self.selected, |at| self.hit(at)))
    }

    /// Returns the baseline of an evaluation of a remediated output, and the drop of the score below the baseline.
    pub fn below(&self, it: &Evaluation) -> Option<(f64, f64)> {
        let baseline = self.baseline(it)?;
        Some((baseline, score_drop(it, baseline)?))
    }

    /// Returns the score of an evaluation's baseline, if it is known.
    pub fn baseline(&self, it: &Evaluation) -> Option<f64> {
        let id = compared(it)?;
        match self.rows.iter().find(|row| row.id == id) {
            Some(row) => row.score,
            None => self.baselines.get(&id).copied().flatten(),
        }
    }

    /// Returns a baseline of these rows that was not requested yet.
    pub fn missing_baseline(&self, rows: &[Evaluation]) -> Option<Uuid> {
        let ids = rows.iter().filter(|row| row.score.is_some()).filter_map(compared);
        let mut ids = ids.filter(|id| !self.baselines.contains_key(id));
        ids.find(|id| !self.rows.iter().any(|row| row.id == *id))
    }

    /// Returns the mark of an evaluation.
    pub fn standing(&self, it: &Evaluation) -> EvaluationMark {
        standing(it, self.baseline(it))
    }

    /// Returns a summary of the loaded rows.
    pub fn summary(&self) -> EvalsSummary {
        let mut sum = EvalsSummary::default();
        let scores: HashMap<Uuid, Option<f64>> = self.rows.iter().map(|row| (row.id, row.score)).collect();
        for row in &self.rows {
            let baseline = compared(row).map(|id| scores.get(&id).or_else(|| self.baselines.get(&id)));
            sum.unsure |= row.score.is_some() && baseline == Some(None);
            match standing(row, baseline.flatten().copied().flatten()) {
                EvaluationMark::Unfinished => sum.unfinished += 1,
                EvaluationMark::Failed => sum.failed += 1,
                EvaluationMark::BelowBaseline => sum.below += 1,
                _ => {}
            }
            if let (EvaluationStatus::Complete, Some(label)) = (row.status, row.label.as_deref()) {
                sum.labelled += usize::from(matches!(label, "pass" | "warn" | "fail"));
                sum.passed += usize::from(label == "pass");
            }
        }
        sum
    }
}

/// Returns whether the words of find occur in the shown texts of an evaluation.
fn holds(it: &Evaluation, words: &str) -> bool {
    let ids = format!("{} {} {} {}", it.id, it.trace_id, it.status, it.context);
    let texts = [it.label.as_ref(), it.reasoning.as_ref(), it.error.as_ref(), it.judge_model.as_ref()];
    let mut texts = texts.into_iter().flatten().chain([&it.metric_name, &ids]);
    texts.any(|text| text.to_lowercase().contains(words))
}

/// Returns the baseline that a remediated output's evaluation is compared with.
fn compared(it: &Evaluation) -> Option<Uuid> {
    it.original_evaluation_id.filter(|_| it.context == EvaluationContext::Remediation)
}

/// Returns the sort key of the server, in descending order.
fn order(it: &Evaluation) -> (i64, Uuid) {
    (it.created_at.micros(), it.id)
}
