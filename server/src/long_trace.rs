//! Long traces: a job updates their rows within seconds, at most once per second.
//!
//! A trace's row is computed from all of its spans. Computing it in every transaction that adds a span would cost
//! the square of a long trace's length. From [`LONG_TRACE_SPANS`](store::traces::LONG_TRACE_SPANS) spans on, one job
//! computes it for all commits of a second.

use std::sync::Arc;

use entities::job;
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::{derived_id, traces};
use uuid::Uuid;

use crate::{app::App, feature::Feature, pools};

/// Roll-ups of long traces.
pub const FEATURE: Feature = Feature { jobs: |registry| registry.register::<LongTrace>(), ..Feature::NONE };

/// A long trace with new spans.
#[derive(Debug, Serialize, Deserialize)]
pub struct LongTrace {
    /// The trace.
    pub trace: Uuid,
}

impl Job for LongTrace {
    const KIND: &'static str = "long_trace";
    const POOL: &'static WorkerPool = &pools::SUMS_POOL;
}

/// A second, in microseconds.
const SECOND: i64 = 1_000_000;

/// Returns the job for spans committed at `now`. It has one ID for that second, and runs when the
/// transactions of that second have ended, so that it sees their spans.
pub fn job(tenant: Uuid, trace: Uuid, now: i64) -> job::Model {
    let second = now.div_euclid(SECOND);
    let mut job = new_job(tenant, &LongTrace { trace }, (second + 3) * SECOND, now);
    job.id = derived_id(trace, &format!("long:{second}"));
    job
}

// Computes the trace's row again, unless the row includes all spans already.
impl RunJob<App> for LongTrace {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match traces::sum_up_long(&app.db, app.rules.as_ref(), row.tenant_id, self.trace, app.clock.now())
            .await
        {
            Ok(changed) => {
                if changed {
                    // There may be no subscribers.
                    _ = app.changed_tenants.send(row.tenant_id);
                }
                JobResult::Done
            }
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}
