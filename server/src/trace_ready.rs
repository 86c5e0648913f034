//! Readiness: a trace is ready when its root has ended and no span has arrived for a while.
//!
//! Each commit enqueues one job for all its traces with the same time of readiness. A span that arrives
//! meanwhile moves the trace's `ready_at`; the job of that later commit marks the trace as ready, and
//! the earlier job skips it.

use std::sync::Arc;

use entities::job;
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{app::App, control::triggers, error::Result, evals::rule_firing, feature::Feature, pools};

/// Readiness of traces.
pub const FEATURE: Feature = Feature { jobs: |registry| registry.register::<TraceReady>(), ..Feature::NONE };

/// Traces of one tenant that become ready at `ready_at` if no more spans arrive.
#[derive(Debug, Serialize, Deserialize)]
pub struct TraceReady {
    /// Microseconds.
    pub ready_at: i64,
    /// The traces.
    pub traces: Vec<Uuid>,
}

impl Job for TraceReady {
    const KIND: &'static str = "trace_ready";
    const POOL: &'static WorkerPool = &pools::INGEST_POOL;
}

/// Returns the job that checks the traces.
pub fn job(tenant: Uuid, ready_at: i64, traces: Vec<Uuid>, now: i64) -> job::Model {
    new_job(tenant, &TraceReady { ready_at, traces }, ready_at, now)
}

// Marks the traces that are ready, fires eval rules on them, and enqueues the triggers of policies on their failures.
impl RunJob<App> for TraceReady {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match self.work(app, row).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

impl TraceReady {
    async fn work(&self, app: &App, row: &job::Model) -> Result<()> {
        let (tenant, is_first_attempt) = (row.tenant_id, row.attempts <= 1);
        rule_firing::mark_ready_and_fire(app, tenant, &self.traces, self.ready_at, is_first_attempt).await?;
        triggers::traces_ready(app, tenant, &self.traces).await
    }
}
