//! Readiness: a trace is ready when its root has ended and no span has arrived for a while.
//!
//! Each commit enqueues one job for all its traces with the same time of readiness. A span that arrives
//! meanwhile moves the trace's `ready_at`; the job of that later commit marks the trace as ready, and
//! the earlier job skips it. A job merges the due ones that wait, so that their evaluations share a transaction.

use std::sync::Arc;

use entities::job;
use queue::{Job, JobResult, RunJob, WorkerPool, merge_waiting, new_job};
use serde::{Deserialize, Serialize};
use store::traces;
use uuid::Uuid;

use crate::{
    app::App,
    control::triggers,
    error::Result,
    evals::rule_firing::{self, ReadyGroup},
    feature::Feature,
    pools,
};

/// Maximum number of jobs that a job merges.
const MAX_MERGED_JOBS: u64 = 64;
/// Number of traces above which a job merges no more.
const MAX_MERGED_TRACES: usize = 1_000;

/// Readiness of traces.
pub const FEATURE: Feature = Feature {
    jobs: |registry| {
        registry.register::<TracesReady>();
        registry.register::<TraceReady>();
    },
    ..Feature::NONE
};

/// Traces of one tenant that become ready at `ready_at` if no more spans arrive. Earlier versions enqueued this kind.
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

/// Traces that become ready at the same time if no more spans arrive.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DueTraces {
    /// Microseconds.
    pub ready_at: i64,
    /// The keys of the traces.
    #[serde(default)]
    pub keys: Vec<i64>,
    /// The IDs of the traces, in jobs that earlier versions enqueued.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<Uuid>,
}

/// Traces of one tenant that become ready if no more spans arrive, by the time at which they do.
#[derive(Debug, Serialize, Deserialize)]
pub struct TracesReady {
    /// The traces.
    pub groups: Vec<DueTraces>,
}

impl Job for TracesReady {
    const KIND: &'static str = "traces_ready";
    const POOL: &'static WorkerPool = &pools::INGEST_POOL;
}

/// Returns the job that checks the traces with these keys.
pub fn job(tenant: Uuid, ready_at: i64, keys: Vec<i64>, now: i64) -> job::Model {
    let groups = vec![DueTraces { ready_at, keys, traces: Vec::new() }];
    new_job(tenant, &TracesReady { groups }, ready_at, now)
}

impl RunJob<App> for TraceReady {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        let Self { ready_at, traces } = self;
        let groups = vec![DueTraces { ready_at, traces, ..DueTraces::default() }];
        match (TracesReady { groups }).work(app, row).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

// Marks the traces that are ready, fires eval rules on them, and enqueues the triggers of policies on their failures.
impl RunJob<App> for TracesReady {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        let now = app.clock.now();
        let merged =
            merge_waiting(&app.db, row, MAX_MERGED_JOBS, |waiting| self.merge_due(waiting, now)).await;
        let job = match merged {
            Ok(merged) => merged.unwrap_or(self),
            Err(error) => return JobResult::Retry { why: error.to_string() },
        };
        match job.work(app, row).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

impl TracesReady {
    /// Returns how many of these payloads are merged, counted from the first, and the merged job.
    fn merge_due(&self, waiting: &[String], now: i64) -> (usize, Self) {
        let (mut merged, mut groups) = (0, self.groups.clone());
        let count =
            |groups: &[DueTraces]| -> usize { groups.iter().map(|it| it.keys.len() + it.traces.len()).sum() };
        let mut traces = count(&groups);
        for payload in waiting {
            // A job that cannot be read fails alone.
            let Ok(other) = serde_json::from_str::<Self>(payload) else { break };
            traces += count(&other.groups);
            if traces > MAX_MERGED_TRACES || other.groups.iter().any(|it| it.ready_at > now) {
                break;
            }
            groups.extend(other.groups);
            merged += 1;
        }
        (merged, Self { groups })
    }

    async fn work(self, app: &App, row: &job::Model) -> Result<()> {
        let (tenant, is_first_attempt) = (row.tenant_id, row.attempts <= 1);
        let mut groups: Vec<ReadyGroup> = Vec::with_capacity(self.groups.len());
        for DueTraces { ready_at, mut keys, traces } in self.groups {
            keys.append(&mut traces::keys_of(app.db.current(), tenant, &traces).await?);
            groups.push((ready_at, keys));
        }
        rule_firing::mark_ready_and_fire(app, tenant, &groups, is_first_attempt).await?;
        let keys: Vec<i64> = groups.into_iter().flat_map(|it| it.1).collect();
        triggers::traces_ready(app, tenant, &keys).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(ready_at: i64, traces: usize) -> TracesReady {
        let keys = (0..).take(traces).collect();
        TracesReady { groups: vec![DueTraces { ready_at, keys, ..DueTraces::default() }] }
    }

    #[test]
    fn job_merges_due_ones_up_to_a_number_of_traces() {
        let text = |it: TracesReady| serde_json::to_string(&it).unwrap();
        let times = |it: TracesReady| it.groups.iter().map(|it| it.ready_at).collect::<Vec<_>>();
        let waiting = [text(job(2, 50)), text(job(3, 50)), text(job(9, 50))];
        let (merged, all) = job(1, 10).merge_due(&waiting, 5);
        assert_eq!((merged, times(all)), (2, vec![1, 2, 3]));
        let (merged, all) = job(1, MAX_MERGED_TRACES - 60).merge_due(&waiting, 5);
        assert_eq!((merged, times(all)), (1, vec![1, 2]));
        let (merged, all) = job(1, 10).merge_due(&["{}".to_owned()], 5);
        assert_eq!((merged, times(all)), (0, vec![1]));
    }
}
