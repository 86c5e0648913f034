//! Turns the tail into runs, and makes all runs again when they are damaged.

use std::collections::HashSet;

use entities::{trace, trace_tail};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    Statement, sea_query::Expr,
};
use uuid::Uuid;

use super::{
    entry::IndexEntry,
    merging::retire,
    run::blocks,
    stored::{self, NewRun, RunState},
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
    let indexed = part.entries(db, tenant).await?;
    let traces = i64::try_from(indexed.traces).unwrap_or(i64::MAX);
    let run = indexed.into_run(db, now).await?;

    let txn = db.begin().await?;
    if !part.remove(&txn, tenant).await? {
        return Ok(0);
    }
    if let Some(run) = run {
        run.insert(&txn, tenant, now).await?;
    }
    txn.commit().await?;
    Ok(traces.max(1))
}

/// Indexes the tails that are long completely. Called before the server accepts requests, because a migration leaves all
/// traces in the tail, whose rows every list would read.
///
/// # Errors
/// Fails when the database fails.
pub async fn index_long_tails_completely(db: &Db, now: i64) -> Result<(), DbErr> {
    for tenant in tenants_with_long_tails(db).await? {
        tracing::info!(%tenant, "traces are indexed before the server accepts requests");
        while index_tail(db, tenant, 0, now).await? > 0 {}
    }
    Ok(())
}

/// Makes runs of all stored traces, and retires the runs that were there. Lists find all traces meanwhile, unless an old
/// run is damaged.
///
/// # Errors
/// Fails when the database fails. The old runs stay then, beside the new ones.
pub async fn rebuild(db: &Db, tenant: Uuid, now: i64) -> Result<(), DbErr> {
    let old: Vec<i64> = stored::ready_runs(db.current(), tenant).await?.iter().map(|it| it.id).collect();
    let mut last = i64::MIN;
    loop {
        let mut indexed = IndexedTraces::new(tenant);
        // A trace that changes after it was read is added to the tail, whose rows stay.
        let end = indexed.read(db, (last.saturating_add(1), i64::MAX), MAX_NEW_RUN_TRACES).await?;
        if let Some(run) = indexed.into_run(db, now).await? {
            let txn = db.begin().await?;
            run.insert(&txn, tenant, now).await?;
            txn.commit().await?;
        }
        match end {
            Some(key) => last = key,
            None => break,
        }
    }
    retire(&db.write, tenant, &old, now).await?;
    Ok(())
}

/// A row of the tail whose first traces are indexed, and no others.
struct CutRow {
    row: trace_tail::Model,
    /// The key of the last trace that is indexed.
    last: i64,
    /// Number of these traces.
    traces: i64,
}

/// A run that is not stored yet.
struct UnstoredRun {
    run: NewRun,
    /// The first entry of each block, and the block.
    blocks: Vec<(IndexEntry, Vec<u8>)>,
}

impl UnstoredRun {
    /// Inserts the run, which lists read from the commit of the transaction.
    async fn insert(&self, txn: &impl ConnectionTrait, tenant: Uuid, now: i64) -> Result<(), DbErr> {
        stored::insert_blocks(txn, tenant, self.run.id, 0, &self.blocks).await?;
        let directory: Vec<IndexEntry> = self.blocks.iter().map(|it| it.0).collect();
        self.run.insert(txn, tenant, RunState::Ready, &directory, now).await
    }
}

/// The entries of the traces that a run will have, in their current state.
struct IndexedTraces {
    tenant: Uuid,
    terms: Terms,
    entries: Vec<IndexEntry>,
    /// A changed trace may be in several rows of the tail.
    seen: HashSet<i64>,
    /// Number of traces.
    traces: usize,
    /// Start of the newest trace, microseconds.
    newest_at: i64,
    /// Start of the oldest trace, microseconds.
    oldest_at: i64,
}

impl IndexedTraces {
    fn new(tenant: Uuid) -> Self {
        Self {
            tenant,
            terms: Terms::of(tenant),
            entries: Vec::new(),
            seen: HashSet::new(),
            traces: 0,
            newest_at: i64::MIN,
            oldest_at: i64::MAX,
        }
    }

    fn add(&mut self, rows: Vec<trace::Model>) {
        for row in rows {
            if !self.seen.insert(row.key) {
                continue;
            }
            let (at, key) = (row.started_at, row.key);
            let terms = self.terms.of_trace(&row).into_iter();
            self.entries.extend(terms.map(|term| IndexEntry { term, at, key }));
            self.traces += 1;
            self.newest_at = self.newest_at.max(at);
            self.oldest_at = self.oldest_at.min(at);
        }
    }

    /// Reads the traces of a range of keys, at most `limit` or a few more. Returns the last key if there may be more.
    async fn read(
        &mut self,
        db: &Db,
        (mut first, last): (i64, i64),
        limit: i64,
    ) -> Result<Option<i64>, DbErr> {
        let limit = self.traces.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX));
        let sql = format!(
            "{} WHERE t.tenant_id = $1 AND t.key BETWEEN $2 AND $3 ORDER BY t.key LIMIT {ROWS_PER_READ}",
            from_traces(db)
        );
        loop {
            let values = vec![self.tenant.into(), first.into(), last.into()];
            let rows: Vec<trace::Model> = bulk::fetch(db.current(), sql.clone(), values).await?;
            let end = rows.last().map(|it| it.key).filter(|_| rows.len() == ROWS_PER_READ);
            self.add(rows);
            let Some(end) = end.filter(|it| *it < last) else { return Ok(None) };
            if self.traces >= limit {
                return Ok(Some(end));
            }
            first = end + 1;
        }
    }

    /// Reads the traces with these keys.
    async fn read_some(&mut self, db: &Db, keys: &[i64]) -> Result<(), DbErr> {
        for keys in keys.chunks(ROWS_PER_READ) {
            let places: Vec<String> = (2..keys.len() + 2).map(|it| format!("${it}")).collect();
            let sql =
                format!("{} WHERE t.tenant_id = $1 AND t.key IN ({})", from_traces(db), places.join(","));
            let values = std::iter::once(self.tenant.into()).chain(keys.iter().map(|it| (*it).into()));
            self.add(bulk::fetch(db.current(), sql, values.collect()).await?);
        }
        Ok(())
    }

    /// Returns the run with the entries of these traces; none without traces.
    async fn into_run(self, db: &Db, now: i64) -> Result<Option<UnstoredRun>, DbErr> {
        let Self { mut entries, traces, newest_at, oldest_at, .. } = self;
        if traces == 0 {
            return Ok(None);
        }
        let blocks = tokio::task::spawn_blocking(move || {
            entries.sort_unstable();
            blocks(&entries)
        });
        let blocks = blocks.await.map_err(|it| DbErr::Custom(format!("indexing of traces failed: {it}")))?;
        let traces = i64::try_from(traces).unwrap_or(i64::MAX);
        let run = NewRun { id: db.keys.take_one(now), level: 0, traces, newest_at, oldest_at };
        Ok(Some(UnstoredRun { run, blocks }))
    }
}

/// Returns the `SELECT` and `FROM` that read traces along the primary key.
fn from_traces(db: &Db) -> String {
    format!("SELECT {} FROM trace t{}", trace::Model::select("t"), db.dialect.primary_key_hint())
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
        let mut indexed = IndexedTraces::new(tenant);
        for range in ranges {
            indexed.read(db, range, i64::MAX).await?;
        }
        let single: Vec<i64> = single.into_iter().map(|it| it.0).collect();
        indexed.read_some(db, &single).await?;
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
