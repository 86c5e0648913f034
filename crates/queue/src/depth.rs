//! How much is waiting, for the operator.

use sea_orm::{ConnectionTrait, DbErr, Value};
use store::Db;

use super::{WorkerPool, statement};

/// The jobs of a pool, of all tenants together. Each count ends at `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// The pool.
    pub pool: &'static WorkerPool,
    /// Jobs that could run now.
    pub due: i64,
    /// Since when the first of them could, microseconds since the epoch.
    pub oldest: Option<i64>,
    /// Jobs that a worker has claimed.
    pub running: i64,
    /// Jobs that failed for good.
    pub dead: i64,
}

/// Beyond this it does not matter how many there are, and counting them would be work.
const MOST: i64 = 100_000;

/// Counts the jobs of some pools.
///
/// # Errors
/// When the database fails.
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

/// Jobs of a status, and the earliest time at which one was to run; `by` leaves out later ones.
async fn count(
    db: &Db,
    pool: &WorkerPool,
    status: &'static str,
    by: Option<i64>,
) -> Result<(i64, Option<i64>), DbErr> {
    // Over tenants, without a lock. The status is written out so that its partial index serves.
    let sql = format!(
        "SELECT COUNT(*) AS jobs, MIN(run_at) AS oldest FROM (SELECT run_at FROM job \
         WHERE status = '{status}' AND lane = $1 AND run_at <= $2 ORDER BY run_at LIMIT $3) AS found"
    );
    let values: [Value; 3] = [pool.name.into(), by.unwrap_or(i64::MAX).into(), MOST.into()];
    let Some(row) = db.read.query_one_raw(statement(db, &sql, values)).await? else { return Ok((0, None)) };
    Ok((row.try_get("", "jobs")?, row.try_get("", "oldest")?))
}
