//! One durable queue for all work that is done later. It knows no kind of work.
//!
//! A job is enqueued in the transaction that makes it necessary. A worker claims it in two
//! steps (which tenants have work, without a lock; then a few jobs of one of them, locked),
//! which is fair to tenants and is what a database distributed by tenant can do. A claim is a
//! lease with a fence: who lost the lease can no longer finish the job. What is done is
//! deleted; what failed too often stays as `dead`.
//!
//! **Invariant:** no transaction is open while a job runs.

mod concurrency;
mod depth;
mod pool;
mod registry;
pub mod worker;

use entities::job;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QueryFilter, Statement, Value,
};
use serde::Serialize;
use store::{Db, insert_once, new_id};
use uuid::Uuid;

pub use concurrency::{ConcurrencyLimits, ConcurrencyPermit};
pub use depth::{Depth, depths};
pub use pool::WorkerPool;
pub use registry::{Registry, RunJob};

/// The payload of a kind of job, with the name of the kind and its workers.
pub trait Job: Serialize {
    /// The word in the database. Never changed once released.
    const KIND: &'static str;
    /// The workers that take it.
    const POOL: &'static WorkerPool;
    /// Dead after so many attempts.
    const MAX_ATTEMPTS: i32 = 10;
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do.
    Done,
    /// Trying again may help.
    Retry {
        /// For the log and the job's row.
        why: String,
    },
    /// Not yet; this was no attempt.
    Snooze {
        /// Returns the microseconds since the epoch.
        until: i64,
    },
    /// Trying again can't help.
    Discard {
        /// For the log and the job's row.
        why: String,
    },
}

/// How long a claim lasts without a heartbeat, microseconds.
pub const LEASE: i64 = 30_000_000;

/// First pause before another attempt, doubled each time, microseconds.
const BACKOFF: i64 = 1_000_000;
/// Longest pause before another attempt, microseconds.
const BACKOFF_MAX: i64 = 3_600_000_000;

