//! The job that joins log records with stored spans.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use entities::job;
use queue::{Job, JobResult, RunJob, WorkerPool, merge_waiting, new_job};
use serde::{Deserialize, Serialize};
use store::traces::{JoinOutcome, JoinRules, join_logs};
use uuid::Uuid;

use super::{expiry, join::LogJoins};
use crate::{app::App, error::Result, pools};

/// Maximum number of jobs that a job merges.
const MAX_MERGED_JOBS: u64 = 64;
/// Maximum number of traces of a job.
const MAX_MERGED_TRACES: usize = 1_000;
/// Number of traces of one transaction.
const TRACES_PER_TRANSACTION: usize = 64;
/// The longest delay after which log records that wait are joined again.
const MAX_BACKOFF: Duration = Duration::from_secs(300);
const SECOND_MICROS: i64 = 1_000_000;

/// Traces of one tenant with log records to join.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct JoinLogs {
    /// The time at which the job is due, microseconds.
    pub due: i64,
    /// Number of earlier attempts.
    pub attempts: u32,
    /// The traces whose log records are joined, if necessary by later jobs.
    pub traces: Vec<Uuid>,
    /// Traces that are joined once, because other jobs wait for their spans.
    #[serde(default)]
    pub once: Vec<Uuid>,
}

impl Job for JoinLogs {
    const KIND: &'static str = "join_logs";
    const POOL: &'static WorkerPool = &pools::LOGS_POOL;
    // Acknowledged log records are never lost because their job failed.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// Returns the jobs that join the log records of these traces at once.
pub fn jobs(tenant: Uuid, traces: Vec<Uuid>, now: i64) -> Vec<job::Model> {
    let job = |it: &[Uuid]| JoinLogs { due: now, traces: it.to_vec(), ..JoinLogs::default() };
    traces.chunks(MAX_MERGED_TRACES).map(|it| new_job(tenant, &job(it), now, now)).collect()
}

/// Returns the jobs that join log records with spans that were held just now. The jobs of these log records wait already.
pub fn jobs_of_held_spans(tenant: Uuid, traces: Vec<Uuid>, now: i64) -> Vec<job::Model> {
    let job = |it: &[Uuid]| JoinLogs { due: now, once: it.to_vec(), ..JoinLogs::default() };
    traces.chunks(MAX_MERGED_TRACES).map(|it| new_job(tenant, &job(it), now, now)).collect()
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
    // A job that failed runs alone, so that it does not delay others again.
    let merged = match row.attempts {
        0 | 1 => merge_waiting(&app.db, row, MAX_MERGED_JOBS, |it| job.merge_due(it, now)).await?,
        _ => None,
    };
    let job = merged.unwrap_or(job);
    let Some(known) = app.access_cache.tenant(tenant).await? else { return Ok(()) };
    let plan = known.plan.parse().map_err(anyhow::Error::from)?;
    let embeds_spans = app.embedder.embeds(tenant, plan).await?;
    let joins = LogJoins::new(app.access_cache.price_book(tenant).await?, now);
    let traces: BTreeSet<Uuid> = job.traces.iter().copied().collect();
    let mut ids: Vec<Uuid> =
        traces.iter().chain(&job.once).copied().collect::<BTreeSet<_>>().into_iter().collect();
    let mut waiting = Vec::new();
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
                JoinOutcome::Waiting => waiting.extend(traces.contains(&id).then_some(id)),
                JoinOutcome::NotRead => ids.push(id),
            }
        }
    }
    for (project, count) in joins.into_late_messages() {
        expiry::reject_late_messages(app, (tenant, project), count).await;
    }
    if waiting.is_empty() {
        return Ok(());
    }
    // The log records are removed after an hour, and the job ends.
    let delay = 1_u64.checked_shl(job.attempts).unwrap_or(u64::MAX).min(MAX_BACKOFF.as_secs());
    let due = now + i64::try_from(delay).unwrap_or_default() * SECOND_MICROS;
    let attempts = job.attempts.saturating_add(1);
    let later = JoinLogs { due, attempts, traces: waiting, once: Vec::new() };
    queue::enqueue(&app.db.write, tenant, &later, due, now).await?;
    Ok(())
}

impl JoinLogs {
    /// Returns how many of these payloads are merged, counted from the first, and the merged job.
    fn merge_due(&self, payloads: &[String], now: i64) -> (usize, Self) {
        let (mut merged, mut attempts) = (0, self.attempts);
        let (mut traces, mut once) = (self.traces.clone(), self.once.clone());
        for payload in payloads {
            // A job that cannot be read fails alone.
            let Ok(other) = serde_json::from_str::<Self>(payload) else { break };
            let count = traces.len() + once.len() + other.traces.len() + other.once.len();
            if other.due > now || count > MAX_MERGED_TRACES {
                break;
            }
            // A job of held spans says nothing about how long log records have waited.
            if !other.traces.is_empty() {
                attempts = if traces.is_empty() { other.attempts } else { attempts.min(other.attempts) };
            }
            traces.extend(other.traces);
            once.extend(other.once);
            merged += 1;
        }
        (merged, Self { due: self.due, attempts, traces, once })
    }
}
