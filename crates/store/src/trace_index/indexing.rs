//! Turns the tail into runs, and merges runs.
//!
//! Runs of one level are merged into one of the next, so that an entry is written about three times, whatever the number
//! of traces.

use std::collections::HashSet;

use entities::{trace, trace_run, trace_run_block, trace_tail};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect, Statement, sea_query::Expr,
};
use uuid::Uuid;

use super::{
    entry::{self, IndexEntry},
    run::{BlockWriter, blocks},
    stored::{self, RunState},
    terms::Terms,
};
use crate::{
    bulk::{self, Bulk},
    db::Db,
};

/// Number of traces in the tail from which some of them are indexed.
const MIN_TAIL_TRACES: i64 = 4_000;
/// Number of traces that stay in the tail, because late spans usually change the newest ones.
const KEPT_TAIL_TRACES: i64 = 1_000;
/// Maximum number of traces of a run that is made from the tail.
const MAX_NEW_RUN_TRACES: i64 = 6_000;
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
/// Number of traces that are read at once. A row can have a quarter of a megabyte.
const ROWS_PER_READ: usize = 200;
/// Number of rows of the tail that one statement removes.
const KEYS_PER_STATEMENT: usize = 500;
/// Number of rows of the tail that are read at once.
const TAIL_ROWS_PER_READ: u64 = 10_000;

/// Returns the tenants whose tail is long enough to be indexed. Reads the tails of all tenants and locks nothing.
///
/// # Errors
/// Fails when the database fails.
pub async fn tenants_with_long_tails(db: &Db) -> Result<Vec<Uuid>, DbErr> {
    let sql = format!(
        "SELECT tenant_id FROM trace_tail GROUP BY tenant_id HAVING SUM(traces) >= {MIN_TAIL_TRACES}"
    );
    let rows = db.current().query_all_raw(Statement::from_string(db.dialect.backend(), sql)).await?;
    rows.iter().map(|it| it.try_get_by_index(0)).collect()
}

/// Makes a run of a tail that is long enough, except for its newest traces. Returns whether it did.
///
/// # Errors
/// Fails when the database fails; the tail is unchanged then.
pub async fn index_long_tail(db: &Db, tenant: Uuid, now: i64) -> Result<bool, DbErr> {
    let sql = "SELECT CAST(COALESCE(SUM(traces), 0) AS BIGINT) FROM trace_tail WHERE tenant_id = $1";
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into()]);
    let row = db.current().query_one_raw(statement).await?;
    let traces: i64 = row.map_or(Ok(0), |it| it.try_get_by_index(0))?;
    Ok(traces >= MIN_TAIL_TRACES && index_tail(db, tenant, KEPT_TAIL_TRACES, now).await? > 0)
}

/// Indexes the oldest part of the tail, except for its newest `kept` traces. Returns the number of traces; 0 if there is
/// nothing to index, or another process was faster.
///
/// # Errors
/// Fails when the database fails; the tail is unchanged then.
pub async fn index_tail(db: &Db, tenant: Uuid, kept: i64, now: i64) -> Result<i64, DbErr> {
    let Some(part) = TailPart::read(db, tenant, kept).await? else {
        return Ok(0);
    };
    let IndexedTraces { mut entries, traces, newest_at, oldest_at } = part.entries(db, tenant).await?;
    let traces = i64::try_from(traces).unwrap_or(i64::MAX);
    let run = NewRun { id: db.keys.take_one(now), level: 0, traces, newest_at, oldest_at };
    let blocks = tokio::task::spawn_blocking(move || {
        entries.sort_unstable();
        blocks(&entries)
    });
    let blocks = blocks.await.map_err(|it| DbErr::Custom(format!("indexing of traces failed: {it}")))?;
    let directory: Vec<IndexEntry> = blocks.iter().map(|it| it.0).collect();

    let txn = db.begin().await?;
    if !part.remove(&txn, tenant).await? {
        return Ok(0);
    }
    if !blocks.is_empty() {
        stored::insert_blocks(&txn, tenant, run.id, 0, &blocks).await?;
        let mut row = run.row(tenant, RunState::Ready, now);
        row.blocks = number(blocks.len());
        row.directory = entry::encode(&directory);
        trace_run::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(&txn).await?;
    }
    txn.commit().await?;
    Ok(run.traces.max(1))
}

/// A row of the tail whose first traces are indexed, and no others.
struct CutRow {
    row: trace_tail::Model,
    /// The key of the last trace that is indexed.
    last: i64,
    /// Number of these traces.
    traces: i64,
}

/// The entries of the traces that a run will have.
struct IndexedTraces {
    entries: Vec<IndexEntry>,
    /// Number of traces.
    traces: usize,
    /// Start of the newest trace, microseconds.
    newest_at: i64,
    /// Start of the oldest trace, microseconds.
    oldest_at: i64,
}

