//! Jobs: their kinds, rows and results, and how they are enqueued.

use entities::job;
use sea_orm::{
    ConnectionTrait, DbErr, EntityTrait,
    sea_query::{Expr, OnConflict},
};
use serde::Serialize;
use store::{insert_once, new_id};
use uuid::Uuid;

use crate::pool::WorkerPool;

/// The payload of a job kind, with the name of the kind and its worker pool.
pub trait Job: Serialize {
    /// The name in the database. It must not change after a release.
    const KIND: &'static str;
    /// The pool whose workers run it.
    const POOL: &'static WorkerPool;
    /// Number of failed attempts after which the job is dead.
    const MAX_ATTEMPTS: i32 = 10;
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobResult {
    /// The job is finished.
    Done,
    /// The attempt failed, and a retry may succeed.
    Retry {
        /// The reason, for the log and the job's row.
        why: String,
    },
    /// The job runs later; this does not count as an attempt.
    Snooze {
        /// The time of the next run, in microseconds since the epoch.
        until: i64,
    },
    /// The attempt failed, and a retry cannot succeed.
    Discard {
        /// The reason, for the log and the job's row.
        why: String,
    },
}

/// Creates the row of a job, for the caller to insert.
pub fn new_job<J: Job>(tenant_id: Uuid, payload: &J, run_at: i64, now: i64) -> job::Model {
    job::Model {
        tenant_id,
        id: new_id(),
        lane: J::POOL.name.to_owned(),
        kind: J::KIND.to_owned(),
        // A payload consists of IDs and numbers, so serializing it cannot fail.
        payload: serde_json::to_string(payload).unwrap_or_default(),
        status: "ready".to_owned(),
        run_at,
        attempts: 0,
        max_attempts: J::MAX_ATTEMPTS,
        lease_until: None,
        fence: 0,
        last_error: None,
        created_at: now,
    }
}

/// Enqueues a job in the caller's transaction.
///
/// # Errors
/// Fails when the database fails.
pub async fn enqueue<J: Job>(
    txn: &impl ConnectionTrait,
    tenant_id: Uuid,
    payload: &J,
    run_at: i64,
    now: i64,
) -> Result<(), DbErr> {
    let row: job::ActiveModel = new_job(tenant_id, payload, run_at, now).into();
    job::Entity::insert(row).exec_without_returning(txn).await?;
    Ok(())
}

/// Enqueues jobs in the caller's transaction.
///
/// # Errors
/// Fails when the database fails.
pub async fn enqueue_all(txn: &impl ConnectionTrait, jobs: Vec<job::Model>) -> Result<(), DbErr> {
    for block in jobs.chunks(500) {
        let rows = block.iter().map(|it| job::ActiveModel::from(it.clone()));
        job::Entity::insert_many(rows).exec_without_returning(txn).await?;
    }
    Ok(())
}

/// Enqueues a job with an ID chosen by its kind. Returns false if it is enqueued or running already.
///
/// # Errors
/// Fails when the database fails.
pub async fn enqueue_once(db: &impl ConnectionTrait, job: job::Model) -> Result<bool, DbErr> {
    insert_once(db, job).await
}

/// Ensures that jobs with IDs chosen by their kind run at their `run_at` or earlier, after the caller's transaction is
/// committed.
///
/// A waiting job with the same ID is moved forward if necessary, and cannot be claimed until the transaction ends. If
/// the job is running, it may have read its rows already, so another one is enqueued. Callers with overlapping jobs pass
/// them in the same order, so that none waits for the other.
///
/// # Errors
/// Fails when the database fails.
pub async fn enqueue_by(txn: &impl ConnectionTrait, jobs: Vec<job::Model>) -> Result<(), DbErr> {
    if jobs.is_empty() || upsert(txn, &jobs).await? == jobs.len() as u64 {
        return Ok(());
    }
    // Some are running. The others are in place, and remain unchanged.
    for job in jobs {
        if upsert(txn, std::slice::from_ref(&job)).await? == 0 {
            let another = job::ActiveModel::from(job::Model { id: new_id(), ..job });
            job::Entity::insert(another).exec_without_returning(txn).await?;
        }
    }
    Ok(())
}

/// Inserts jobs, or moves waiting ones with the same ID forward. Returns the number of jobs that now wait.
async fn upsert(txn: &impl ConnectionTrait, jobs: &[job::Model]) -> Result<u64, DbErr> {
    let earlier = "CASE WHEN excluded.run_at < job.run_at THEN excluded.run_at ELSE job.run_at END";
    let keep = OnConflict::columns([job::Column::TenantId, job::Column::Id])
        .value(job::Column::RunAt, Expr::cust(earlier))
        .action_and_where(Expr::cust("job.status = 'ready'"))
        .to_owned();
    let rows = jobs.iter().map(|it| job::ActiveModel::from(it.clone()));
    job::Entity::insert_many(rows).on_conflict(keep).exec_without_returning(txn).await
}
