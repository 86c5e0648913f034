//! Retention: deletes traces of projects with a limited retention.
//!
//! Finding the projects with old traces is cheap and done every few minutes. Deleting is a job per
//! project, in small batches between which other writers can commit.

use std::sync::Arc;

use entities::job;
use futures::future::BoxFuture;
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::{DbError, derived_id, projects, traces};
use uuid::Uuid;

use crate::{
    app::App,
    feature::{Feature, HousekeepingTask},
    pools, trace_removal,
};

/// Retention of traces.
pub const FEATURE: Feature = Feature {
    jobs: |registry| registry.register::<DeleteOldTraces>(),
    housekeeping: &[&OldTraces],
    ..Feature::NONE
};

/// Deletes the old traces of a project.
#[derive(Debug, Serialize, Deserialize)]
pub struct DeleteOldTraces {
    /// The project.
    pub project: Uuid,
}

impl Job for DeleteOldTraces {
    const KIND: &'static str = "retention";
    const POOL: &'static WorkerPool = &pools::HOUSEKEEPING_POOL;
}

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;
/// Number of traces deleted in one transaction.
const TRACES_PER_TRANSACTION: u64 = 100;
/// Number of batches after which the job is continued later, so that other projects are served.
const BATCHES_PER_RUN: usize = 50;

/// Traces that are older than the retention period of their project. Deleting them may take long, so a job does
/// it.
struct OldTraces;

impl HousekeepingTask for OldTraces {
    fn next_tenant<'a>(&'a self, app: &'a App, last: Uuid) -> BoxFuture<'a, Result<Option<Uuid>, DbError>> {
        Box::pin(projects::next_tenant_with_retention(&app.db, last))
    }

    fn run<'a>(&'a self, app: &'a App, tenant: Uuid) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(enqueue_jobs(app, tenant))
    }
}

/// Enqueues a job for each project of the tenant with old traces.
async fn enqueue_jobs(app: &App, tenant: Uuid) -> Result<(), DbError> {
    let now = app.clock.now();
    for project in projects::with_retention(app.db.current(), tenant).await? {
        let Some(before) = cutoff(&project, now) else { continue };
        let old = traces::started_before(&app.db, tenant, project.id, before, 1).await?;
        if !old.is_empty() {
            queue::enqueue_once(&app.db.write, job(tenant, project.id, now)).await?;
        }
    }
    Ok(())
}

// Deletes old traces batch by batch, up to the number of batches of one run.
impl RunJob<App> for DeleteOldTraces {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match delete_batches(app, row.tenant_id, self.project).await {
            Ok(true) => JobResult::Snooze { until: app.clock.now() },
            Ok(false) => JobResult::Done,
            Err(error) => JobResult::Retry { why: error.to_string() },
        }
    }
}

/// Deletes one series of batches; returns true when there are more.
async fn delete_batches(app: &App, tenant: Uuid, project: Uuid) -> Result<bool, DbError> {
    let row = projects::get(app.db.current(), tenant, project).await?;
    // The retention may have been removed meanwhile.
    let Some(before) = row.and_then(|it| cutoff(&it, app.clock.now())) else { return Ok(false) };
    for _ in 0..BATCHES_PER_RUN {
        if app.is_stopping() {
            return Ok(true);
        }
        let old = traces::started_before(&app.db, tenant, project, before, TRACES_PER_TRANSACTION).await?;
        if old.is_empty() {
            return Ok(false);
        }
        // A late span may have moved a trace's start.
        let is_expired = |it: &entities::trace::Model| it.project_id == project && it.started_at < before;
        let now = app.clock.now();
        let continuation = |row: &entities::trace::Model| trace_removal::job(tenant, row, now);
        traces::remove(&app.db, tenant, &old, is_expired, None, continuation, now).await?;
    }
    Ok(true)
}

/// Returns the start time before which traces are deleted, in microseconds; `None` when all are kept.
fn cutoff(project: &entities::project::Model, now: i64) -> Option<i64> {
    project.retention_days.map(|days| now.saturating_sub(i64::from(days) * DAY))
}

/// Returns the job of a project. Its ID changes each hour, so that a dead job does not block the next one.
fn job(tenant: Uuid, project: Uuid, now: i64) -> job::Model {
    let mut job = new_job(tenant, &DeleteOldTraces { project }, now, now);
    job.id = derived_id(project, &format!("retention:{}", now.div_euclid(HOUR)));
    job
}
