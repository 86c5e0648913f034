//! Failure rules that fire on low scores.
//!
//! The transaction that stores a score enqueues a job if the score matches a rule, so other evaluations cost nothing.
//! Evaluations that were sent with spans fire no rule.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use api::failure::LowScore;
use entities::{evaluation, job, trace};
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::{evaluations, traces};
use uuid::Uuid;

use super::{
    event,
    firing::{self, MatchCause, RuleMatch},
    rule_set::FailureRules,
};
use crate::{app::App, error::Result, pools};

/// Completed evaluations whose scores match failure rules.
#[derive(Debug, Serialize, Deserialize)]
pub struct MatchScores {
    /// The evaluations.
    pub evaluations: Vec<Uuid>,
}

impl Job for MatchScores {
    const KIND: &'static str = "match_scores";
    const POOL: &'static WorkerPool = &pools::FAILURES_POOL;
    // A failure is never lost because its job failed.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// Returns the job for evaluations of a tenant that ended together, if one of the scores matches a rule.
pub fn jobs(rules: &FailureRules, tenant: Uuid, ended: &[evaluation::Model], now: i64) -> Vec<job::Model> {
    let wanted =
        ended.iter().filter(|it| it.score.is_some_and(|at| rules.matches_any_score(&it.metric_name, at)));
    let evaluations: Vec<Uuid> = wanted.map(|it| it.id).collect();
    if evaluations.is_empty() {
        return Vec::new();
    }
    vec![new_job(tenant, &MatchScores { evaluations }, now, now)]
}

// Matches the rules of a tenant with the scores.
impl RunJob<App> for MatchScores {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match work(app, row.tenant_id, &self.evaluations).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn work(app: &App, tenant: Uuid, ids: &[Uuid]) -> Result<()> {
    let Some(rules) = firing::rules_of(app, tenant).await? else { return Ok(()) };
    let scored = evaluations::some(app.db.current(), tenant, ids).await?;
    let traces: HashSet<Uuid> = scored.iter().map(|it| it.trace_id).collect();
    let traces = traces::some(app.db.current(), tenant, &traces.into_iter().collect::<Vec<_>>()).await?;
    let traces: HashMap<Uuid, trace::Model> = traces.into_iter().map(|it| (it.id, it)).collect();
    let span_types = firing::span_types(app, tenant, Some(&*rules), traces.keys()).await?;
    let mut matches = Vec::new();
    for it in scored {
        let (Some(score), Some(trace)) = (it.score, traces.get(&it.trace_id)) else { continue };
        let matching = rules.rules.iter().filter(|rule| {
            rule.matches_score(&it.metric_name, score) && firing::selects(rule, trace, &span_types)
        });
        let at = it.completed_at.unwrap_or(it.created_at);
        let cause =
            LowScore { id: it.id, metric_name: it.metric_name.clone(), score, label: it.label.clone() };
        matches.extend(matching.map(|rule| RuleMatch {
            rule: rule.row.id,
            trace: trace.id,
            at,
            cause: MatchCause::Score(cause.clone()),
        }));
    }
    event::fire(app, tenant, &traces, matches, &[]).await
}
