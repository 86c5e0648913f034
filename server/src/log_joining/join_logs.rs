//! The job that joins log records with stored spans.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use api::{
    ErrorCode,
    rejection::{RejectionReason, RejectionSource},
};
use entities::job;
use queue::{Job, JobResult, RunJob, WorkerPool, merge_waiting, new_job};
use serde::{Deserialize, Serialize};
use store::traces::{JoinOutcome, JoinRules, TraceChunk, join_logs};
use uuid::Uuid;

use super::{HELD_FOR, LogJoins};
use crate::{app::App, error::Result, ingest::rejections::RejectedItems, pools};

/// Maximum number of jobs that a job merges.
const MAX_MERGED_JOBS: u64 = 64;
/// Number of traces above which a job merges no more.
const MAX_MERGED_TRACES: usize = 1_000;
/// Number of traces of one transaction.
const TRACES_PER_TRANSACTION: usize = 64;
/// The longest time after which waiting log records are looked at again.
const MAX_BACKOFF: Duration = Duration::from_secs(300);
const SECOND_MICROS: i64 = 1_000_000;

/// The reason for log records that were not joined.
const MISSING_SPAN_REASON: &str = "the span of the log record was not received within an hour";
/// The reason for messages of a span that was stored before.
const LATE_MESSAGE_REASON: &str =
    "the log record with messages was received more than an hour after its span";

/// Traces of one tenant with log records to join.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct JoinLogs {
    /// The time at which the job is due, microseconds.
    pub due: i64,
    /// The traces.
    pub traces: Vec<WaitingTrace>,
}

/// A trace with log records that may wait for spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingTrace {
    /// The trace.
    pub trace: Uuid,
    /// The project of its last log records.
    pub project: Uuid,
    /// Receipt of its last log records, microseconds.
    pub since: i64,
    /// Number of earlier attempts.
    #[serde(default)]
    pub attempts: u32,
}

impl Job for JoinLogs {
    const KIND: &'static str = "join_logs";
    const POOL: &'static WorkerPool = &pools::LOGS_POOL;
    // Acknowledged log records are never lost because their job failed.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// Returns the job that joins the log records of these traces at `due`.
pub fn job(tenant: Uuid, traces: Vec<WaitingTrace>, due: i64, now: i64) -> job::Model {
    new_job(tenant, &JoinLogs { due, traces }, due, now)
}

/// Returns the jobs for stored chunks with spans that log records may complete: one for each tenant.
pub fn jobs<'a>(chunks: impl Iterator<Item = &'a TraceChunk>, now: i64) -> Vec<job::Model> {
    let mut by_tenant: BTreeMap<Uuid, Vec<WaitingTrace>> = BTreeMap::new();
    for trace in chunks.map(|it| &it.trace) {
        let waiting = WaitingTrace { trace: trace.id, project: trace.project_id, since: now, attempts: 0 };
        by_tenant.entry(trace.tenant_id).or_default().push(waiting);
    }
    by_tenant.into_iter().map(|(tenant, traces)| job(tenant, traces, now, now)).collect()
}

