//! Completes the deletion of traces.
//!
//! A long trace is deleted in several transactions. If the request is cancelled or the process dies
//! between two of them, the job inserted by the first one deletes the rest.

use std::sync::Arc;

use entities::{audit_record, job, trace};
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::{DbError, derived_id, traces};
use uuid::Uuid;

use crate::{
    access::Caller,
    app::App,
    audit::{self, AuditAction, AuditEvent},
    feature::Feature,
    pools,
};

/// A trace was deleted.
pub const TRACE_DELETE: AuditAction = AuditAction::new("trace.delete", "trace");

/// Removal of traces.
pub const FEATURE: Feature =
    Feature { jobs: |registry| registry.register::<TraceRemoval>(), ..Feature::NONE };

/// A trace that is partly deleted.
#[derive(Debug, Serialize, Deserialize)]
pub struct TraceRemoval {
    /// The trace.
    pub trace: Uuid,
    /// Time of storage, microseconds: a trace stored later under the same ID is kept.
    pub created_at: i64,
}

impl Job for TraceRemoval {
    const KIND: &'static str = "trace_removal";
    const POOL: &'static WorkerPool = &pools::HOUSEKEEPING_POOL;
}

/// Time in microseconds that the request has to complete the deletion itself.
const REQUEST_DEADLINE_MICROS: i64 = 60_000_000;

/// Returns the job that deletes the rest.
pub fn job(tenant: Uuid, trace: &trace::Model, now: i64) -> job::Model {
    let payload = TraceRemoval { trace: trace.id, created_at: trace.created_at };
    let mut job = new_job(tenant, &payload, now + REQUEST_DEADLINE_MICROS, now);
    job.id = derived_id(trace.id, &format!("removal:{}", trace.created_at));
    job
}

/// Deletes a trace with its dependent rows, and records the actor. Returns false if it does not exist.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn remove(app: &App, caller: &Caller, trace: Uuid) -> Result<bool, DbError> {
    let record = audit::executed_record(caller, AuditEvent::of(TRACE_DELETE).on(trace), app.clock.now());
    remove_if(app, caller.tenant_id, trace, |_| true, Some(record)).await
}

// Deletes the remaining rows of a trace.
impl RunJob<App> for TraceRemoval {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match remove_if(app, row.tenant_id, self.trace, |row| row.created_at == self.created_at, None).await {
            Ok(_) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

async fn remove_if(
    app: &App,
    tenant: Uuid,
    trace: Uuid,
    is_expected: impl Fn(&trace::Model) -> bool,
    mut record: Option<audit_record::Model>,
) -> Result<bool, DbError> {
    let mut has_deleted = false;
    loop {
        let now = app.clock.now();
        let removal = traces::remove(
            &app.db,
            tenant,
            &[trace],
            &is_expected,
            record.take(),
            |row| job(tenant, row, now),
            now,
        )
        .await?;
        if !removal.more {
            return Ok(has_deleted || removal.traces > 0);
        }
        has_deleted = true;
    }
}