/// The oldest rows of a tenant's tail.
struct TailPart {
    /// Rows whose traces are all indexed.
    whole: Vec<trace_tail::Model>,
    /// A row with many traces, whose first ones are indexed.
    cut: Option<CutRow>,
}

impl TailPart {
    async fn read(db: &Db, tenant: Uuid, kept: i64) -> Result<Option<Self>, DbErr> {
        use trace_tail::Column;
        let rows = trace_tail::Entity::find()
            .filter(Column::TenantId.eq(tenant))
            .order_by_asc(Column::Id)
            .limit(TAIL_ROWS_PER_READ)
            .all(db.current())
            .await?;
        let is_all = rows.len() < usize::try_from(TAIL_ROWS_PER_READ).unwrap_or(usize::MAX);
        let total: i64 = rows.iter().map(|it| i64::from(it.traces)).sum();
        let wanted = if is_all { total - kept } else { total }.min(MAX_NEW_RUN_TRACES);
        let mut part = Self { whole: Vec::new(), cut: None };
        let mut taken = 0;
        for row in rows {
            if taken + i64::from(row.traces) > wanted {
                if taken == 0 && wanted > 0 {
                    part.cut = Some(Self::cut(db, tenant, row, wanted).await?);
                }
                break;
            }
            taken += i64::from(row.traces);
            part.whole.push(row);
        }
        Ok((!part.whole.is_empty() || part.cut.is_some()).then_some(part))
    }

    /// Cuts a row after its first `wanted` traces.
    async fn cut(db: &Db, tenant: Uuid, row: trace_tail::Model, wanted: i64) -> Result<CutRow, DbErr> {
        let sql = format!(
            "SELECT t.key FROM trace t{} WHERE t.tenant_id = $1 AND t.key BETWEEN $2 AND $3 \
             ORDER BY t.key LIMIT 1 OFFSET {}",
            db.dialect.primary_key_hint(),
            wanted - 1
        );
        let values = [tenant.into(), row.first_key.into(), row.last_key.into()];
        let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
        let found = db.current().query_one_raw(statement).await?;
        let key: Option<i64> = found.map(|it| it.try_get_by_index(0)).transpose()?;
        // After removals fewer traces are left than the row says.
        let last = key.unwrap_or(row.last_key);
        Ok(CutRow { row, last, traces: wanted })
    }

    /// Returns the entries of the traces in their current state.
    async fn entries(&self, db: &Db, tenant: Uuid) -> Result<IndexedTraces, DbErr> {
        let whole = self.whole.iter().map(|it| (it.first_key, it.last_key));
        let cut = self.cut.iter().map(|it| (it.row.first_key, it.last));
        let (single, ranges): (Vec<_>, Vec<_>) = whole.chain(cut).partition(|(first, last)| first == last);
        let from =
            format!("SELECT {} FROM trace t{}", trace::Model::select("t"), db.dialect.primary_key_hint());
        let terms = Terms::of(tenant);
        let mut indexed =
            IndexedTraces { entries: Vec::new(), traces: 0, newest_at: i64::MIN, oldest_at: i64::MAX };
        // A changed trace may be in several rows of the tail.
        let mut seen = HashSet::new();
        let mut add = |rows: Vec<trace::Model>| {
            for row in rows.into_iter().filter(|it| seen.insert(it.key)) {
                let (at, key) = (row.started_at, row.key);
                indexed.entries.extend(terms.of_trace(&row).into_iter().map(|term| IndexEntry {
                    term,
                    at,
                    key,
                }));
                indexed.traces += 1;
                indexed.newest_at = indexed.newest_at.max(at);
                indexed.oldest_at = indexed.oldest_at.min(at);
            }
        };
        for (first, last) in ranges {
            let mut first = first;
            loop {
                let sql = format!(
                    "{from} WHERE t.tenant_id = $1 AND t.key BETWEEN $2 AND $3 ORDER BY t.key LIMIT {ROWS_PER_READ}"
                );
                let values = vec![tenant.into(), first.into(), last.into()];
                let rows: Vec<trace::Model> = bulk::fetch(db.current(), sql, values).await?;
                let end = rows.last().map(|it| it.key).filter(|_| rows.len() == ROWS_PER_READ);
                add(rows);
                match end {
                    Some(key) => first = key + 1,
                    None => break,
                }
            }
        }
        for keys in single.chunks(ROWS_PER_READ) {
            let places: Vec<String> = (2..keys.len() + 2).map(|it| format!("${it}")).collect();
            let sql = format!("{from} WHERE t.tenant_id = $1 AND t.key IN ({})", places.join(","));
            let values = std::iter::once(tenant.into()).chain(keys.iter().map(|it| it.0.into()));
            add(bulk::fetch(db.current(), sql, values.collect()).await?);
        }
        Ok(indexed)
    }

