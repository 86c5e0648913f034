//! Tests of the rows of Evals after each response.

#![allow(clippy::unwrap_used)]

use crate::fixture::{BASE_MICROS, evaluation, id};
use crate::screen::evals::{
    rules::state::{RuleSample, SAMPLE_HOURS},
    state::*,
};

/// The time at which the pages were requested.
const LOADED_AT: Timestamp = Timestamp::from_micros(BASE_MICROS);

fn page(numbers: &[u128], more: bool) -> EvaluationList {
    EvaluationList {
        evaluations: numbers.iter().map(|n| evaluation(*n, "faithfulness", Some(0.9))).collect(),
        has_more: more,
        next_cursor: more.then(|| "older".to_owned()),
    }
}

fn loaded(numbers: &[u128], more: bool) -> Evals {
    let mut evals = Evals::default();
    evals.extend(page(numbers, more), LOADED_AT);
    evals
}

fn ids(evals: &Evals) -> Vec<Uuid> {
    evals.rows.iter().map(|row| row.id).collect()
}

#[test]
fn refresh_adds_updates_and_removes_rows() {
    let mut evals = loaded(&[5, 4, 3, 2, 1], false);
    evals.select(2, true);
    evals.refresh(page(&[7, 6, 5, 3], true), LOADED_AT);
    assert_eq!(ids(&evals), [7, 6, 5, 3, 2, 1].map(id), "4 no longer matches the filter");
    assert_eq!(evals.current().unwrap().id, id(3), "the cursor stays on its row");
    assert_eq!(evals.older, None);
    evals.refresh(page(&[8], false), LOADED_AT);
    assert_eq!(ids(&evals), [id(8)], "the page is all there is");
}

#[test]
fn gap_of_new_rows_waits_until_the_cursor_is_on_top() {
    let mut evals = loaded(&[5, 4, 3], true);
    evals.select(1, true);
    evals.refresh(page(&[20, 19], true), LOADED_AT);
    assert!(evals.newer && ids(&evals) == [5, 4, 3].map(id));
    evals.select(0, false);
    evals.refresh(page(&[20, 19], true), LOADED_AT);
    assert!(!evals.newer && ids(&evals) == [20, 19].map(id), "rows without the gap");
    assert_eq!(evals.older, Older::of(Some("older".to_owned()), true, LOADED_AT));
}

#[test]
fn cursor_follows_the_top_and_goes_to_the_wanted_row() {
    let mut evals = loaded(&[2, 1], false);
    evals.refresh(page(&[3, 2, 1], false), LOADED_AT);
    assert_eq!(evals.selected, 0);
    evals.wanted = Some(id(4));
    evals.refresh(page(&[5, 4, 3, 2, 1], false), LOADED_AT);
    assert_eq!((evals.selected, evals.wanted), (1, None));
    evals.wanted = Some(id(6));
    evals.refresh(page(&[6, 5, 4], false), LOADED_AT);
    evals.refresh(page(&[7, 6, 5, 4], false), LOADED_AT);
    assert_eq!(evals.current().unwrap().id, id(6), "the cursor stays on the requested row");
}

#[test]
fn score_drop_ignores_rounding_differences() {
    let mut evals = loaded(&[3, 2, 1], false);
    let mut again = evaluation(3, "faithfulness", Some(0.61));
    again.context = EvaluationContext::Remediation;
    again.original_evaluation_id = Some(id(1));
    evals.rows[0] = again.clone();
    assert_eq!(evals.standing(&again), EvaluationMark::BelowBaseline);
    let (baseline, drop) = evals.below(&again).unwrap();
    assert!((baseline - 0.9).abs() < 1e-9 && (drop - 0.29).abs() < 1e-9);
    again.score = Some(0.9 - 1e-12);
    assert_eq!(evals.below(&again), None);
    again.original_evaluation_id = Some(id(99));
    evals.rows[0] = again.clone();
    assert_eq!(evals.missing_baseline(&evals.rows), Some(id(99)));
    evals.baselines.insert(id(99), None);
    assert_eq!((evals.missing_baseline(&evals.rows), evals.below(&again)), (None, None));
}

#[test]
fn rows_beyond_the_capacity_are_dropped() {
    let numbers: Vec<u128> = (0..2_100).rev().collect();
    let evals = loaded(&numbers, true);
    assert_eq!((evals.rows.len(), evals.older), (MAX_EVALUATIONS, None));
}

#[test]
fn rule_sample_counts_labels_by_hour() {
    let now = Timestamp::from_micros(BASE_MICROS + 3_600_000_000 * 30);
    let mut rows = page(&[1, 2, 3, 4], true);
    for (it, (hours, label)) in
        rows.evaluations.iter_mut().zip([(0, "pass"), (0, "fail"), (23, "pass"), (25, "pass")])
    {
        it.created_at = Timestamp::from_micros(now.micros() - hours * 3_600_000_000 - 1);
        it.label = Some(label.to_owned());
    }
    rows.evaluations.push(Evaluation { label: Some("vivid".into()), ..rows.evaluations[0].clone() });
    let sample = RuleSample::of(&rows, now);
    assert_eq!((sample.hours[SAMPLE_HOURS - 1], sample.hours[0], sample.all()), ((1, 2), (1, 1), 3));
    assert!(sample.more && (sample.rate().unwrap() - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(sample.rates()[5], None);
    assert_eq!(sample.unknown, 0, "the page reaches beyond the day");
    rows.evaluations.truncate(2);
    assert_eq!(RuleSample::of(&rows, now).unknown, SAMPLE_HOURS - 1, "nothing was read before the last hour");
    rows.has_more = false;
    assert_eq!(RuleSample::of(&rows, now).unknown, 0, "no evaluation is older than an hour");
}
