//! Embeds spans in the background.
//!
//! A commit enqueues, in its own transaction, one job for all spans of a tenant that uses embedding.
//! The jobs of one second become due together, and the first one merges the others into itself, so that
//! many small commits result in full requests. No transaction is open while the provider is awaited. A
//! job may run any number of times: spans that have a vector are skipped. While the provider fails, its
//! jobs wait in the queue only. A tenant with a slow provider occupies a limited number of workers for
//! a limited time.

use std::{
    collections::{BTreeMap, HashSet},
    ops::RangeInclusive,
    sync::Arc,
    time::Duration,
};

use entities::job;
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::traces::TraceChunk;
use uuid::Uuid;

use crate::{
    app::App,
    error::Result,
    pools,
    span_embedding::embedding_run::{EmbeddingRun, RunEnd, SpanPosition},
};

/// Spans of several traces to embed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedSpans {
    /// Time in microseconds before which stored spans are skipped, so that a growing trace is not read
    /// from its beginning each time.
    pub since: i64,
    /// Approximate number of spans.
    pub spans: usize,
    /// The traces.
    pub traces: Vec<Uuid>,
    /// The position within the first trace at which an earlier job stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<SpanPosition>,
}

impl Job for EmbedSpans {
    const KIND: &'static str = "embed_spans";
    const POOL: &'static WorkerPool = &pools::EMBEDDING_POOL;
}

/// A second, in microseconds.
const SECOND: i64 = 1_000_000;
/// Number of spans at which a job merges no further jobs.
pub const FULL_JOB_SPANS: usize = 1_024;
/// Range of the number of jobs that are read to be merged.
const MERGED_JOBS: RangeInclusive<usize> = 64..=FULL_JOB_SPANS;
/// Maximum number of workers of a process that embed for one tenant.
const MAX_WORKERS_PER_TENANT: usize = 2;
/// Timeout of a request: a model without a GPU may be slow.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the jobs for chunks stored at `now`: one per tenant, or several of a bounded size.
pub fn jobs<'a>(parts: impl Iterator<Item = &'a TraceChunk>, now: i64) -> Vec<job::Model> {
    let mut by_tenant: BTreeMap<Uuid, Vec<EmbedSpans>> = BTreeMap::new();
    for part in parts {
        let with_text = || part.spans.iter().filter(|it| it.body_id.is_some());
        let Some(since) = with_text().map(|it| it.created_at).min() else { continue };
        let (spans, traces) = (with_text().count(), vec![part.trace.id]);
        let more = EmbedSpans { since, spans, traces, after: None };
        let jobs = by_tenant.entry(part.trace.tenant_id).or_default();
        match jobs.last_mut().filter(|it| it.spans + spans <= FULL_JOB_SPANS) {
            Some(last) => last.add(more),
            None => jobs.push(more),
        }
    }
    // Jobs of the same second become due together.
    let due = (now.div_euclid(SECOND) + 1) * SECOND;
    let jobs = by_tenant.iter().flat_map(|(tenant, jobs)| jobs.iter().map(move |it| (*tenant, it)));
    jobs.map(|(tenant, job)| new_job(tenant, job, due, now)).collect()
}

impl EmbedSpans {
    fn add(&mut self, other: Self) {
        self.since = self.since.min(other.since);
        self.spans += other.spans;
        self.traces.extend(other.traces);
    }
}

// Embeds the spans of this job and of the waiting jobs that it merges.
impl RunJob<App> for EmbedSpans {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match work(app, row, self).await {
            Ok(outcome) => outcome,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn work(app: &App, row: &job::Model, job: EmbedSpans) -> Result<JobResult> {
    let (tenant, embedder) = (row.tenant_id, &app.embedder);
    let Some(known) = app.access_cache.tenant(tenant).await? else { return Ok(JobResult::Done) };
    let plan = known.plan.parse().map_err(anyhow::Error::from)?;
    // The plan may have been lowered, or the credential deleted.
    let Some(selected) = embedder.select(tenant, plan).await? else { return Ok(JobResult::Done) };
    let Some(_permit) = embedder.concurrency.take(&tenant, MAX_WORKERS_PER_TENANT) else {
        return Ok(JobResult::Snooze { until: app.clock.now() + SECOND });
    };
    let job = merge_waiting_jobs(app, row, job).await?;
    if let Err(open_breaker) = embedder.breakers.admit(&selected.account, app.clock.now(), REQUEST_TIMEOUT) {
        return Ok(JobResult::Snooze { until: open_breaker.until });
    }
    let (end, provider_works) = EmbeddingRun::new(app, tenant, &selected).run(job).await?;
    if provider_works
        && !matches!(end, RunEnd::Failed(_))
        && embedder.breakers.record_success(&selected.account)
    {
        tracing::info!(%tenant, "the embedding provider works again");
    }
    let failure = match end {
        RunEnd::Done => return Ok(JobResult::Done),
        RunEnd::Later(rest) => {
            // If the process stops here, both jobs run, and the second finds less to do.
            let now = app.clock.now();
            queue::enqueue(&app.db.write, tenant, &rest, now, now).await?;
            return Ok(JobResult::Done);
        }
        RunEnd::Stopping => return Ok(JobResult::Snooze { until: app.clock.now() }),
        RunEnd::Failed(failure) => failure,
    };
    let (now, why) = (app.clock.now(), failure.to_string());
    // No failure is tolerated, so there is always a cool-down.
    let cool_down = embedder.breakers.record_failure(selected.account, failure.cool_down(), &why, now);
    let (until, is_first) = cool_down.unwrap_or((now + SECOND, false));
    if is_first {
        tracing::warn!(%tenant, model = selected.endpoint.model, why, "the embedding provider fails; spans wait for it");
    }
    Ok(JobResult::Snooze { until })
}

/// Merges waiting jobs into this one until it is large enough.
async fn merge_waiting_jobs(app: &App, row: &job::Model, job: EmbedSpans) -> Result<EmbedSpans> {
    if job.spans >= FULL_JOB_SPANS || job.after.is_some() {
        return Ok(job);
    }
    // Waiting jobs are usually of similar sizes; more than twice as many as fit are not read.
    let similar = 2 * FULL_JOB_SPANS / job.spans.max(1);
    let limit = similar.clamp(*MERGED_JOBS.start(), *MERGED_JOBS.end());
    let merged = queue::merge_waiting(&app.db, row, u64::try_from(limit).unwrap_or(u64::MAX), |others| {
        let mut all = job.clone();
        let mut merged_count = 0;
        for other in others {
            // An unparsable job is not merged: it fails in its own run.
            let Ok(other) = serde_json::from_str::<EmbedSpans>(other) else { break };
            if all.spans + other.spans > FULL_JOB_SPANS || other.after.is_some() {
                break;
            }
            all.add(other);
            merged_count += 1;
        }
        // In order of arrival, in which vectors are stored.
        let mut known = HashSet::with_capacity(all.traces.len());
        all.traces.retain(|it| known.insert(*it));
        (merged_count, all)
    });
    Ok(merged.await?.unwrap_or(job))
}
