//! Claims: a worker leases due jobs, extends its leases, and ends or releases the jobs.

use entities::job;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QueryFilter, Statement, Value,
};
use store::Db;
use uuid::Uuid;

use crate::{
    job::{Job, JobResult},
    pool::WorkerPool,
};

/// Duration of a claim without a heartbeat, in microseconds.
pub const LEASE_MICROS: i64 = 30_000_000;

/// Delay before the first retry in microseconds; each further retry doubles it.
const MIN_RETRY_DELAY_MICROS: i64 = 1_000_000;
/// Maximum delay before a retry, in microseconds.
const MAX_RETRY_DELAY_MICROS: i64 = 3_600_000_000;

/// Returns up to `limit` tenants with due jobs in `pool`, without those in `busy`.
///
/// They are ordered by ID, beginning after `last`, the tenant whose jobs were claimed last: a tenant with
/// many jobs does not delay the jobs of others.
///
/// # Errors
/// Fails when the database fails.
pub async fn candidates(
    db: &Db,
    pool: &WorkerPool,
    now: i64,
    last: Uuid,
    busy: &[Uuid],
    limit: u64,
) -> Result<Vec<Uuid>, DbErr> {
    let others: String = (0..busy.len()).map(|it| format!(" AND tenant_id <> ${}", it + 5)).collect();
    // Covers all tenants, without a lock; few statements do.
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

/// Claims up to `limit` due jobs of one tenant until `now + LEASE_MICROS`.
///
/// # Errors
/// Fails when the database fails.
pub async fn claim(
    db: &Db,
    tenant: Uuid,
    pool: &WorkerPool,
    now: i64,
    limit: u64,
) -> Result<Vec<job::Model>, DbErr> {
    let sql = format!(
        // Materialized: PostgreSQL may run a plain subquery once per row. The limit would then apply to
        // each run, and all jobs would be claimed.
        "WITH due AS MATERIALIZED (SELECT id FROM job WHERE tenant_id = $2 AND lane = $3 AND status = 'ready' \
         AND run_at <= $4 ORDER BY run_at, id LIMIT $5{}) \
         UPDATE job SET status = 'running', attempts = attempts + 1, fence = fence + 1, lease_until = $1 \
         WHERE tenant_id = $2 AND id IN (SELECT id FROM due) RETURNING *",
        db.dialect.for_update_skip_locked()
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = [(now + LEASE_MICROS).into(), tenant.into(), pool.name.into(), now.into(), limit.into()];
    let rows = db.write.query_all_raw(statement(db, &sql, values)).await?;
    rows.iter().map(|it| job::Model::from_query_result(it, "")).collect()
}

/// Extends a claim. Returns false if it was lost.
///
/// # Errors
/// Fails when the database fails.
pub async fn heartbeat(db: &Db, job: &job::Model, now: i64) -> Result<bool, DbErr> {
    let sql = "UPDATE job SET lease_until = $1 WHERE tenant_id = $2 AND id = $3 AND fence = $4 AND status = 'running'";
    execute(db, sql, [(now + LEASE_MICROS).into(), job.tenant_id.into(), job.id.into(), job.fence.into()])
        .await
}

/// Stores the result of an attempt. Returns false if the claim was lost: another worker has the job, and
/// nothing was changed.
///
/// # Errors
/// Fails when the database fails.
pub async fn finish(db: &Db, job: &job::Model, outcome: &JobResult, now: i64) -> Result<bool, DbErr> {
    let claimed = "WHERE tenant_id = $1 AND id = $2 AND fence = $3 AND status = 'running'";
    let key: [Value; 3] = [job.tenant_id.into(), job.id.into(), job.fence.into()];
    let [tenant, id, fence] = key;
    match outcome {
        JobResult::Done => execute(db, &format!("DELETE FROM job {claimed}"), [tenant, id, fence]).await,
        JobResult::Snooze { until } => {
            let sql = format!(
                "UPDATE job SET status = 'ready', lease_until = NULL, attempts = attempts - 1, run_at = $4 {claimed}"
            );
            execute(db, &sql, [tenant, id, fence, (*until).into()]).await
        }
        JobResult::Retry { why } if job.attempts < job.max_attempts => {
            let sql = format!(
                "UPDATE job SET status = 'ready', lease_until = NULL, run_at = $4, last_error = $5 {claimed}"
            );
            execute(
                db,
                &sql,
                [tenant, id, fence, (now + retry_delay(job.attempts)).into(), why.as_str().into()],
            )
            .await
        }
        JobResult::Retry { why } | JobResult::Discard { why } => {
            let sql =
                format!("UPDATE job SET status = 'dead', lease_until = NULL, last_error = $4 {claimed}");
            execute(db, &sql, [tenant, id, fence, why.as_str().into()]).await
        }
    }
}

/// Releases an unfinished job, for example on shutdown. It is due immediately, and the run does not count
/// as an attempt.
///
/// # Errors
/// Fails when the database fails.
pub async fn release_claim(db: &Db, job: &job::Model, now: i64) -> Result<bool, DbErr> {
    finish(db, job, &JobResult::Snooze { until: now }, now).await
}

/// Merges waiting jobs of the same tenant and kind into a claimed one, including jobs that are not due.
///
/// `merge` gets the payloads of up to `limit` jobs, ordered by due time. It returns the number of jobs to
/// merge, counted from the first, and the merged payload. One transaction deletes these jobs and stores
/// the payload in the claimed job. Returns the merged payload, or `None` if no job waits, none is merged,
/// or the claim was lost.
///
/// # Errors
/// Fails when the database fails; nothing has changed then.
pub async fn merge_waiting<J: Job>(
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

/// Releases jobs whose lease has expired: they become ready, or dead after their last attempt. Returns
/// their number.
///
/// # Errors
/// Fails when the database fails.
pub async fn release_expired(db: &Db, now: i64) -> Result<u64, DbErr> {
    let sql = "SELECT DISTINCT tenant_id FROM job WHERE status = 'running' AND lease_until < $1 LIMIT 100";
    let tenants = db.write.query_all_raw(statement(db, sql, [now.into()])).await?;
    let mut released = 0;
    for row in tenants {
        let tenant: Uuid = row.try_get("", "tenant_id")?;
        let sql = "UPDATE job SET status = CASE WHEN attempts >= max_attempts THEN 'dead' ELSE 'ready' END, \
                   lease_until = NULL, last_error = 'the lease expired' \
                   WHERE tenant_id = $1 AND status = 'running' AND lease_until < $2";
        released +=
            db.write.execute_raw(statement(db, sql, [tenant.into(), now.into()])).await?.rows_affected();
    }
    Ok(released)
}

fn retry_delay(attempts: i32) -> i64 {
    let doublings = u32::try_from(attempts.clamp(1, 20) - 1).unwrap_or(0);
    (MIN_RETRY_DELAY_MICROS << doublings).min(MAX_RETRY_DELAY_MICROS)
}

async fn execute<const N: usize>(db: &Db, sql: &str, values: [Value; N]) -> Result<bool, DbErr> {
    Ok(db.write.execute_raw(statement(db, sql, values)).await?.rows_affected() > 0)
}

pub(crate) fn statement<const N: usize>(db: &Db, sql: &str, values: [Value; N]) -> Statement {
    Statement::from_sql_and_values(db.dialect.backend(), sql, values)
}
