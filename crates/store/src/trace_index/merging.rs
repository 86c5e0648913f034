//! Merges runs, and removes the runs that are not needed any more.
//!
//! Runs of one level are merged into one of the next, so that an entry is written about three times, whatever the number
//! of traces. A merge drops the entries of removed traces.

use std::{collections::HashSet, time::Instant};

use entities::{trace_run, trace_run_block};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    Statement, sea_query::Expr,
};
use uuid::Uuid;

use super::{
    entry::{self, IndexEntry},
    removed::{is_sparse, removed_keys},
    run::BlockWriter,
    stored::{self, NewRun, RunState, number},
};
use crate::{
    db::Db,
    trace_filters::{PROJECT_DAY_INDEX, STARTED_DAY},
};

/// Number of runs that are merged into one.
const RUNS_PER_MERGE: usize = 8;
/// Maximum number of traces of a merged run. Merging larger ones would write entries more often.
const MAX_RUN_TRACES: i64 = 400_000;
/// Time after which another process may merge the same runs, microseconds.
const MERGE_LEASE_MICROS: i64 = 600_000_000;
/// Time for which retired runs are kept for lists that began before, microseconds.
const RETIRED_MICROS: i64 = 600_000_000;
/// Age of the blocks of an interrupted merge when they are removed, microseconds.
const ABANDONED_MICROS: i64 = 3_600_000_000;
/// Number of blocks of a run that a merge reads at once.
const BLOCKS_PER_READ: u64 = 16;
/// Number of blocks that one transaction inserts or removes.
const BLOCKS_PER_TRANSACTION: usize = 256;

/// Merges runs of a level that has enough of them, with a lease. Returns whether it did.
///
/// # Errors
/// Fails when the database fails; the runs are unchanged then.
pub async fn merge(db: &Db, tenant: Uuid, now: i64) -> Result<bool, DbErr> {
    let mut runs = ready_runs(db, tenant, now).await?;
    // Any runs of this size can be merged. Larger ones stay as they are.
    runs.retain(|it| it.traces <= MAX_RUN_TRACES / RUNS_PER_MERGE as i64);
    let mut levels = runs.chunk_by(|it, next| it.level == next.level);
    let Some(level) = levels.find(|it| it.len() >= RUNS_PER_MERGE) else { return Ok(false) };
    merge_runs(db, tenant, &level[..RUNS_PER_MERGE], level[0].level.saturating_add(1), now).await
}

/// Writes runs again without the entries of removed traces, if these are many.
///
/// # Errors
/// Fails when the database fails.
pub async fn rewrite_sparse(db: &Db, tenant: Uuid, now: i64) -> Result<(), DbErr> {
    for run in ready_runs(db, tenant, now).await? {
        if is_sparse(db, tenant, run.id).await? {
            merge_runs(db, tenant, &[run], run.level, now).await?;
        }
    }
    Ok(())
}

/// Merges runs into one of a level, with a lease. Returns false if another process was faster.
async fn merge_runs(db: &Db, tenant: Uuid, sources: &[NewRun], level: i16, now: i64) -> Result<bool, DbErr> {
    use trace_run::Column;
    let begun = Instant::now();
    let ids: Vec<i64> = sources.iter().map(|it| it.id).collect();
    let txn = db.begin().await?;
    let leased = trace_run::Entity::update_many()
        .col_expr(Column::MergedUntil, Expr::value(now + MERGE_LEASE_MICROS))
        .filter(of_runs(tenant, &ids, RunState::Ready))
        .filter(Column::MergedUntil.lte(now))
        .exec(&txn)
        .await?;
    if leased.rows_affected != ids.len() as u64 {
        return Ok(false);
    }
    let run = NewRun {
        id: db.keys.take_one(now),
        level,
        traces: sources.iter().map(|it| it.traces).sum(),
        newest_at: sources.iter().map(|it| it.newest_at).max().unwrap_or(i64::MIN),
        oldest_at: sources.iter().map(|it| it.oldest_at).min().unwrap_or(i64::MAX),
    };
    run.insert(&txn, tenant, RunState::Building, &[], now).await?;
    txn.commit().await?;

    let removed = removed_keys(db, tenant, &ids).await?;
    let directory = write_merged(db, tenant, &ids, &removed, run.id).await?;

    // A run without entries is not needed.
    let state = if directory.is_empty() { RunState::Retired } else { RunState::Ready };
    let traces = run.traces.saturating_sub(i64::try_from(removed.len()).unwrap_or(i64::MAX)).max(0);
    let now = now.saturating_add(i64::try_from(begun.elapsed().as_micros()).unwrap_or(i64::MAX));
    let txn = db.begin().await?;
    let finished = trace_run::Entity::update_many()
        .col_expr(Column::State, Expr::value(state as i16))
        .col_expr(Column::Traces, Expr::value(traces))
        .col_expr(Column::Directory, Expr::value(entry::encode(&directory)))
        .col_expr(Column::Blocks, Expr::value(number(directory.len())))
        .filter(of_runs(tenant, &[run.id], RunState::Building))
        .exec(&txn)
        .await?;
    let retired = retire(&txn, tenant, &ids, now).await?;
    // The lease ended and another process merged the runs, or removed this one.
    if finished.rows_affected != 1 || retired != ids.len() as u64 {
        return Ok(false);
    }
    txn.commit().await?;
    Ok(true)
}