/// The row of a job, to be inserted in the caller's transaction.
pub fn new_job<J: Job>(tenant_id: Uuid, payload: &J, run_at: i64, now: i64) -> job::Model {
    job::Model {
        tenant_id,
        id: new_id(),
        lane: J::POOL.name.to_owned(),
        kind: J::KIND.to_owned(),
        // A payload is ids and numbers; it always serialises.
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
/// When the database fails.
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
/// When the database fails.
pub async fn enqueue_all(txn: &impl ConnectionTrait, jobs: Vec<job::Model>) -> Result<(), DbErr> {
    for block in jobs.chunks(500) {
        let rows = block.iter().map(|it| job::ActiveModel::from(it.clone()));
        job::Entity::insert_many(rows).exec_without_returning(txn).await?;
    }
    Ok(())
}

/// Enqueues a job whose id its kind chose; false when it waits or runs already.
///
/// # Errors
/// When the database fails.
pub async fn enqueue_once(db: &impl ConnectionTrait, job: job::Model) -> Result<bool, DbErr> {
    insert_once(db, job).await
}

/// Up to `limit` tenants with work that is due in `pool`, in a circle that begins behind
/// `last`: whoever was served last is asked last, so a tenant with much work waiting doesn't
/// keep the others from theirs. Those that are `busy` are left out.
///
/// # Errors
/// When the database fails.
pub async fn candidates(
    db: &Db,
    pool: &WorkerPool,
    now: i64,
    last: Uuid,
    busy: &[Uuid],
    limit: u64,
) -> Result<Vec<Uuid>, DbErr> {
    let others: String = (0..busy.len()).map(|it| format!(" AND tenant_id <> ${}", it + 5)).collect();
    // Over tenants, without a lock: one of the few statements that name none.
    let sql = format!(
        "SELECT tenant_id FROM job WHERE status = 'ready' AND lane = $1 AND run_at <= $2{others} \
         GROUP BY tenant_id ORDER BY (tenant_id <= $3), tenant_id LIMIT $4"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values: [Value; 4] = [pool.name.into(), now.into(), last.into(), limit.into()];
    let values = values.into_iter().chain(busy.iter().map(|it| (*it).into()));
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    let rows = db.write.query_all_raw(statement).await?;
    rows.iter().map(|it| it.try_get("", "tenant_id")).collect()
}

/// Claims up to `limit` due jobs of one tenant until `now + LEASE`.
///
/// # Errors
/// When the database fails.
pub async fn claim(
    db: &Db,
    tenant: Uuid,
    pool: &WorkerPool,
    now: i64,
    limit: u64,
) -> Result<Vec<job::Model>, DbErr> {
    let sql = format!(
        // Materialized: PostgreSQL may run a plain subquery once for each row, and then the limit
        // holds each time and all jobs are taken.
        "WITH due AS MATERIALIZED (SELECT id FROM job WHERE tenant_id = $2 AND lane = $3 AND status = 'ready' \
         AND run_at <= $4 ORDER BY run_at, id LIMIT $5{}) \
         UPDATE job SET status = 'running', attempts = attempts + 1, fence = fence + 1, lease_until = $1 \
         WHERE tenant_id = $2 AND id IN (SELECT id FROM due) RETURNING *",
        db.dialect.for_update_skip_locked()
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = [(now + LEASE).into(), tenant.into(), pool.name.into(), now.into(), limit.into()];
    let rows = db.write.query_all_raw(statement(db, &sql, values)).await?;
    rows.iter().map(|it| job::Model::from_query_result(it, "")).collect()
}

/// Prolongs a claim. False when it was lost.
///
/// # Errors
/// When the database fails.
pub async fn heartbeat(db: &Db, job: &job::Model, now: i64) -> Result<bool, DbErr> {
    let sql = "UPDATE job SET lease_until = $1 WHERE tenant_id = $2 AND id = $3 AND fence = $4 AND status = 'running'";
    changed(db, sql, [(now + LEASE).into(), job.tenant_id.into(), job.id.into(), job.fence.into()]).await
}

/// Ends an attempt. False when the claim was lost: then another worker has the job, and
/// nothing was changed.
///
/// # Errors
/// When the database fails.
pub async fn finish(db: &Db, job: &job::Model, outcome: &Outcome, now: i64) -> Result<bool, DbErr> {
    let held = "WHERE tenant_id = $1 AND id = $2 AND fence = $3 AND status = 'running'";
    let key: [Value; 3] = [job.tenant_id.into(), job.id.into(), job.fence.into()];
    let [tenant, id, fence] = key;
    match outcome {
        Outcome::Done => changed(db, &format!("DELETE FROM job {held}"), [tenant, id, fence]).await,
        Outcome::Snooze { until } => {
            let sql = format!(
                "UPDATE job SET status = 'ready', lease_until = NULL, attempts = attempts - 1, run_at = $4 {held}"
            );
            changed(db, &sql, [tenant, id, fence, (*until).into()]).await
        }
        Outcome::Retry { why } if job.attempts < job.max_attempts => {
            let sql = format!(
                "UPDATE job SET status = 'ready', lease_until = NULL, run_at = $4, last_error = $5 {held}"
            );
            changed(db, &sql, [tenant, id, fence, (now + backoff(job.attempts)).into(), why.as_str().into()])
                .await
        }
        Outcome::Retry { why } | Outcome::Discard { why } => {
            let sql = format!("UPDATE job SET status = 'dead', lease_until = NULL, last_error = $4 {held}");
            changed(db, &sql, [tenant, id, fence, why.as_str().into()]).await
        }
    }
}

/// Gives a job back unfinished, as on shutdown; it is due at once and this was no attempt.
///
/// # Errors
/// When the database fails.
pub async fn give_back(db: &Db, job: &job::Model, now: i64) -> Result<bool, DbErr> {
    finish(db, job, &Outcome::Snooze { until: now }, now).await
}

/// Takes other waiting jobs of the same tenant and kind into a claimed one, whenever they are due.
///
/// `merge` is given the payloads of up to `limit` of them in the order in which they are due, and
/// answers how many it takes, from the first on, and the payload of all together. Theirs are gone
/// with the transaction that changes this one's. Answers the new payload; none when nothing waits,
/// nothing is taken, or the claim was lost.
///
/// # Errors
/// When the database fails; nothing has changed then.
pub async fn take_in<J: Job>(
    db: &Db,
    job: &job::Model,
    limit: u64,
    merge: impl FnOnce(&[String]) -> (usize, J),
) -> Result<Option<J>, DbErr> {
    let txn = db.begin().await?;
    let sql = format!(
        "SELECT id, payload FROM job WHERE tenant_id = $1 AND lane = $2 AND status = 'ready' AND kind = $3 \
         ORDER BY run_at, id LIMIT $4{}",
        db.dialect.for_update_skip_locked()
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = [job.tenant_id.into(), J::POOL.name.into(), J::KIND.into(), limit.into()];
    let rows = txn.query_all_raw(statement(db, &sql, values)).await?;
    let ids: Vec<Uuid> = rows.iter().map(|it| it.try_get("", "id")).collect::<Result<_, _>>()?;
    let payloads: Vec<String> = rows.iter().map(|it| it.try_get("", "payload")).collect::<Result<_, _>>()?;
    let (taken, merged) = merge(&payloads);
    if taken == 0 {
        txn.rollback().await?;
        return Ok(None);
    }
    let sql =
        "UPDATE job SET payload = $1 WHERE tenant_id = $2 AND id = $3 AND fence = $4 AND status = 'running'";
    let payload = serde_json::to_string(&merged).unwrap_or_default();
    let values = [payload.into(), job.tenant_id.into(), job.id.into(), job.fence.into()];
    if txn.execute_raw(statement(db, sql, values)).await?.rows_affected() == 0 {
        txn.rollback().await?;
        return Ok(None);
    }
    job::Entity::delete_many()
        .filter(job::Column::TenantId.eq(job.tenant_id))
        .filter(job::Column::Id.is_in(ids.into_iter().take(taken)))
        .exec(&txn)
        .await?;
    txn.commit().await?;
    Ok(Some(merged))
}

/// Makes jobs whose worker is gone ready again, or dead when that was the last attempt.
/// Answers how many.
///
/// # Errors
/// When the database fails.
pub async fn rescue(db: &Db, now: i64) -> Result<u64, DbErr> {
    let sql = "SELECT DISTINCT tenant_id FROM job WHERE status = 'running' AND lease_until < $1 LIMIT 100";
    let tenants = db.write.query_all_raw(statement(db, sql, [now.into()])).await?;
    let mut rescued = 0;
    for row in tenants {
        let tenant: Uuid = row.try_get("", "tenant_id")?;
        let sql = "UPDATE job SET status = CASE WHEN attempts >= max_attempts THEN 'dead' ELSE 'ready' END, \
                   lease_until = NULL, last_error = 'its worker did not come back' \
                   WHERE tenant_id = $1 AND status = 'running' AND lease_until < $2";
        rescued +=
            db.write.execute_raw(statement(db, sql, [tenant.into(), now.into()])).await?.rows_affected();
    }
    Ok(rescued)
}

fn backoff(attempts: i32) -> i64 {
    let doublings = u32::try_from(attempts.clamp(1, 20) - 1).unwrap_or(0);
    (BACKOFF << doublings).min(BACKOFF_MAX)
}

async fn changed<const N: usize>(db: &Db, sql: &str, values: [Value; N]) -> Result<bool, DbErr> {
    Ok(db.write.execute_raw(statement(db, sql, values)).await?.rows_affected() > 0)
}

fn statement<const N: usize>(db: &Db, sql: &str, values: [Value; N]) -> Statement {
    Statement::from_sql_and_values(db.dialect.backend(), sql, values)
}
