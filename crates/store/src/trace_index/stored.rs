//! The rows of runs and blocks.

use std::{collections::HashMap, sync::Arc};

use entities::{trace_run, trace_run_block};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, QueryFilter,
    QueryOrder, QuerySelect, Statement, Value,
};
use uuid::Uuid;

use super::{
    entry::{self, IndexEntry},
    run::{BlockId, Blocks},
};
use crate::db::Db;

/// Number of blocks that one statement reads.
const BLOCKS_PER_READ: usize = 256;
/// Number of blocks that one statement inserts.
const BLOCKS_PER_INSERT: usize = 64;

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum RunState {
    /// A merge writes its blocks.
    Building = 0,
    /// Lists read it.
    Ready = 1,
    /// Another run has its entries. Its blocks stay a while for lists that began before.
    Retired = 2,
}

/// A ready run, without its directory.
#[derive(Clone, Copy, Debug)]
pub struct RunRow {
    /// Identifies the run within its tenant.
    pub id: i64,
    /// Start of its newest trace, microseconds.
    pub newest_at: i64,
    /// Start of its oldest trace, microseconds.
    pub oldest_at: i64,
}

/// A run under construction.
#[derive(Clone, Copy, Debug)]
pub struct NewRun {
    /// Identifies the run within its tenant.
    pub id: i64,
    /// Number of times that its entries were merged.
    pub level: i16,
    /// Number of traces.
    pub traces: i64,
    /// Start of its newest trace, microseconds.
    pub newest_at: i64,
    /// Start of its oldest trace, microseconds.
    pub oldest_at: i64,
}

impl NewRun {
    /// Inserts the row of the run.
    ///
    /// # Errors
    /// Fails when the database fails.
    pub async fn insert(
        &self,
        db: &impl ConnectionTrait,
        tenant: Uuid,
        state: RunState,
        directory: &[IndexEntry],
        now: i64,
    ) -> Result<(), DbErr> {
        let row = trace_run::Model {
            tenant_id: tenant,
            id: self.id,
            level: self.level,
            state: state as i16,
            traces: self.traces,
            newest_at: self.newest_at,
            oldest_at: self.oldest_at,
            blocks: number(directory.len()),
            directory: entry::encode(directory),
            merged_until: 0,
            changed_at: now,
        };
        trace_run::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(db).await?;
        Ok(())
    }
}

/// Returns the tenant's ready runs.
///
/// # Errors
/// Fails when the database fails.
pub async fn ready_runs(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Vec<RunRow>, DbErr> {
    use trace_run::Column;
    let query = trace_run::Entity::find()
        .select_only()
        .columns([Column::Id, Column::NewestAt, Column::OldestAt])
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::State.eq(RunState::Ready as i16));
    let rows: Vec<(i64, i64, i64)> = query.into_tuple().all(db).await?;
    Ok(rows.into_iter().map(|(id, newest_at, oldest_at)| RunRow { id, newest_at, oldest_at }).collect())
}

/// Returns the directories of these runs, as far as they are stored.
///
/// # Errors
/// Fails when the database fails or a directory is damaged.
pub async fn directories(
    db: &Db,
    connection: &impl ConnectionTrait,
    tenant: Uuid,
    ids: &[i64],
) -> Result<HashMap<i64, Arc<Vec<IndexEntry>>>, DbErr> {
    use trace_run::Column;
    let mut found = HashMap::with_capacity(ids.len());
    let mut missing = Vec::new();
    for id in ids {
        match db.directories.get((tenant, *id)) {
            Some(directory) => _ = found.insert(*id, directory),
            None => missing.push(*id),
        }
    }
    if missing.is_empty() {
        return Ok(found);
    }
    let query = trace_run::Entity::find()
        .select_only()
        .columns([Column::Id, Column::Directory])
        .filter(Column::TenantId.eq(tenant))
        // A replica may still have the run as it was while it was built, without its directory.
        .filter(Column::State.ne(RunState::Building as i16))
        .filter(Column::Id.is_in(missing));
    let rows: Vec<(i64, Vec<u8>)> = query.into_tuple().all(connection).await?;
    for (id, bytes) in rows {
        let directory = Arc::new(decoded(&bytes)?);
        db.directories.insert((tenant, id), Arc::clone(&directory));
        found.insert(id, directory);
    }
    Ok(found)
}

