//! Spans from before there was somebody to embed them.
//!
//! Whoever stores a credential with an embedding model expects to find what is there already. The
//! newest spans are embedded then, and no more than so many, because somebody pays for it.

use std::sync::Arc;

use entities::job;
use queue::{Job, Outcome, RunJob, WorkerPool};
use serde::{Deserialize, Serialize};
use store::{DbError, traces};
use uuid::Uuid;

use crate::{
    app::App,
    pools,
    span_embedding::spans::{ENOUGH, EmbedSpans},
};

/// The newest spans of a tenant are to be embedded.
#[derive(Debug, Serialize, Deserialize)]
pub struct Backfill {}

impl Job for Backfill {
    const KIND: &'static str = "embed_backfill";
    const POOL: &'static WorkerPool = &pools::EMBEDDING;
}

/// Spans that are looked at, the newest traces first.
const SPANS: usize = 20_000;
/// Traces that are looked at.
const TRACES: u64 = 20_000;

// Enqueues what the newest traces need.
impl RunJob<App> for Backfill {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> Outcome {
        match enqueue(app, row.tenant_id).await {
            Ok(()) => Outcome::Done,
            Err(error) => Outcome::Retry { why: error.to_string() },
        }
    }
}

async fn enqueue(app: &App, tenant: Uuid) -> Result<(), DbError> {
    let now = app.clock.now();
    let newest = traces::newest(&app.db.primary(), tenant, TRACES).await?;
    let txn = app.db.begin().await?;
    let (mut left, mut job) = (SPANS, EmbedSpans::default());
    for (trace, spans) in newest {
        let spans = usize::try_from(spans).unwrap_or_default();
        // One that is too long alone must not keep the others from theirs.
        let Some(rest) = left.checked_sub(spans) else { continue };
        left = rest;
        job.spans += spans;
        job.traces.push(trace);
        if job.spans >= ENOUGH {
            queue::enqueue(&txn, tenant, &std::mem::take(&mut job), now, now).await?;
        }
    }
    if !job.traces.is_empty() {
        queue::enqueue(&txn, tenant, &job, now, now).await?;
    }
    txn.commit().await
}
