//! Finds the traces of runs that were removed.

use std::collections::HashSet;

use sea_orm::{ConnectionTrait, DbErr, Statement, Value};
use uuid::Uuid;

use super::{entry::IndexEntry, run, stored, terms::Terms};
use crate::db::Db;

/// Number of blocks that are read at once.
const BLOCKS_PER_READ: usize = 64;
/// Number of keys that one statement looks up.
const KEYS_PER_STATEMENT: usize = 500;
/// One of this number of keys is looked up first: usually no trace was removed.
const KEYS_PER_SAMPLE: usize = 64;
/// Number of blocks of a run whose traces are looked up to estimate how many were removed.
const SAMPLED_BLOCKS: usize = 4;
/// A run is sparse if more than one trace in this number was removed.
const SPARSE_FRACTION: usize = 4;

/// Returns the keys of traces of these runs that are not stored any more. Misses a few if they are few.
///
/// # Errors
/// Fails when the database fails or a run is damaged.
pub async fn removed_keys(db: &Db, tenant: Uuid, runs: &[i64]) -> Result<HashSet<i64>, DbErr> {
    let mut keys = Vec::new();
    for run in runs {
        let blocks = blocks_of_all_traces(db, tenant, *run).await?;
        keys.append(&mut keys_of(db, tenant, blocks.collect()).await?);
    }
    keys.sort_unstable();
    keys.dedup();
    let sample: Vec<i64> = keys.iter().step_by(KEYS_PER_SAMPLE).copied().collect();
    match missing(db, tenant, &sample).await?.is_empty() {
        true => Ok(HashSet::new()),
        false => missing(db, tenant, &keys).await,
    }
}

/// Returns whether many traces of a run were removed, by a sample.
///
/// # Errors
/// Fails when the database fails or the run is damaged.
pub async fn is_sparse(db: &Db, tenant: Uuid, run: i64) -> Result<bool, DbErr> {
    let blocks = blocks_of_all_traces(db, tenant, run).await?;
    let step = (blocks.len() / SAMPLED_BLOCKS).max(1);
    let keys = keys_of(db, tenant, blocks.step_by(step).collect()).await?;
    Ok(missing(db, tenant, &keys).await?.len() * SPARSE_FRACTION > keys.len())
}

/// Returns the numbers of the blocks that have the entries of all traces of a run.
async fn blocks_of_all_traces(
    db: &Db,
    tenant: Uuid,
    run: i64,
) -> Result<impl ExactSizeIterator<Item = run::BlockId> + use<>, DbErr> {
    let term = Terms::of(tenant).of_all_traces();
    let directories = stored::directories(db, db.current(), tenant, &[run]).await?;
    let directory = directories.get(&run).map_or(&[][..], |it| it.as_slice());
    // The first entry of the term may be in the block before the first one that begins with it.
    let first = directory.partition_point(|it| it.term < term).saturating_sub(1);
    let end = directory.partition_point(|it| it.term <= term);
    Ok((first..end).map(move |number| run::BlockId { run, number }))
}

/// Returns the keys of all traces that have their entries in these blocks.
async fn keys_of(db: &Db, tenant: Uuid, blocks: Vec<run::BlockId>) -> Result<Vec<i64>, DbErr> {
    let term = Terms::of(tenant).of_all_traces();
    let mut keys = Vec::new();
    for some in blocks.chunks(BLOCKS_PER_READ) {
        let mut read = run::Blocks::new();
        stored::read_blocks(db.current(), tenant, some, &mut read).await?;
        let entries = read.into_values().flatten();
        keys.extend(entries.filter(|it| it.term == term).map(|it: IndexEntry| it.key));
    }
    Ok(keys)
}

/// Returns those of the keys that belong to no stored trace.
async fn missing(db: &Db, tenant: Uuid, keys: &[i64]) -> Result<HashSet<i64>, DbErr> {
    let mut missing: HashSet<i64> = keys.iter().copied().collect();
    for some in keys.chunks(KEYS_PER_STATEMENT) {
        let places: Vec<String> = (2..some.len() + 2).map(|it| format!("${it}")).collect();
        let sql = format!(
            "SELECT t.key FROM trace t{} WHERE t.tenant_id = $1 AND t.key IN ({})",
            db.dialect.primary_key_hint(),
            places.join(",")
        );
        let values: Vec<Value> =
            std::iter::once(tenant.into()).chain(some.iter().map(|it| (*it).into())).collect();
        let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
        for row in db.current().query_all_raw(statement).await? {
            missing.remove(&row.try_get_by_index(0)?);
        }
    }
    Ok(missing)
}
