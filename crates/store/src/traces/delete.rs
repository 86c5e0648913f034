//! Removes traces with all dependent rows, in transactions of bounded size.
//!
//! A trace's row is locked first and removed in the last transaction, so it exists as long as any of its
//! dependent rows. A late span therefore either joins the trace and is removed with it, or creates a new
//! trace; no span is left without a trace. A long trace takes several transactions, between which other
//! transactions can write. The first one enqueues a job, which completes the removal if the process stops.
//!
//! The deletion of dependent rows is SQL, because it names its table as data, is limited, and returns rows.

use std::collections::{BTreeMap, BTreeSet};

use entities::{audit_record, dialect::Dialect, job, span_block, trace};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, QuerySelect, Statement};
use uuid::Uuid;

use super::by_id;
use crate::{
    audit,
    db::Db,
    evaluations, jobs,
    metrics::{self, delta::Delta},
    quotas::{self, Quota},
    span_block::body_ids,
    text_rows,
    trace_filters::{PROJECT_DAY_INDEX, STARTED_DAY, STARTED_DAY_MICROS},
};

/// Tables with rows that depend on a trace, except the table of span blocks. Each has the columns `tenant_id`, `trace_id` and
/// `id`, an index that begins with them (with `has_trace_key`: with the key of the trace in place of its ID), and with
/// `has_body` a column with the ID of the text block that has the row's texts. A table whose index begins with tenant and
/// trace only, and whose primary key begins with tenant and ID, names the index: SQLite would choose the primary key, which
/// has the rows of all traces.
///
/// Rows that queries find independently are removed before the spans to which they refer. Webhook events are removed
/// after evaluations: a transaction that ends an evaluation and stores its event locks the evaluation only.
const CHILD_TABLES: &[ChildTable] = &[
    ChildTable { table: "span_vector", index: None, has_trace_key: true, has_body: false },
    ChildTable { table: "event", index: None, has_trace_key: false, has_body: false },
    ChildTable { table: "held_input", index: None, has_trace_key: false, has_body: false },
    ChildTable { table: "feedback", index: None, has_trace_key: false, has_body: false },
    ChildTable { table: "evaluation", index: None, has_trace_key: false, has_body: false },
    ChildTable { table: "rule_decision", index: None, has_trace_key: false, has_body: false },
    ChildTable { table: "failure", index: Some("ux_failure_trace"), has_trace_key: false, has_body: false },
    ChildTable { table: "failure_rule_match", index: None, has_trace_key: false, has_body: false },
    ChildTable {
        table: "control_action",
        index: Some("ix_control_action_trace"),
        has_trace_key: false,
        has_body: false,
    },
    ChildTable {
        table: "prompt_replay",
        index: Some("ix_prompt_replay_trace"),
        has_trace_key: false,
        has_body: false,
    },
    ChildTable {
        table: "prompt_score",
        index: Some("ux_prompt_score_trace"),
        has_trace_key: false,
        has_body: false,
    },
    ChildTable {
        table: "webhook_event",
        index: Some("ix_webhook_event_trace"),
        has_trace_key: false,
        has_body: false,
    },
    ChildTable { table: "span", index: None, has_trace_key: true, has_body: true },
];

const SPAN_BLOCK_TABLE: &str = "span_block";

/// Maximum number of dependent rows that one transaction removes.
const MAX_ROWS_PER_TRANSACTION: usize = 2_000;

struct ChildTable {
    table: &'static str,
    index: Option<&'static str>,
    has_trace_key: bool,
    has_body: bool,
}

/// Returns the tables whose rows belong to a trace, and whether their rows name the key of the trace in addition to its ID.
pub fn child_tables() -> impl Iterator<Item = (&'static str, bool)> {
    CHILD_TABLES.iter().map(|it| (it.table, it.has_trace_key)).chain([(SPAN_BLOCK_TABLE, true)])
}

/// The result of one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// Number of traces that were removed completely.
    pub traces: usize,
    /// Whether the transaction reached its bound: a trace may be removed in part, and others may be left.
    pub more: bool,
}