/// Retires those of the given runs that are ready. Returns their number.
///
/// # Errors
/// Fails when the database fails.
pub(super) async fn retire(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    ids: &[i64],
    now: i64,
) -> Result<u64, DbErr> {
    use trace_run::Column;
    let retired = trace_run::Entity::update_many()
        .col_expr(Column::State, Expr::value(RunState::Retired as i16))
        .col_expr(Column::ChangedAt, Expr::value(now))
        .filter(of_runs(tenant, ids, RunState::Ready))
        .exec(db)
        .await?;
    Ok(retired.rows_affected)
}

fn of_runs(tenant: Uuid, ids: &[i64], state: RunState) -> Condition {
    use trace_run::Column;
    Condition::all()
        .add(Column::TenantId.eq(tenant))
        .add(Column::Id.is_in(ids.iter().copied()))
        .add(Column::State.eq(state as i16))
}

/// Returns the ready runs that no process merges, by level and age.
async fn ready_runs(db: &Db, tenant: Uuid, now: i64) -> Result<Vec<NewRun>, DbErr> {
    use trace_run::Column;
    let query = trace_run::Entity::find()
        .select_only()
        .columns([Column::Id, Column::Level, Column::Traces, Column::NewestAt, Column::OldestAt])
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::State.eq(RunState::Ready as i16))
        .filter(Column::MergedUntil.lte(now))
        .order_by_asc(Column::Level)
        .order_by_asc(Column::Id);
    let rows: Vec<(i64, i16, i64, i64, i64)> = query.into_tuple().all(db.current()).await?;
    let run = |(id, level, traces, newest_at, oldest_at)| NewRun { id, level, traces, newest_at, oldest_at };
    Ok(rows.into_iter().map(run).collect())
}

/// Writes the blocks of the merged run, without the entries of the traces with the keys `removed`. Returns its directory.
async fn write_merged(
    db: &Db,
    tenant: Uuid,
    sources: &[i64],
    removed: &HashSet<i64>,
    run: i64,
) -> Result<Vec<IndexEntry>, DbErr> {
    let mut readers: Vec<RunReader> = sources.iter().map(|it| RunReader::of(*it)).collect();
    let (mut writer, mut directory) = (BlockWriter::default(), Vec::new());
    for reader in &mut readers {
        reader.fill(db, tenant).await?;
    }
    loop {
        let first = readers.iter().enumerate().filter_map(|(i, it)| Some((it.peek()?, i))).min();
        let Some((entry, place)) = first else { break };
        if !removed.contains(&entry.key) {
            writer.push(entry);
        }
        readers[place].at += 1;
        if readers[place].peek().is_none() {
            readers[place].fill(db, tenant).await?;
            // Entries are merged in the executor's thread, and other tasks run between the portions.
            tokio::task::yield_now().await;
        }
        if writer.finished() >= BLOCKS_PER_TRANSACTION {
            write_blocks(db, tenant, run, writer.take_finished(), &mut directory).await?;
        }
    }
    write_blocks(db, tenant, run, writer.finish(), &mut directory).await?;
    Ok(directory)
}

async fn write_blocks(
    db: &Db,
    tenant: Uuid,
    run: i64,
    blocks: Vec<(IndexEntry, Vec<u8>)>,
    directory: &mut Vec<IndexEntry>,
) -> Result<(), DbErr> {
    let txn = db.begin().await?;
    let is_building = trace_run::Entity::find()
        .filter(of_runs(tenant, &[run], RunState::Building))
        .select_only()
        .column(trace_run::Column::Id)
        // The row is not removed before the blocks are stored.
        .lock_shared()
        .into_tuple::<i64>()
        .one(&txn)
        .await?;
    if is_building.is_none() {
        return Err(DbErr::Custom("a merge of the trace index took too long and was abandoned".to_owned()));
    }
    stored::insert_blocks(&txn, tenant, run, number(directory.len()), &blocks).await?;
    txn.commit().await?;
    directory.extend(blocks.iter().map(|it| it.0));
    Ok(())
}