    /// Removes the rows from the tail. Returns false if another process removed one of them before.
    async fn remove(&self, db: &impl ConnectionTrait, tenant: Uuid) -> Result<bool, DbErr> {
        use trace_tail::Column;
        for rows in self.whole.chunks(KEYS_PER_STATEMENT) {
            let removed = trace_tail::Entity::delete_many()
                .filter(Column::TenantId.eq(tenant))
                .filter(Column::Id.is_in(rows.iter().map(|it| it.id)))
                .exec(db)
                .await?;
            if removed.rows_affected != rows.len() as u64 {
                return Ok(false);
            }
        }
        let Some(CutRow { row, last, traces }) = &self.cut else { return Ok(true) };
        let of_row = Condition::all()
            .add(Column::TenantId.eq(tenant))
            .add(Column::Id.eq(row.id))
            .add(Column::FirstKey.eq(row.first_key));
        if *last >= row.last_key {
            let removed = trace_tail::Entity::delete_many().filter(of_row).exec(db).await?;
            return Ok(removed.rows_affected == 1);
        }
        let left = i64::from(row.traces) - traces;
        let changed = trace_tail::Entity::update_many()
            .col_expr(Column::FirstKey, Expr::value(last + 1))
            .col_expr(Column::Traces, Expr::value(i32::try_from(left.max(1)).unwrap_or(i32::MAX)))
            .filter(of_row)
            .exec(db)
            .await?;
        Ok(changed.rows_affected == 1)
    }
}

/// A run under construction.
#[derive(Clone, Copy, Debug)]
struct NewRun {
    id: i64,
    level: i16,
    traces: i64,
    newest_at: i64,
    oldest_at: i64,
}

impl NewRun {
    fn row(&self, tenant: Uuid, state: RunState, now: i64) -> trace_run::Model {
        trace_run::Model {
            tenant_id: tenant,
            id: self.id,
            level: self.level,
            state: state as i16,
            traces: self.traces,
            newest_at: self.newest_at,
            oldest_at: self.oldest_at,
            blocks: 0,
            directory: Vec::new(),
            merged_until: 0,
            changed_at: now,
        }
    }
}

/// Merges runs of a level that has enough of them, with a lease. Returns whether it did.
///
/// # Errors
/// Fails when the database fails; the runs are unchanged then.
pub async fn merge(db: &Db, tenant: Uuid, now: i64) -> Result<bool, DbErr> {
    use trace_run::Column;
    let Some(sources) = mergeable(db, tenant, now).await? else { return Ok(false) };
    let ids: Vec<i64> = sources.iter().map(|it| it.id).collect();
    let run = NewRun {
        id: db.keys.take_one(now),
        level: sources.iter().map(|it| it.level).max().unwrap_or_default().saturating_add(1),
        traces: sources.iter().map(|it| it.traces).sum(),
        newest_at: sources.iter().map(|it| it.newest_at).max().unwrap_or(i64::MIN),
        oldest_at: sources.iter().map(|it| it.oldest_at).min().unwrap_or(i64::MAX),
    };
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
    let row = run.row(tenant, RunState::Building, now);
    trace_run::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(&txn).await?;
    txn.commit().await?;

    let directory = write_merged(db, tenant, &ids, run.id).await?;

    let txn = db.begin().await?;
    let ready = trace_run::Entity::update_many()
        .col_expr(Column::State, Expr::value(RunState::Ready as i16))
        .col_expr(Column::Directory, Expr::value(entry::encode(&directory)))
        .col_expr(Column::Blocks, Expr::value(number(directory.len())))
        .filter(of_runs(tenant, &[run.id], RunState::Building))
        .exec(&txn)
        .await?;
    let retired = trace_run::Entity::update_many()
        .col_expr(Column::State, Expr::value(RunState::Retired as i16))
        .col_expr(Column::ChangedAt, Expr::value(now))
        .filter(of_runs(tenant, &ids, RunState::Ready))
        .exec(&txn)
        .await?;
    // The lease ended and another process merged the runs, or removed this one.
    if ready.rows_affected != 1 || retired.rows_affected != ids.len() as u64 {
        return Ok(false);
    }
    txn.commit().await?;
    Ok(true)
}

fn of_runs(tenant: Uuid, ids: &[i64], state: RunState) -> Condition {
    use trace_run::Column;
    Condition::all()
        .add(Column::TenantId.eq(tenant))
        .add(Column::Id.is_in(ids.iter().copied()))
        .add(Column::State.eq(state as i16))
}

