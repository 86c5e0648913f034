//! Checks that lists find every trace: runs are intact, and each term of a trace has an entry in a run, or the trace is in
//! the tail.

use std::collections::{HashMap, HashSet};

use entities::{trace, trace_run, trace_tail};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect,
};
use uuid::Uuid;

use super::Findings;
use crate::{
    db::Db,
    trace_index::{
        Terms,
        entry::IndexEntry,
        stored::{RunState, blocks_from, decoded},
    },
};

/// The name of this check.
const TRACE_INDEX: &str = "trace_index";
/// Number of entries that are searched at once: an entry takes 24 bytes, and a trace has about 15.
const ENTRIES_PER_PASS: usize = 1_500_000;
/// Number of traces that one statement reads.
const TRACES_PER_READ: u64 = 1_000;
/// Number of blocks that one statement reads.
const BLOCKS_PER_READ: u64 = 64;

/// Finds damaged runs of a tenant, and traces without some of their entries.
pub(super) async fn of_tenant(db: &Db, tenant: Uuid, findings: &mut Findings) -> Result<(), DbErr> {
    let txn = db.snapshot().await?;
    let runs: Vec<i64> = trace_run::Entity::find()
        .select_only()
        .column(trace_run::Column::Id)
        .filter(trace_run::Column::TenantId.eq(tenant))
        .filter(trace_run::Column::State.eq(RunState::Ready as i16))
        .into_tuple()
        .all(&txn)
        .await?;
    let before = findings.problems();
    for run in &runs {
        findings.compared(TRACE_INDEX, 1);
        if !is_intact(&txn, tenant, *run).await? {
            let problem = "the run's directory and blocks differ or are damaged, so filters fail";
            findings.add(
                TRACE_INDEX,
                Some(tenant),
                format!("run {run} of the trace index"),
                problem.to_owned(),
            );
        }
    }
    let mut last = Some(i64::MIN);
    while let Some(key) = last {
        let (mut missing, end) = expected(&txn, tenant, key).await?;
        last = end;
        findings.compared(TRACE_INDEX, missing.ids.len() as u64);
        for run in &runs {
            remove_found(&txn, tenant, *run, &mut missing.entries).await?;
        }
        let keys: HashSet<i64> = missing.entries.iter().map(|it| it.key).collect();
        for id in keys.iter().filter_map(|it| missing.ids.get(it)) {
            let problem = "the trace index lacks entries of the trace, so filters do not find it";
            findings.add(TRACE_INDEX, Some(tenant), format!("trace {id}"), problem.to_owned());
        }
    }
    if findings.problems() > before {
        findings.badly_indexed_tenants.insert(tenant);
    }
    txn.commit().await
}

/// Returns whether the blocks of a run begin with the entries of its directory and are sorted.
async fn is_intact(txn: &DatabaseTransaction, tenant: Uuid, run: i64) -> Result<bool, DbErr> {
    let Some(row) = trace_run::Entity::find_by_id((tenant, run)).one(txn).await? else { return Ok(false) };
    let Ok(directory) = decoded(&row.directory) else { return Ok(false) };
    let (mut read, mut last) = (0, None);
    loop {
        let blocks = blocks_from(txn, tenant, run, next_number(read), BLOCKS_PER_READ).await?;
        for block in &blocks {
            let Ok(entries) = decoded(&block.data) else { return Ok(false) };
            let is_next = block.number == next_number(read) && entries.first() == directory.get(read);
            if !is_next || !entries.is_sorted() || entries.first().copied() < last {
                return Ok(false);
            }
            last = entries.last().copied();
            read += 1;
        }
        if blocks.is_empty() {
            return Ok(read == directory.len() && row.blocks == next_number(read));
        }
    }
}

fn next_number(read: usize) -> i32 {
    i32::try_from(read).unwrap_or(i32::MAX)
}

/// The entries that the runs must have.
#[derive(Default)]
struct ExpectedEntries {
    /// The IDs of the traces that were read, by key.
    ids: HashMap<i64, Uuid>,
    entries: HashSet<IndexEntry>,
}

/// Returns the entries of the next traces after a key, except for those of the tail, and the key of the last trace if
/// there may be more.
async fn expected(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    mut last: i64,
) -> Result<(ExpectedEntries, Option<i64>), DbErr> {
    let terms = Terms::of(tenant);
    let mut expected = ExpectedEntries::default();
    while expected.entries.len() < ENTRIES_PER_PASS {
        let rows = trace::Entity::find()
            .filter(trace::Column::TenantId.eq(tenant))
            .filter(trace::Column::Key.gt(last))
            .order_by_asc(trace::Column::Key)
            .limit(TRACES_PER_READ)
            .all(txn)
            .await?;
        let Some(end) = rows.last() else { return Ok((expected, None)) };
        let tail = tail_within(txn, tenant, rows[0].key, end.key).await?;
        last = end.key;
        expected.ids.extend(rows.iter().map(|it| (it.key, it.id)));
        for row in rows.iter().filter(|row| !tail.iter().any(|it| it.contains(&row.key))) {
            let entries = terms.of_trace(row).into_iter();
            expected.entries.extend(entries.map(|term| IndexEntry {
                term,
                at: row.started_at,
                key: row.key,
            }));
        }
    }
    Ok((expected, Some(last)))
}

/// Returns the ranges of the tail that overlap with these keys.
async fn tail_within(
    txn: &impl ConnectionTrait,
    tenant: Uuid,
    first: i64,
    last: i64,
) -> Result<Vec<std::ops::RangeInclusive<i64>>, DbErr> {
    use trace_tail::Column;
    let rows = trace_tail::Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::FirstKey.lte(last))
        .filter(Column::LastKey.gte(first))
        .all(txn)
        .await?;
    Ok(rows.into_iter().map(|it| it.first_key..=it.last_key).collect())
}

/// Removes the entries of a run from `missing`. Damaged blocks have none.
async fn remove_found(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    run: i64,
    missing: &mut HashSet<IndexEntry>,
) -> Result<(), DbErr> {
    let mut next = 0;
    while !missing.is_empty() {
        let blocks = blocks_from(txn, tenant, run, next, BLOCKS_PER_READ).await?;
        let Some(end) = blocks.last() else { break };
        next = end.number.saturating_add(1);
        for entry in blocks.iter().filter_map(|it| decoded(&it.data).ok()).flatten() {
            missing.remove(&entry);
        }
    }
    Ok(())
}
