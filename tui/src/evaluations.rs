//! Functions about evaluations and rules that the screens share: their status, and how they are requested.

use api::{
    client::{
        Call,
        calls::{self, Page},
    },
    eval::{Evaluation, EvaluationFilter, EvaluationList, EvaluationStatus},
    eval_rule::{EvalRule, EvalRuleList},
};

use crate::net::List;
use present::evaluation::EvaluationMark;

/// Microseconds between two requests for evaluations that may change.
pub const LOOK_INTERVAL_MICROS: i64 = 2_000_000;
/// Maximum number of evaluations on a page: of one trace, or of one rule in a day.
pub const MAX_PAGE_ROWS: u32 = 200;
/// Width in columns of a score; a score on a larger scale is shortened.
pub const SCORE_COLS: usize = 5;
/// The smallest drop below a baseline; a smaller difference is a rounding error.
const MIN_DROP: f64 = 1e-9;

impl List for EvalRuleList {
    type Row = EvalRule;

    fn into_rows(self) -> (Vec<EvalRule>, Option<String>) {
        (self.eval_rules, self.next_cursor)
    }
}

/// Returns the call for the first page of evaluations.
pub fn first_page(filter: &EvaluationFilter, limit: u32) -> Call<EvaluationList> {
    calls::evaluations(filter, &Page { limit: Some(limit), cursor: None })
}

/// Returns the mark of an evaluation, given the score of its baseline.
pub fn standing(it: &Evaluation, baseline: Option<f64>) -> EvaluationMark {
    let dropped = baseline.is_some_and(|baseline| score_drop(it, baseline).is_some());
    match EvaluationMark::of(it.status, it.label.as_deref()) {
        standing @ (EvaluationMark::Unfinished | EvaluationMark::Failed) => standing,
        _ if dropped => EvaluationMark::BelowBaseline,
        standing => standing,
    }
}

/// Returns how far the score of an evaluation lies below its baseline, if it does.
pub fn score_drop(it: &Evaluation, baseline: f64) -> Option<f64> {
    it.score.map(|score| baseline - score).filter(|drop| *drop > MIN_DROP)
}

/// Returns whether an evaluation is pending or running.
pub const fn is_unfinished(it: &Evaluation) -> bool {
    matches!(it.status, EvaluationStatus::Pending | EvaluationStatus::Running)
}

/// Formats a score for the columns of a table.
pub fn score(score: f64) -> String {
    // Only external evaluations have other scales.
    if score.abs() < 100.0 { format!("{score:.2}") } else { format!("{score:.0}") }
}
