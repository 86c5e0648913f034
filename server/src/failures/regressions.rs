//! Remediation regressions: outputs of control actions that score lower than the original.
//!
//! The transaction that stores such a score enqueues a job, which compares it with its baseline.

use std::sync::Arc;

use api::eval::{EvaluationContext, EvaluationStatus};
use entities::{evaluation, job};
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::{eval_rules, evaluations, traces};
use uuid::Uuid;

use super::recorder::{RemediationRegression, record_regression};
use crate::{app::App, error::Result, pools};

/// Tolerance of the comparison of scores, which are binary fractions.
const SCORE_TOLERANCE: f64 = 1e-9;

/// Delay before scores are compared again whose baseline has not ended, microseconds.
const BASELINE_DELAY_MICROS: i64 = 5_000_000;

/// Completed evaluations of remediated outputs that have a baseline.
#[derive(Debug, Serialize, Deserialize)]
pub struct DetectRegressions {
    /// The evaluations.
    pub evaluations: Vec<Uuid>,
}

impl Job for DetectRegressions {
    const KIND: &'static str = "detect_regressions";
    const POOL: &'static WorkerPool = &pools::FAILURES_POOL;
    // A regression is never lost because its job failed.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// Returns the job for evaluations of a tenant that ended together, if one of them has a baseline.
pub fn jobs(tenant: Uuid, ended: &[evaluation::Model], now: i64) -> Vec<job::Model> {
    let has_baseline = |it: &&evaluation::Model| {
        it.original_evaluation_id.is_some()
            && it.status == EvaluationStatus::Complete.as_str()
            && it.context == EvaluationContext::Remediation.as_str()
    };
    let evaluations: Vec<Uuid> = ended.iter().filter(has_baseline).map(|it| it.id).collect();
    if evaluations.is_empty() {
        return Vec::new();
    }
    vec![new_job(tenant, &DetectRegressions { evaluations }, now, now)]
}

// Compares the scores. A repeated job records no regression twice.
impl RunJob<App> for DetectRegressions {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match work(app, row.tenant_id, &self.evaluations).await {
            Ok(true) => JobResult::Done,
            Ok(false) => JobResult::Snooze { until: app.clock.now() + BASELINE_DELAY_MICROS },
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

/// Records the regressions. Returns whether all baselines have ended.
async fn work(app: &App, tenant: Uuid, ids: &[Uuid]) -> Result<bool> {
    let mut is_complete = true;
    for row in evaluations::some(app.db.current(), tenant, ids).await? {
        let baseline =
            evaluations::some(app.db.current(), tenant, row.original_evaluation_id.as_slice()).await?;
        let waits = |it: &&evaluation::Model| {
            [EvaluationStatus::Pending.as_str(), EvaluationStatus::Running.as_str()]
                .contains(&it.status.as_str())
        };
        is_complete &= baseline.first().filter(waits).is_none();
        let baseline = baseline.first().and_then(|it| it.score);
        let (Some(baseline), Some(score), Some(span_id)) = (baseline, row.score, row.span_id) else {
            continue;
        };
        let rule = match row.rule_id {
            Some(rule) => eval_rules::get(app.db.current(), tenant, rule).await?,
            None => None,
        };
        if !is_regression(baseline, score, rule.and_then(|it| it.min_score_drop)) {
            continue;
        }
        let spans = traces::some_spans(&app.db.primary(), tenant, &[(row.trace_id, span_id)]).await?;
        let Some(span) = spans.into_iter().next() else { continue };
        let regression = RemediationRegression {
            trace_id: row.trace_id,
            span_id,
            evaluation_id: row.id,
            message: format!(
                "{} dropped from {baseline:.4} to {score:.4} after a control action",
                row.metric_name
            ),
            model: span.model,
            span_name: span.name,
        };
        record_regression(app, tenant, regression).await?;
    }
    Ok(is_complete)
}

/// Whether a score is lower than its baseline, by at least the drop that the rule requires.
pub fn is_regression(baseline: f64, score: f64, min_score_drop: Option<f64>) -> bool {
    let drop = baseline - score;
    drop > SCORE_TOLERANCE && drop >= min_score_drop.unwrap_or(0.0) - SCORE_TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_below_the_minimum_are_suppressed() {
        for (baseline, score, min_score_drop, expected) in [
            (0.8, 0.8, None, false),
            (0.8, 0.9, None, false),
            (0.8, 0.79, None, true),
            (0.8, 0.79, Some(0.0), true),
            (0.8, 0.76, Some(0.05), false),
            // The difference is a little less than 0.05 in binary.
            (0.8, 0.75, Some(0.05), true),
            (0.9, 0.85, Some(0.05), true),
            (0.3, 0.1 + 0.2, None, false),
            (1.0, 0.0, Some(1.0), true),
            (0.0, 1.0, Some(0.0), false),
        ] {
            assert_eq!(
                is_regression(baseline, score, min_score_drop),
                expected,
                "{baseline} {score} {min_score_drop:?}"
            );
        }
    }
}
