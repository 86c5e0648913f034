//! What screen 2 knows: the loaded evaluations, which is selected, and the rules that ask for them.
//!
//! Rows are newest first, as the server answers them. Asking it is not done here.

mod line;
mod rules;

use std::collections::{HashMap, HashSet};

use api::{
    Timestamp,
    eval::{Evaluation, EvaluationContext, EvaluationList, EvaluationStatus},
    evaluator::Evaluator,
};
use uuid::Uuid;

pub use line::{FIELDS, Line};
pub use rules::{HOURS, Rules, Sample, Side};

use crate::{evaluation::EvaluationMark, find, manage::Rows, msg::NetError, state::Older};

/// Most evaluations kept; further pages are not asked for.
pub const CAPACITY: usize = 2_000;
/// How much a score has to lie below its baseline to be a drop; less is rounding.
const TOLERANCE: f64 = 1e-9;

/// The part of the screen that has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// The evaluations.
    #[default]
    List,
    /// The rules.
    Rules,
}

/// What the loaded evaluations come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Those that wait or are being worked on.
    pub unfinished: usize,
    /// Those that ended without a score.
    pub failed: usize,
    /// Those with a label `pass`, `warn` or `fail`.
    pub labelled: usize,
    /// Those with the label `pass`.
    pub passed: usize,
    /// Those below their baseline.
    pub below: usize,
    /// There may be more of these: not every baseline has been looked up.
    pub unsure: bool,
}

/// The screen.
#[derive(Debug, Default)]
pub struct Evals {
    /// The filter line in force.
    pub text: String,
    /// Lines used before, oldest first.
    pub history: Vec<String>,
    /// The evaluations, newest first.
    pub rows: Vec<Evaluation>,
    /// The row under the cursor.
    pub selected: usize,
    /// The cursor was put on its row, which it stays with; on the top it follows the newest.
    pub held: bool,
    /// The row that the cursor goes to as soon as it is here.
    pub wanted: Option<Uuid>,
    /// Where the server's older rows begin.
    pub older: Option<Older>,
    /// The first page has arrived.
    pub loaded: bool,
    /// More new rows came than one page holds, while the reader was further down.
    pub newer: bool,
    /// Why the last request failed, if it did.
    pub error: Option<NetError>,
    /// When the newest page last arrived.
    pub heard: Option<Timestamp>,
    /// Requests that failed one after the other.
    pub failures: u32,
    /// When to ask again.
    pub next: Option<Timestamp>,
    /// The part with the keys.
    pub part: Part,
    /// The selected evaluation fills the screen, from this line on.
    pub zoom: Option<usize>,
    /// That evaluation no longer fits the filter; it goes when it no longer fills the screen.
    pub strayed: bool,
    /// Scores of baselines that are not among the rows; nothing where there is none to be had.
    pub baselines: HashMap<Uuid, Option<f64>>,
    /// The rules.
    pub rules: Rules,
    /// The evaluators that can be run.
    pub evaluators: Rows<Evaluator>,
    /// Words that find looks for, in lower case.
    find: Option<String>,
    /// The rows that hold them; kept, because many long texts are not searched for each drawing.
    hits: HashSet<Uuid>,
}

impl Evals {
    /// The evaluation that fills the screen, if it no longer fits the filter.
    pub fn stray(&self) -> Option<&Evaluation> {
        self.current().filter(|_| self.strayed && self.zoom.is_some())
    }

    /// The evaluation under the cursor.
    pub fn current(&self) -> Option<&Evaluation> {
        self.rows.get(self.selected)
    }

    /// Puts the cursor on a row. Where it is not held, it goes to the newest one that comes.
    pub fn select(&mut self, at: usize, held: bool) {
        self.selected = at;
        self.held = held;
        self.strayed = false;
    }

    /// Forgets the rows, because others are asked for.
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

    /// Takes in the first page, or an older one. The times of its filter were reckoned from `at`.
    pub fn extend(&mut self, page: EvaluationList, at: Timestamp) {
        let fresh = page.evaluations.into_iter().filter(|it| !self.rows.iter().any(|row| row.id == it.id));
        let fresh: Vec<_> = fresh.collect();
        self.rows.extend(fresh);
        self.rows.truncate(CAPACITY);
        self.older = Older::of(page.next_cursor, page.has_more && self.rows.len() < CAPACITY, at);
        self.settle(None);
    }

