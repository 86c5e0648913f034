//! The numbers of waiting, running and dead jobs, for the operator.

use sea_orm::{ConnectionTrait, DbErr, Value};
use store::Db;

use crate::{claim::statement, pool::WorkerPool};

/// The job counts of a pool over all tenants. No count exceeds `MAX_COUNT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// The pool.
    pub pool: &'static WorkerPool,
    /// Jobs that are due.
    pub due: i64,
    /// Due time of the oldest due job, in microseconds since the epoch.
    pub oldest: Option<i64>,
    /// Jobs that are claimed.
    pub running: i64,
    /// Jobs that failed permanently.
    pub dead: i64,
}

/// Number at which counting stops, to bound the cost.
const MAX_COUNT: i64 = 100_000;

/// Counts the jobs of each pool.
///
/// # Errors
/// Fails when the database fails.
pub async fn depths(db: &Db, pools: &[&'static WorkerPool], now: i64) -> Result<Vec<Depth>, DbErr> {
    let mut depths = Vec::with_capacity(pools.len());
    for &pool in pools {
        let (due, oldest) = count(db, pool, "ready", Some(now)).await?;
        let (running, _) = count(db, pool, "running", None).await?;
        let (dead, _) = count(db, pool, "dead", None).await?;
        depths.push(Depth { pool, due, oldest, running, dead });
    }
    Ok(depths)
}

/// Counts the jobs with a status that are due by `by`, and returns the earliest due time.
async fn count(
    db: &Db,
    pool: &WorkerPool,
    status: &'static str,
    by: Option<i64>,
) -> Result<(i64, Option<i64>), DbErr> {
    // Covers all tenants, without a lock. The status is a literal, so that the partial index is used.
    let sql = format!(
        "SELECT COUNT(*) AS jobs, MIN(run_at) AS oldest FROM (SELECT run_at FROM job \
         WHERE status = '{status}' AND lane = $1 AND run_at <= $2 ORDER BY run_at LIMIT $3) AS found"
    );
    let values: [Value; 3] = [pool.name.into(), by.unwrap_or(i64::MAX).into(), MAX_COUNT.into()];
    let Some(row) = db.read.query_one_raw(statement(db, &sql, values)).await? else { return Ok((0, None)) };
    Ok((row.try_get("", "jobs")?, row.try_get("", "oldest")?))
}
