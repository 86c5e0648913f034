//! The list of job kinds: which function does which work.

use std::sync::Arc;

use entities::job;

use crate::{
    app::App,
    embedding::{
        backfill::{self, Backfill},
        spans::{self, EmbedSpans},
    },
    evals::{
        by_judge::{self, EvaluateByJudge},
        by_rule::{self, EvaluateByRule},
        fill::{self, FillBulk},
        forget::{self, ForgetRule},
    },
    long_trace::{self, LongTrace},
    queue::{Job, Outcome},
    retention::{self, Retention},
    trace_ready::{self, TraceReady},
    trace_removal::{self, TraceRemoval},
};

/// Does a job's work.
pub async fn run(app: &Arc<App>, job: &job::Model) -> Outcome {
    let unreadable =
        |error: serde_json::Error| Outcome::Discard { why: format!("unreadable payload: {error}") };
    match job.kind.as_str() {
        TraceReady::KIND => match serde_json::from_str(&job.payload) {
            Ok(payload) => trace_ready::run(app, job.tenant_id, payload).await,
            Err(error) => unreadable(error),
        },
        LongTrace::KIND => match serde_json::from_str(&job.payload) {
            Ok(payload) => long_trace::run(app, job.tenant_id, payload).await,
            Err(error) => unreadable(error),
        },
        TraceRemoval::KIND => match serde_json::from_str(&job.payload) {
            Ok(payload) => trace_removal::run(app, job.tenant_id, payload).await,
            Err(error) => unreadable(error),
        },
        EmbedSpans::KIND => match serde_json::from_str(&job.payload) {
            Ok(payload) => spans::run(app, job, payload).await,
            Err(error) => unreadable(error),
        },
        EvaluateByRule::KIND => match serde_json::from_str(&job.payload) {
            // Boxed, because the future of this job would enlarge the futures of all jobs.
            Ok(payload) => Box::pin(by_rule::run(app, job.tenant_id, payload)).await,
            Err(error) => unreadable(error),
        },
        EvaluateByJudge::KIND => match serde_json::from_str(&job.payload) {
            Ok(payload) => by_judge::run(app, job.tenant_id, payload).await,
            Err(error) => unreadable(error),
        },
        FillBulk::KIND => match serde_json::from_str(&job.payload) {
            Ok(payload) => fill::run(app, job.tenant_id, payload).await,
            Err(error) => unreadable(error),
        },
        ForgetRule::KIND => match serde_json::from_str(&job.payload) {
            Ok(payload) => forget::run(app, job.tenant_id, payload).await,
            Err(error) => unreadable(error),
        },
        Backfill::KIND => backfill::run(app, job.tenant_id).await,
        Retention::KIND => match serde_json::from_str(&job.payload) {
            Ok(payload) => retention::run(app, job.tenant_id, payload).await,
            Err(error) => unreadable(error),
        },
        // From a newer version that shares the database: it will come back for it.
        kind => {
            tracing::warn!(kind, "a job of an unknown kind is left for a newer version");
            Outcome::Snooze { until: app.clock.now() + 60_000_000 }
        }
    }
}
