//! Matches rules with filters again when traces are ready.
//!
//! A failing span may arrive before the root span, from which the trace takes its name and tags. A trace that no filter
//! selects when the failure is recorded is therefore compared once more when it is complete.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use api::failure::{ClusterStatus, FailureFilter};
use entities::{failure, job, trace};
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::{Connection, DbError, derived_id, failure_clusters, failures, traces};
use uuid::Uuid;

use super::{event, firing};
use crate::{app::App, error::Result, pools};

/// Traces with failures that become ready at the same time.
#[derive(Debug, Serialize, Deserialize)]
pub struct MatchReadyTraces {
    /// The traces.
    pub traces: Vec<Uuid>,
}

impl Job for MatchReadyTraces {
    const KIND: &'static str = "match_ready_traces";
    const POOL: &'static WorkerPool = &pools::FAILURES_POOL;
    // A failure is never lost because its job failed.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// Maximum number of failures of a trace that are compared, the newest ones.
const MAX_FAILURES: u64 = 50;

/// Enqueues a job for the traces that become ready later, one for each time.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn enqueue<'a>(
    txn: &impl Connection,
    tenant: Uuid,
    traces: impl Iterator<Item = &'a trace::Model>,
    now: i64,
) -> Result<(), DbError> {
    let mut by_time: BTreeMap<i64, Vec<Uuid>> = BTreeMap::new();
    for it in traces.filter(|it| !it.ready && it.ready_at > now) {
        by_time.entry(it.ready_at).or_default().push(it.id);
    }
    let jobs = by_time.into_iter().map(|(at, traces)| new_job(tenant, &MatchReadyTraces { traces }, at, now));
    queue::enqueue_all(txn, jobs.collect()).await
}

/// Enqueues a job for each trace whose time of readiness has moved. Jobs of the same trace and time become one.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn enqueue_moved(
    txn: &impl Connection,
    tenant: Uuid,
    traces: &[trace::Model],
    now: i64,
) -> Result<(), DbError> {
    for it in traces {
        let mut job = new_job(tenant, &MatchReadyTraces { traces: vec![it.id] }, it.ready_at, now);
        job.id = derived_id(it.id, &format!("ready_match:{}", it.ready_at));
        queue::enqueue_once(txn, job).await?;
    }
    Ok(())
}

// Matches the traces that are ready, and waits for the others.
impl RunJob<App> for MatchReadyTraces {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match work(app, row.tenant_id, &self.traces).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn work(app: &App, tenant: Uuid, ids: &[Uuid]) -> Result<()> {
    let Some(rules) = firing::rules_of(app, tenant).await? else { return Ok(()) };
    let now = app.clock.now();
    let rows = traces::some(app.db.current(), tenant, ids).await?;
    // Late spans have moved the time of some.
    let (later, due): (Vec<_>, Vec<_>) = rows.into_iter().partition(|it| !it.ready && it.ready_at > now);
    let traces: HashMap<Uuid, trace::Model> = due.into_iter().map(|it| (it.id, it)).collect();
    let mut failed: Vec<failure::Model> = Vec::new();
    for id in traces.keys() {
        let filter = FailureFilter { trace_id: Some(*id), ..FailureFilter::default() };
        failed.extend(failures::page(&app.db.primary(), tenant, &filter, None, MAX_FAILURES).await?);
    }
    let clusters: HashSet<Uuid> = failed.iter().map(|it| it.cluster_id).collect();
    let clusters: Vec<Uuid> = clusters.into_iter().collect();
    let muted = ClusterStatus::Muted.as_str();
    let muted: HashSet<Uuid> = failure_clusters::with_status(app.db.current(), tenant, &clusters, muted)
        .await?
        .into_iter()
        .collect();
    let span_types = firing::span_types(app, tenant, Some(&*rules), traces.keys()).await?;
    let relevant = failed.iter().filter(|it| !muted.contains(&it.cluster_id));
    let (matches, _) = firing::of_failures(&rules, &traces, &span_types, relevant);
    event::fire(app, tenant, &traces, matches, &later).await
}