/// Reads blocks, and adds them to `blocks`.
///
/// # Errors
/// Fails when the database fails, or a block is missing or damaged.
pub async fn read_blocks(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    wanted: &[BlockId],
    blocks: &mut Blocks,
) -> Result<(), DbErr> {
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable_by_key(|it| (it.run, it.number));
    wanted.dedup();
    for some in wanted.chunks(BLOCKS_PER_READ) {
        for row in fetch(db, tenant, some).await? {
            let id = BlockId { run: row.run_id, number: usize::try_from(row.number).unwrap_or(usize::MAX) };
            blocks.insert(id, decoded(&row.data)?);
        }
        if let Some(lost) = some.iter().find(|it| !blocks.contains_key(it)) {
            return Err(DbErr::Custom(format!(
                "block {} of run {} of the trace index is missing",
                lost.number, lost.run
            )));
        }
    }
    Ok(())
}

/// Returns the stored ones of these blocks, which are sorted by run.
async fn fetch(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    wanted: &[BlockId],
) -> Result<Vec<trace_run_block::Model>, DbErr> {
    // Pairs, because SQLite would read all blocks of the tenant for a condition on several runs.
    let places: Vec<String> =
        (0..wanted.len()).map(|it| format!("(${},${})", 2 * it + 2, 2 * it + 3)).collect();
    let sql = format!(
        "SELECT b.tenant_id, b.run_id, b.number, b.data FROM trace_run_block b \
         WHERE b.tenant_id = $1 AND (b.run_id, b.number) IN (VALUES {})",
        places.join(",")
    );
    let pairs =
        wanted.iter().flat_map(|it| [it.run.into(), i32::try_from(it.number).unwrap_or(i32::MAX).into()]);
    let values: Vec<Value> = std::iter::once(tenant.into()).chain(pairs).collect();
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    trace_run_block::Entity::find().from_raw_sql(statement).all(db).await
}

/// Returns the encoded blocks `from` and later of a run, at most `limit`, in their order.
///
/// # Errors
/// Fails when the database fails.
pub async fn blocks_from(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    run: i64,
    from: i32,
    limit: u64,
) -> Result<Vec<trace_run_block::Model>, DbErr> {
    use trace_run_block::Column;
    let query = trace_run_block::Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::RunId.eq(run))
        .filter(Column::Number.gte(from))
        .order_by_asc(Column::Number)
        .limit(limit);
    query.all(db).await
}

/// Inserts blocks of a run; the first one has the number `first`.
///
/// # Errors
/// Fails when the database fails.
pub async fn insert_blocks(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    run: i64,
    first: i32,
    blocks: &[(IndexEntry, Vec<u8>)],
) -> Result<(), DbErr> {
    let rows = blocks.iter().zip(first..).map(|((_, data), number)| {
        trace_run_block::Model { tenant_id: tenant, run_id: run, number, data: data.clone() }
            .into_active_model()
            .reset_all()
    });
    let rows: Vec<_> = rows.collect();
    for some in rows.chunks(BLOCKS_PER_INSERT) {
        trace_run_block::Entity::insert_many(some.iter().cloned()).exec_without_returning(db).await?;
    }
    Ok(())
}

/// Decodes a directory or a block.
///
/// # Errors
/// Fails when the bytes are damaged.
pub fn decoded(bytes: &[u8]) -> Result<Vec<IndexEntry>, DbErr> {
    entry::decode(bytes).map_err(|it| DbErr::Custom(format!("the trace index is damaged: {it}")))
}

/// Returns a number of blocks as it is stored.
pub fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