    /// Takes in the newest page: it says all there is from its first row to its last one, so
    /// known rows between them that are not in it no longer fit the filter. Answers whether older
    /// rows begin elsewhere than before.
    pub fn refresh(&mut self, page: EvaluationList, at: Timestamp) -> bool {
        let more = page.has_more && page.next_cursor.is_some();
        let known = |it: &Evaluation| self.rows.iter().any(|row| row.id == it.id);
        let met = self.rows.is_empty() || !more || page.evaluations.iter().any(known);
        let kept = self.held || self.zoom.is_some();
        if !met && kept {
            // Nothing moves under the reader's eyes; going to the top shows what is new.
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
        rows.truncate(CAPACITY);
        // What is being read stays where it was, whether or not it still fits.
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

    /// Takes in news of rows that are known; others are left out.
    pub fn revise(&mut self, news: Vec<Evaluation>) {
        for one in news {
            if let Some(row) = self.rows.iter_mut().find(|row| row.id == one.id) {
                *row = one;
            }
        }
        self.search();
    }

    /// Puts the cursor right after the rows changed: on the wanted row, else on this one, else
    /// where it was.
    fn settle(&mut self, current: Option<Uuid>) {
        self.loaded = true;
        self.error = None;
        self.failures = 0;
        self.search();
        let position = |id: Uuid| self.rows.iter().position(|row| row.id == id);
        // Nothing takes the place of what is being read; the wanted one is gone to afterwards.
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

    /// The words that find looks for.
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

    /// Whether find's words occur in the row at a position.
    pub fn hit(&self, at: usize) -> bool {
        self.rows.get(at).is_some_and(|row| self.hits.contains(&row.id))
    }

    /// The next row that find matches, or the one before, around the end.
    pub fn find_from(&self, forward: bool) -> Option<usize> {
        find::next(self.rows.len(), self.selected, forward, |at| self.hit(at))
    }

    /// How many rows find matches, and which of them the cursor is on or after, from 1.
    pub fn hits(&self) -> Option<(usize, usize)> {
        self.find.as_ref()?;
        Some(find::counted(self.rows.len(), self.selected, |at| self.hit(at)))
    }

    /// The baseline of a remediated output's evaluation, and how far this one lies below it.
    pub fn below(&self, it: &Evaluation) -> Option<(f64, f64)> {
        let baseline = self.baseline(it)?;
        Some((baseline, drop(it, baseline)?))
    }

    /// The score of an evaluation's baseline, as far as it is known.
    pub fn baseline(&self, it: &Evaluation) -> Option<f64> {
        let id = compared(it)?;
        match self.rows.iter().find(|row| row.id == id) {
            Some(row) => row.score,
            None => self.baselines.get(&id).copied().flatten(),
        }
    }

    /// A baseline that some of these rows need and that was not asked for yet.
    pub fn missing_baseline(&self, rows: &[Evaluation]) -> Option<Uuid> {
        let ids = rows.iter().filter(|row| row.score.is_some()).filter_map(compared);
        let mut ids = ids.filter(|id| !self.baselines.contains_key(id));
        ids.find(|id| !self.rows.iter().any(|row| row.id == *id))
    }

    /// How an evaluation stands.
    pub fn standing(&self, it: &Evaluation) -> EvaluationMark {
        standing(it, self.baseline(it))
    }

    /// What the loaded rows come to.
    pub fn summary(&self) -> Summary {
        let mut sum = Summary::default();
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

/// Whether find's words occur in what is shown of an evaluation.
fn holds(it: &Evaluation, words: &str) -> bool {
    let ids = format!("{} {} {} {}", it.id, it.trace_id, it.status, it.context);
    let texts = [it.label.as_ref(), it.reasoning.as_ref(), it.error.as_ref(), it.judge_model.as_ref()];
    let mut texts = texts.into_iter().flatten().chain([&it.metric_name, &ids]);
    texts.any(|text| text.to_lowercase().contains(words))
}

/// The baseline that a remediated output's evaluation is compared with.
fn compared(it: &Evaluation) -> Option<Uuid> {
    it.original_evaluation_id.filter(|_| it.context == EvaluationContext::Remediation)
}

/// How far an evaluation lies below its baseline, if it does.
fn drop(it: &Evaluation, baseline: f64) -> Option<f64> {
    it.score.map(|score| baseline - score).filter(|drop| *drop > TOLERANCE)
}

/// How an evaluation stands beside its baseline's score.
pub fn standing(it: &Evaluation, baseline: Option<f64>) -> EvaluationMark {
    let dropped = baseline.is_some_and(|baseline| drop(it, baseline).is_some());
    match EvaluationMark::of(it.status, it.label.as_deref()) {
        standing @ (EvaluationMark::Unfinished | EvaluationMark::Failed) => standing,
        _ if dropped => EvaluationMark::BelowBaseline,
        standing => standing,
    }
}

/// Whether an evaluation has not come to its end.
pub const fn unfinished(it: &Evaluation) -> bool {
    matches!(it.status, EvaluationStatus::Pending | EvaluationStatus::Running)
}

/// What the server sorts by, the largest first.
fn order(it: &Evaluation) -> (i64, Uuid) {
    (it.created_at.micros(), it.id)
}

#[cfg(test)]
mod tests;