/// Locks the given traces and removes the ones for which `wanted` holds, up to the bound of one transaction.
/// Adds the audit `record` if there is at least one. `continuation` returns the job that removes the rest of
/// a trace; it is stored when the first transaction cannot remove all of it.
///
/// # Errors
/// Fails when the database fails; nothing is removed then.
pub async fn remove(
    db: &Db,
    tenant: Uuid,
    ids: &[Uuid],
    wanted: impl Fn(&trace::Model) -> bool,
    mut record: Option<audit_record::Model>,
    continuation: impl Fn(&trace::Model) -> job::Model,
    now: i64,
) -> Result<Removal, DbErr> {
    let txn = db.begin().await?;
    let (mut removal, mut left) = (Removal::default(), MAX_ROWS_PER_TRANSACTION);
    let (mut delta, mut released, mut texts) = (Delta::default(), BTreeMap::new(), BTreeSet::new());
    // Writers lock traces in the same order.
    for id in ids.iter().collect::<BTreeSet<_>>() {
        let row = by_id(&txn, tenant, *id).lock_exclusive().one(&txn).await?;
        let Some(row) = row.filter(&wanted) else { continue };
        if let Some(record) = record.take() {
            audit::add(&txn, record).await?;
        }
        evaluations::fail_of_removed_trace(&txn, tenant, *id, now, &mut released).await?;
        left -= remove_children(&txn, &row, left, &mut texts).await?;
        if left == 0 {
            removal.more = true;
            jobs::insert_once(&txn, continuation(&row)).await?;
            break;
        }
        texts.extend(row.body_id);
        trace::Entity::delete_by_id((tenant, row.key)).exec(&txn).await?;
        delta.take(&row);
        removal.traces += 1;
    }
    // A page may contain texts of many of the traces.
    text_rows::remove(&txn, tenant, texts).await?;
    metrics::add(&txn, tenant, delta, now).await?;
    // Last: transactions that request evaluations lock the traces first, and then the quota.
    for (month, count) in released {
        quotas::release(&txn, tenant, month, Quota::LlmEvaluations, count).await?;
    }
    txn.commit().await?;
    Ok(removal)
}

/// Returns traces of a project that started before `before`, at most `limit`, those of the oldest day first.
///
/// # Errors
/// Fails when the database fails.
pub async fn started_before(
    db: &Db,
    tenant: Uuid,
    project: Uuid,
    before: i64,
    limit: u64,
) -> Result<Vec<Uuid>, DbErr> {
    let sql = format!(
        "SELECT id FROM trace{} WHERE tenant_id = $1 AND project_id = $2 AND {STARTED_DAY} <= $3 AND started_at < $4 \
         ORDER BY {STARTED_DAY}, key LIMIT {limit}",
        db.dialect.index_hint(PROJECT_DAY_INDEX)
    );
    let values = [tenant.into(), project.into(), (before / STARTED_DAY_MICROS).into(), before.into()];
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    db.current().query_all_raw(statement).await?.iter().map(|it| it.try_get_by_index(0)).collect()
}

/// Removes up to `limit` rows that depend on a trace. Returns their number, and adds their text blocks to `texts`.
async fn remove_children(
    txn: &DatabaseTransaction,
    trace: &trace::Model,
    limit: usize,
    texts: &mut BTreeSet<Uuid>,
) -> Result<usize, DbErr> {
    let tenant = trace.tenant_id;
    let mut removed = 0;
    let dialect = Dialect::of(txn.get_database_backend());
    for ChildTable { table, index, has_trace_key, has_body } in CHILD_TABLES {
        let left = limit - removed;
        if left == 0 {
            return Ok(removed);
        }
        let hint = index.map(|it| dialect.index_hint(it)).unwrap_or_default();
        let returning = if *has_body { "body_id" } else { "id" };
        let (column, value) = match has_trace_key {
            true => ("trace_key", trace.key.into()),
            false => ("trace_id", trace.id.into()),
        };
        // A range up to the id of the last row: PostgreSQL may join a list of ids with all rows of the trace,
        // one by one.
        let sql = format!(
            "DELETE FROM {table}{hint} WHERE tenant_id = $1 AND {column} = $2 AND id <= COALESCE((\
             SELECT id FROM {table}{hint} WHERE tenant_id = $1 AND {column} = $2 ORDER BY id LIMIT 1 OFFSET {}), $3) \
             RETURNING {returning}",
            left - 1
        );
        let values = [tenant.into(), value, Uuid::max().into()];
        let statement = Statement::from_sql_and_values(dialect.backend(), sql, values);
        let rows = txn.query_all_raw(statement).await?;
        removed += rows.len();
        if *has_body {
            // Rows that are left for the next transaction may have texts in the same text blocks. Their texts
            // are unavailable until they are removed too.
            for row in &rows {
                texts.extend(row.try_get_by_index::<Option<Uuid>>(0)?);
            }
        }
    }
    if removed < limit {
        // A block may name more text blocks than are left: they are removed together with it.
        removed += remove_span_block(txn, trace, texts).await?.min(limit - removed);
    }
    Ok(removed)
}

/// Removes the span block of a trace, and adds the text blocks of its spans to `texts`. Returns the number of rows that are
/// removed for it.
async fn remove_span_block(
    txn: &DatabaseTransaction,
    trace: &trace::Model,
    texts: &mut BTreeSet<Uuid>,
) -> Result<usize, DbErr> {
    let block =
        span_block::Entity::delete_by_id((trace.tenant_id, trace.key)).exec_with_returning(txn).await?;
    let Some(block) = block else { return Ok(0) };
    let body_ids = body_ids(&block);
    let rows = 1 + body_ids.len();
    texts.extend(body_ids);
    Ok(rows)
}