/// Reads the entries of a run in their order.
struct RunReader {
    run: i64,
    /// Number of the next block to read.
    next: i32,
    entries: Vec<IndexEntry>,
    /// Index of the next entry.
    at: usize,
}

impl RunReader {
    fn of(run: i64) -> Self {
        Self { run, next: 0, entries: Vec::new(), at: 0 }
    }

    fn peek(&self) -> Option<IndexEntry> {
        self.entries.get(self.at).copied()
    }

    async fn fill(&mut self, db: &Db, tenant: Uuid) -> Result<(), DbErr> {
        let blocks = stored::blocks_from(db.current(), tenant, self.run, self.next, BLOCKS_PER_READ).await?;
        self.next += number(blocks.len());
        let blocks: Vec<_> = blocks.iter().map(|it| stored::decoded(&it.data)).collect::<Result<_, _>>()?;
        (self.entries, self.at) = (blocks.concat(), 0);
        Ok(())
    }
}

/// Removes runs that were merged some time ago, and the remains of interrupted merges.
///
/// # Errors
/// Fails when the database fails.
pub async fn remove_retired(db: &Db, tenant: Uuid, now: i64) -> Result<(), DbErr> {
    use trace_run::Column;
    let old = |state: RunState, age: i64| {
        Condition::all()
            .add(Column::TenantId.eq(tenant))
            .add(Column::State.eq(state as i16))
            .add(Column::ChangedAt.lt(now.saturating_sub(age)))
    };
    // A merge that still runs cannot finish any more.
    trace_run::Entity::update_many()
        .col_expr(Column::State, Expr::value(RunState::Retired as i16))
        .filter(old(RunState::Building, ABANDONED_MICROS))
        .exec(&db.write)
        .await?;
    let ids: Vec<i64> = trace_run::Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(old(RunState::Retired, RETIRED_MICROS))
        .into_tuple()
        .all(db.current())
        .await?;
    for id in ids {
        remove_run(db, tenant, id).await?;
    }
    Ok(())
}

/// Retires runs that are older than all traces of the tenant: retention has deleted their traces.
///
/// # Errors
/// Fails when the database fails.
pub async fn retire_expired(db: &Db, tenant: Uuid, now: i64) -> Result<(), DbErr> {
    // The runs are read before the oldest trace, because older traces may be stored and indexed meanwhile.
    let runs = ready_runs(db, tenant, now).await?;
    let sql = format!(
        "SELECT MIN((SELECT started_at FROM trace{} WHERE tenant_id = $1 AND project_id = p.id \
         ORDER BY {STARTED_DAY}, started_at LIMIT 1)) FROM project p WHERE p.tenant_id = $1",
        db.dialect.index_hint(PROJECT_DAY_INDEX)
    );
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into()]);
    let row = db.current().query_one_raw(statement).await?;
    let oldest: Option<i64> = row.map_or(Ok(None), |it| it.try_get_by_index(0))?;
    let older = runs.iter().filter(|run| oldest.is_none_or(|it| run.newest_at < it));
    let older: Vec<i64> = older.map(|it| it.id).collect();
    if !older.is_empty() {
        retire(&db.write, tenant, &older, now).await?;
    }
    Ok(())
}

async fn remove_run(db: &Db, tenant: Uuid, id: i64) -> Result<(), DbErr> {
    use trace_run_block::Column;
    loop {
        let txn = db.begin().await?;
        // Another process, or this one before it was killed, may have removed the first blocks.
        let first: Option<i32> = trace_run_block::Entity::find()
            .select_only()
            .column(Column::Number)
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::RunId.eq(id))
            .order_by_asc(Column::Number)
            .limit(1)
            .into_tuple()
            .one(&txn)
            .await?;
        let Some(first) = first else {
            trace_run::Entity::delete_by_id((tenant, id)).exec(&txn).await?;
            return txn.commit().await;
        };
        trace_run_block::Entity::delete_many()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::RunId.eq(id))
            .filter(Column::Number.lt(first + number(BLOCKS_PER_TRANSACTION)))
            .exec(&txn)
            .await?;
        txn.commit().await?;
    }
}
