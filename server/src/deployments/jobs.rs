//! The jobs of prompt deployments, for modules that make them necessary.

use api::eval::EvaluationContext;
use entities::{evaluation, job};
use queue::{Job, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::cached::ScoredMetrics;
use crate::pools;

/// Interval at which a job waits for a higher plan, microseconds.
pub const PLAN_INTERVAL_MICROS: i64 = 600_000_000;

/// Completed evaluations whose scores count in tests or watches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CountScores {
    /// The evaluations.
    pub evaluations: Vec<Uuid>,
}

impl Job for CountScores {
    const KIND: &'static str = "count_prompt_scores";
    const POOL: &'static WorkerPool = &pools::PROMPT_SCORES_POOL;
    // A score is never lost because its job failed.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// A test whose time is over.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExpireTest {
    /// The tested deployment.
    pub deployment: Uuid,
}

impl Job for ExpireTest {
    const KIND: &'static str = "expire_prompt_test";
    const POOL: &'static WorkerPool = &pools::ACTIONS_POOL;
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// A replay test with pairs that have not ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReplayTest {
    /// The tested deployment.
    pub deployment: Uuid,
}

impl Job for ReplayTest {
    const KIND: &'static str = "replay_prompt_test";
    const POOL: &'static WorkerPool = &pools::REPLAYS_POOL;
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// A project whose waiting deployments ship, because its autoship was switched on.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShipWaiting {
    /// The project.
    pub project: Uuid,
}

impl Job for ShipWaiting {
    const KIND: &'static str = "ship_waiting_prompts";
    const POOL: &'static WorkerPool = &pools::ACTIONS_POOL;
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// Returns the job for evaluations of a tenant that ended together, if one of their scores counts.
pub fn count_scores(
    metrics: &ScoredMetrics,
    tenant: Uuid,
    ended: &[evaluation::Model],
    now: i64,
) -> Vec<job::Model> {
    if metrics.is_empty() {
        return Vec::new();
    }
    let counts = |it: &&evaluation::Model| is_counted(it) && metrics.contains(it.project_id, &it.metric_name);
    let evaluations: Vec<Uuid> = ended.iter().filter(counts).map(|it| it.id).collect();
    if evaluations.is_empty() {
        return Vec::new();
    }
    vec![new_job(tenant, &CountScores { evaluations }, now, now)]
}

/// Whether the score of an evaluation may count: it is that of a whole trace as the application produced it.
pub fn is_counted(row: &evaluation::Model) -> bool {
    row.score.is_some() && row.context == EvaluationContext::Fresh.as_str() && row.span_id.is_none()
}