/// A run that may be merged.
struct Source {
    id: i64,
    level: i16,
    traces: i64,
    newest_at: i64,
    oldest_at: i64,
}

/// Returns the oldest runs of the lowest level that has enough runs.
async fn mergeable(db: &Db, tenant: Uuid, now: i64) -> Result<Option<Vec<Source>>, DbErr> {
    use trace_run::Column;
    let query = trace_run::Entity::find()
        .select_only()
        .columns([Column::Id, Column::Level, Column::Traces, Column::NewestAt, Column::OldestAt])
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::State.eq(RunState::Ready as i16))
        .filter(Column::MergedUntil.lte(now))
        // Any runs of this size can be merged. Larger ones stay as they are.
        .filter(Column::Traces.lte(MAX_RUN_TRACES / RUNS_PER_MERGE as i64))
        .order_by_asc(Column::Level)
        .order_by_asc(Column::Id);
    let rows: Vec<(i64, i16, i64, i64, i64)> = query.into_tuple().all(db.current()).await?;
    let source =
        |(id, level, traces, newest_at, oldest_at)| Source { id, level, traces, newest_at, oldest_at };
    let rows: Vec<Source> = rows.into_iter().map(source).collect();
    let mut levels = rows.chunk_by(|it, next| it.level == next.level);
    let merged = levels.find(|it| it.len() >= RUNS_PER_MERGE);
    Ok(merged.map(|it| it[..RUNS_PER_MERGE].iter().map(|it| Source { ..*it }).collect()))
}

/// Writes the blocks of the merged run. Returns its directory.
async fn write_merged(db: &Db, tenant: Uuid, sources: &[i64], run: i64) -> Result<Vec<IndexEntry>, DbErr> {
    let mut readers: Vec<RunReader> = sources.iter().map(|it| RunReader::of(*it)).collect();
    let (mut writer, mut directory) = (BlockWriter::default(), Vec::new());
    for reader in &mut readers {
        reader.fill(db, tenant).await?;
    }
    loop {
        let first = readers.iter().enumerate().filter_map(|(i, it)| Some((it.peek()?, i))).min();
        let Some((entry, place)) = first else { break };
        writer.push(entry);
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
        let changed_before = Column::ChangedAt.lt(now.saturating_sub(age));
        Condition::all().add(Column::State.eq(state as i16)).add(changed_before)
    };
    let ids: Vec<i64> = trace_run::Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::TenantId.eq(tenant))
        .filter(
            Condition::any()
                .add(old(RunState::Retired, RETIRED_MICROS))
                .add(old(RunState::Building, ABANDONED_MICROS)),
        )
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
    use trace_run::Column;
    // The oldest trace is read first: a trace that is stored meanwhile is in no run.
    let sql = format!(
        "SELECT started_at FROM trace{} WHERE tenant_id = $1 ORDER BY started_at LIMIT 1",
        db.dialect.index_hint("ix_trace_time")
    );
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into()]);
    let oldest = db.current().query_one_raw(statement).await?;
    let oldest: i64 = oldest.map_or(Ok(i64::MAX), |it| it.try_get_by_index(0))?;
    trace_run::Entity::update_many()
        .col_expr(Column::State, Expr::value(RunState::Retired as i16))
        .col_expr(Column::ChangedAt, Expr::value(now))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::State.eq(RunState::Ready as i16))
        .filter(Column::MergedUntil.lte(now))
        .filter(Column::NewestAt.lt(oldest))
        .exec(&db.write)
        .await?;
    Ok(())
}

/// Retires all runs of a tenant and adds all of its traces to the tail again. Lists are slower until they are indexed.
///
/// # Errors
/// Fails when the database fails; the index is unchanged then.
pub async fn rebuild(db: &Db, tenant: Uuid, now: i64) -> Result<(), DbErr> {
    use trace_run::Column;
    let txn = db.begin().await?;
    trace_run::Entity::update_many()
        .col_expr(Column::State, Expr::value(RunState::Retired as i16))
        .col_expr(Column::ChangedAt, Expr::value(now))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::State.eq(RunState::Ready as i16))
        .exec(&txn)
        .await?;
    // The rows that are there stay, because they may be of traces that this transaction does not see.
    let sql = "INSERT INTO trace_tail (tenant_id, id, first_key, last_key, traces) \
        SELECT tenant_id, CAST($2 AS BIGINT), MIN(key), MAX(key), CAST(COUNT(*) AS INTEGER) FROM trace \
        WHERE tenant_id = $1 GROUP BY tenant_id";
    let values = [tenant.into(), db.keys.take_one(now).into()];
    txn.execute_raw(Statement::from_sql_and_values(db.dialect.backend(), sql, values)).await?;
    txn.commit().await
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

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
