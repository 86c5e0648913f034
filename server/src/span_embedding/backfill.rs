//! Embeds existing spans when an embedding provider is configured.
//!
//! A tenant that stores a credential with an embedding model expects to find existing spans. The newest
//! ones are embedded, up to a limit, because the tenant pays for them.

use std::sync::Arc;

use entities::job;
use queue::{Job, JobResult, RunJob, WorkerPool};
use serde::{Deserialize, Serialize};
use store::{DbError, traces};
use uuid::Uuid;

use crate::{
    app::App,
    pools,
    span_embedding::embed_spans::{EmbedSpans, FULL_JOB_SPANS},
};

/// The newest spans of a tenant are to be embedded.
#[derive(Debug, Serialize, Deserialize)]
pub struct Backfill {}

impl Job for Backfill {
    const KIND: &'static str = "embed_backfill";
    const POOL: &'static WorkerPool = &pools::EMBEDDING_POOL;
}

/// Maximum number of spans, of the newest traces first.
const MAX_SPANS: usize = 20_000;
/// Maximum number of traces.
const MAX_TRACES: usize = 20_000;

// Enqueues the jobs that embed the newest traces.
impl RunJob<App> for Backfill {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match enqueue(app, row.tenant_id).await {
            Ok(()) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn enqueue(app: &App, tenant: Uuid) -> Result<(), DbError> {
    let now = app.clock.now();
    let newest = traces::newest(&app.db.primary(), tenant, MAX_TRACES).await?;
    let txn = app.db.begin().await?;
    let (mut left, mut job) = (MAX_SPANS, EmbedSpans::default());
    for (trace, spans) in newest {
        let spans = usize::try_from(spans).unwrap_or_default();
        // A trace that exceeds the limit alone must not exclude the others.
        let Some(rest) = left.checked_sub(spans) else { continue };
        left = rest;
        job.spans += spans;
        job.traces.push(trace);
        if job.spans >= FULL_JOB_SPANS {
            queue::enqueue(&txn, tenant, &std::mem::take(&mut job), now, now).await?;
        }
    }
    if !job.traces.is_empty() {
        queue::enqueue(&txn, tenant, &job, now, now).await?;
    }
    txn.commit().await
}
