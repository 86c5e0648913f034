//! The job that records the failures of stored spans.
//!
//! A commit enqueues it, in its own transaction, for each tenant with failing spans. It may run any number of times:
//! failures that are stored are skipped.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use entities::{job, trace};
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use semantics::failure::classify_message;
use serde::{Deserialize, Serialize};
use store::{
    failures::failing_spans,
    traces::{self, TraceChunk, failure_of},
};
use uuid::Uuid;

use super::recorder::{self, NewFailure};
use crate::{app::App, error::Result, pools};

/// Failing spans of one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFailures {
    /// The traces with their failing spans.
    pub traces: Vec<FailingTrace>,
}

/// The failing spans of a trace that arrived together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingTrace {
    /// The trace.
    pub id: Uuid,
    /// The spans; empty if the trace has no spans and an error of its own.
    pub spans: Vec<Uuid>,
}

impl Job for RecordFailures {
    const KIND: &'static str = "record_failures";
    const POOL: &'static WorkerPool = &pools::FAILURES_POOL;
    // A failure is never lost because its job failed.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// Number of failures at which a job merges no further jobs. Their messages may have 64 KiB each.
const FULL_JOB_FAILURES: usize = 250;
/// Maximum number of jobs merged at once.
const MAX_MERGED_JOBS: u64 = 256;

/// Returns the jobs for chunks stored at `now`: none for tenants without failing spans, otherwise one, or several of a
/// bounded size.
pub fn jobs<'a>(chunks: impl Iterator<Item = &'a TraceChunk>, now: i64) -> Vec<job::Model> {
    let mut by_tenant: BTreeMap<Uuid, Vec<RecordFailures>> = BTreeMap::new();
    for chunk in chunks {
        let trace = &chunk.trace;
        let mut failing = chunk.spans.iter().filter(|it| it.failure.is_some()).map(|it| it.id).peekable();
        let has_own_error = chunk.spans.is_empty() && trace.error.is_some();
        if !has_own_error && failing.peek().is_none() {
            continue;
        }
        let jobs = by_tenant.entry(trace.tenant_id).or_default();
        loop {
            if jobs.last().is_none_or(|it| it.len() >= FULL_JOB_FAILURES) {
                jobs.push(RecordFailures::default());
            }
            let Some(job) = jobs.last_mut() else { break };
            let spans = failing.by_ref().take(FULL_JOB_FAILURES - job.len()).collect();
            job.traces.push(FailingTrace { id: trace.id, spans });
            if failing.peek().is_none() {
                break;
            }
        }
    }
    let jobs = by_tenant.iter().flat_map(|(tenant, jobs)| jobs.iter().map(move |it| (*tenant, it)));
    jobs.map(|(tenant, job)| new_job(tenant, job, now, now)).collect()
}

impl RecordFailures {
    /// Returns the number of failures, at least one for each trace.
    fn len(&self) -> usize {
        self.traces.iter().map(|it| it.spans.len().max(1)).sum()
    }
}

// Records the failures of a job, and of others that wait beside it.
impl RunJob<App> for RecordFailures {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match work(app, row, self).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn work(app: &App, row: &job::Model, job: RecordFailures) -> Result<()> {
    let job = merge_waiting_jobs(app, row, job).await?;
    let tenant = row.tenant_id;
    let ids: BTreeSet<Uuid> = job.traces.iter().map(|it| it.id).collect();
    let ids: Vec<Uuid> = ids.into_iter().collect();
    // Traces are read before spans: a trace that is removed and stored again in between has another time of
    // storage.
    let traces = traces::some(app.db.current(), tenant, &ids).await?;
    let traces: HashMap<Uuid, trace::Model> = traces.into_iter().map(|it| (it.id, it)).collect();
    let spans: BTreeSet<(Uuid, Uuid)> =
        job.traces.iter().flat_map(|trace| trace.spans.iter().map(|it| (trace.id, *it))).collect();
    let spans: Vec<(Uuid, Uuid)> = spans.into_iter().collect();
    let mut failures: Vec<NewFailure> = Vec::with_capacity(job.len());
    for span in failing_spans(&app.db, tenant, &spans).await? {
        let Some(failure_type) = failure_of(span.failure) else { continue };
        failures.push(NewFailure {
            trace_id: span.trace_id,
            span_id: span.id,
            failure_type,
            evaluation_id: None,
            message: span.error.unwrap_or_default(),
            model: span.model,
            span_name: span.name,
            created_at: span.created_at,
        });
    }
    let bare: BTreeSet<Uuid> = job.traces.iter().filter(|it| it.spans.is_empty()).map(|it| it.id).collect();
    failures.extend(bare.iter().filter_map(|it| own_failure(traces.get(it)?)));
    recorder::record(app, tenant, &traces, failures).await?;
    Ok(())
}

/// Returns the failure of a trace without spans.
fn own_failure(trace: &trace::Model) -> Option<NewFailure> {
    let message = trace.error.clone().filter(|_| trace.span_count == 0)?;
    Some(NewFailure {
        trace_id: trace.id,
        span_id: Uuid::nil(),
        failure_type: classify_message(&message),
        evaluation_id: None,
        message,
        model: trace.model.clone(),
        span_name: trace.name.clone().unwrap_or_default(),
        created_at: trace.created_at,
    })
}

/// Merges waiting jobs into this one until it is large enough.
async fn merge_waiting_jobs(app: &App, row: &job::Model, job: RecordFailures) -> Result<RecordFailures> {
    if job.len() >= FULL_JOB_FAILURES {
        return Ok(job);
    }
    let merged = queue::merge_waiting(&app.db, row, MAX_MERGED_JOBS, |others| {
        let (mut all, mut merged_count) = (job.clone(), 0);
        for other in others {
            // An unparsable job is left to its own attempt.
            let Ok(other) = serde_json::from_str::<RecordFailures>(other) else { break };
            if all.len() + other.len() > FULL_JOB_FAILURES {
                break;
            }
            all.traces.extend(other.traces);
            merged_count += 1;
        }
        (merged_count, all)
    });
    Ok(merged.await?.unwrap_or(job))
}