// Joins the log records of this job and of the waiting jobs that it merges.
impl RunJob<App> for JoinLogs {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match work(app, row, self).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn work(app: &App, row: &job::Model, job: JoinLogs) -> Result<()> {
    let (tenant, now) = (row.tenant_id, app.clock.now());
    let job = merge_waiting(&app.db, row, MAX_MERGED_JOBS, |it| job.merge_due(it, now)).await?.unwrap_or(job);
    let Some(known) = app.access_cache.tenant(tenant).await? else { return Ok(()) };
    let plan = known.plan.parse().map_err(anyhow::Error::from)?;
    let embeds_spans = app.embedder.embeds(tenant, plan).await?;
    let joins = LogJoins::new(app.access_cache.price_book(tenant).await?, now);
    let traces: HashMap<Uuid, WaitingTrace> = job.distinct().into_iter().map(|it| (it.trace, it)).collect();
    let mut ids: Vec<Uuid> = traces.keys().copied().collect();
    ids.sort_unstable();
    let mut waiting: Vec<WaitingTrace> = Vec::new();
    while !ids.is_empty() {
        let group: Vec<Uuid> = ids.drain(..ids.len().min(TRACES_PER_TRANSACTION)).collect();
        let rules = (app.rules.as_ref(), &joins as &dyn JoinRules);
        let (outcomes, changed) = join_logs(&app.db, tenant, &group, rules, embeds_spans, now)
            .await
            .map_err(anyhow::Error::from)?;
        if changed {
            // There may be no subscribers.
            _ = app.changed_tenants.send(tenant);
        }
        for (id, outcome) in outcomes {
            match outcome {
                JoinOutcome::Joined => {}
                JoinOutcome::Waiting => waiting.extend(traces.get(&id)),
                JoinOutcome::NotRead => ids.push(id),
            }
        }
    }
    let held_for = i64::try_from(HELD_FOR.as_micros()).unwrap_or(i64::MAX);
    let (given_up, waiting): (Vec<_>, Vec<_>) =
        waiting.into_iter().partition(|it| it.since + held_for <= now);
    let mut rejected: BTreeMap<(Uuid, &str), usize> = BTreeMap::new();
    for (project, count) in joins.into_late_messages().into_iter().filter(|it| it.1 > 0) {
        rejected.insert((project, LATE_MESSAGE_REASON), count);
    }
    for it in given_up {
        let items = store::held_input::waiting_items(app.db.current(), tenant, it.trace).await?;
        *rejected.entry((it.project, MISSING_SPAN_REASON)).or_default() +=
            usize::try_from(items).unwrap_or_default();
    }
    reject(app, tenant, rejected, now).await;
    wait(app, tenant, waiting, now).await
}

impl JoinLogs {
    /// Returns how many of these payloads are merged, counted from the first, and the merged job.
    fn merge_due(&self, payloads: &[String], now: i64) -> (usize, Self) {
        let (mut merged, mut traces) = (0, self.traces.clone());
        for payload in payloads {
            // A job that cannot be read fails alone.
            let Ok(other) = serde_json::from_str::<Self>(payload) else { break };
            if other.due > now || traces.len() + other.traces.len() > MAX_MERGED_TRACES {
                break;
            }
            traces.extend(other.traces);
            merged += 1;
        }
        (merged, Self { due: self.due, traces })
    }

    /// Returns each trace once, with the time of its last log records.
    fn distinct(&self) -> Vec<WaitingTrace> {
        let mut distinct: BTreeMap<Uuid, WaitingTrace> = BTreeMap::new();
        for it in &self.traces {
            let kept = distinct.entry(it.trace).or_insert(*it);
            if it.since > kept.since {
                *kept = *it;
            }
        }
        distinct.into_values().collect()
    }
}

/// Enqueues the jobs that look at the traces again.
async fn wait(app: &App, tenant: Uuid, waiting: Vec<WaitingTrace>, now: i64) -> Result<()> {
    let mut by_due: BTreeMap<i64, Vec<WaitingTrace>> = BTreeMap::new();
    for mut trace in waiting {
        let seconds = 1_u64.checked_shl(trace.attempts).unwrap_or(u64::MAX).min(MAX_BACKOFF.as_secs());
        trace.attempts = trace.attempts.saturating_add(1);
        let due = now + i64::try_from(seconds).unwrap_or_default() * SECOND_MICROS;
        by_due.entry(due).or_default().push(trace);
    }
    for (due, traces) in by_due {
        queue::enqueue(&app.db.write, tenant, &JoinLogs { due, traces }, due, now).await?;
    }
    Ok(())
}

/// Records rejected log records, by their project and reason.
async fn reject(app: &App, tenant: Uuid, rejected: BTreeMap<(Uuid, &str), usize>, now: i64) {
    for ((project_id, reason), rejected) in rejected {
        let code = ErrorCode::NotFound.as_str();
        app.telemetry.ingest.count_rejected(code, rejected);
        let reason = RejectionReason { index: None, code: code.to_owned(), message: reason.to_owned() };
        let items = RejectedItems {
            tenant_id: tenant,
            project_id,
            source: RejectionSource::OtlpLogs,
            sdk: None,
            sdk_version: None,
            rejected,
            reasons: vec![reason],
            // The log records of several requests are rejected together.
            request_id: Arc::from(""),
        };
        app.rejections.record(&app.db, items, now).await;
    }
}
