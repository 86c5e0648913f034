//! Failures: failing spans, and the rows that are stored for them.
//!
//! The transaction that stores failures of a project holds the lock of the project's clustering
//! ([`crate::failure_clusters::lock_project`]), so that none is stored twice.

use std::collections::HashSet;

use api::failure::FailureFilter;
use entities::{
    dialect::Dialect,
    failure::{Column, Entity, Model},
    span,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, FromQueryResult,
    IntoActiveModel, QueryFilter, Statement, Value,
};
use uuid::Uuid;

use crate::{
    db::Db,
    ids::first_id_at,
    traces::{self, bit_of},
};

/// Number of rows per statement, because databases limit the number of parameters.
const ROWS_PER_STATEMENT: usize = 500;

/// The index that finds the failures of a trace.
const TRACE_INDEX: &str = "ux_failure_trace";

/// A span with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingSpan {
    /// The trace.
    pub trace_id: Uuid,
    /// The span.
    pub id: Uuid,
    /// The name of the span.
    pub name: String,
    /// The model of the span.
    pub model: Option<String>,
    /// The error message.
    pub error: Option<String>,
    /// Bit of [`api::FailureType`].
    pub failure: i16,
    /// Time at which the span was stored, microseconds.
    pub created_at: i64,
}

impl FailingSpan {
    /// Returns `None` if the span has not failed.
    fn of(span: span::Model) -> Option<Self> {
        let failure = span.failure?;
        let span::Model { trace_id, id, name, model, error, created_at, .. } = span;
        Some(Self { trace_id, id, name, model, error, failure, created_at })
    }
}

/// Returns the failing spans among the given pairs of trace and span.
///
/// # Errors
/// Fails when the database fails.
pub async fn failing_spans(db: &Db, tenant: Uuid, spans: &[(Uuid, Uuid)]) -> Result<Vec<FailingSpan>, DbErr> {
    let (primary, mut found) = (db.primary(), Vec::with_capacity(spans.len()));
    for block in spans.chunks(ROWS_PER_STATEMENT) {
        let mut spans = traces::some_spans(&primary, tenant, block).await?;
        spans.sort_unstable_by_key(|it| (it.created_at, it.started_at, it.id));
        found.extend(spans.into_iter().filter_map(FailingSpan::of));
    }
    Ok(found)
}

/// Returns the given pairs of trace and span for which a failure is stored.
///
/// # Errors
/// Fails when the database fails.
pub async fn recorded_spans(
    txn: &DatabaseTransaction,
    db: &Db,
    tenant: Uuid,
    spans: &[(Uuid, Uuid)],
) -> Result<HashSet<(Uuid, Uuid)>, DbErr> {
    let condition = format!(
        "SELECT f.trace_id, f.span_id FROM given g CROSS JOIN failure f{} WHERE f.tenant_id = $1 \
         AND f.trace_id = g.first_id AND f.span_id = g.second_id AND f.failure_type <> {}",
        db.dialect.index_hint(TRACE_INDEX),
        bit_of(api::FailureType::RemediationRegression)
    );
    existing_pairs(txn, tenant, &condition, spans).await
}

/// Returns the given pairs of trace and evaluation for which a remediation regression is stored.
///
/// # Errors
/// Fails when the database fails.
pub async fn recorded_regressions(
    txn: &DatabaseTransaction,
    db: &Db,
    tenant: Uuid,
    evaluations: &[(Uuid, Uuid)],
) -> Result<HashSet<(Uuid, Uuid)>, DbErr> {
    let condition = format!(
        "SELECT f.trace_id, f.source_id FROM given g CROSS JOIN failure f{} WHERE f.tenant_id = $1 \
         AND f.trace_id = g.first_id AND f.source_id = g.second_id",
        db.dialect.index_hint(TRACE_INDEX)
    );
    existing_pairs(txn, tenant, &condition, evaluations).await
}

/// Returns the given pairs of trace and cluster for which a failure is stored.
///
/// # Errors
/// Fails when the database fails.
pub async fn counted_traces(
    txn: &DatabaseTransaction,
    db: &Db,
    tenant: Uuid,
    traces: &[(Uuid, Uuid)],
) -> Result<HashSet<(Uuid, Uuid)>, DbErr> {
    let condition = format!(
        "SELECT g.first_id, g.second_id FROM given g WHERE EXISTS (SELECT 1 FROM failure f{} \
         WHERE f.tenant_id = $1 AND f.trace_id = g.first_id AND f.cluster_id = g.second_id)",
        db.dialect.index_hint(TRACE_INDEX)
    );
    existing_pairs(txn, tenant, &condition, traces).await
}

/// Stores new failures.
///
/// # Errors
/// Fails when the database fails, or one of them is stored already.
pub async fn add(txn: &DatabaseTransaction, rows: &[Model]) -> Result<(), DbErr> {
    for block in rows.chunks(ROWS_PER_STATEMENT) {
        let rows = block.iter().map(|it| it.clone().into_active_model().reset_all());
        Entity::insert_many(rows).exec_without_returning(txn).await?;
    }
    Ok(())
}

/// Returns the failures with these ids that exist.
///
/// # Errors
/// Fails when the database fails.
pub async fn some(db: &impl ConnectionTrait, tenant: Uuid, ids: &[Uuid]) -> Result<Vec<Model>, DbErr> {
    let mut found = Vec::with_capacity(ids.len());
    for block in ids.chunks(ROWS_PER_STATEMENT) {
        let query = Entity::find()
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::Id.is_in(block.iter().copied()));
        found.append(&mut query.all(db).await?);
    }
    Ok(found)
}

/// Returns a page of failures, newest first, after the id `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &Db,
    tenant: Uuid,
    filter: &FailureFilter,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    let statement = page_statement(db.dialect, tenant, filter, after, limit);
    db.read.query_all_raw(statement).await?.iter().map(|it| Model::from_query_result(it, "")).collect()
}

/// Returns the statement of a page of failures.
pub fn page_statement(
    dialect: Dialect,
    tenant: Uuid,
    filter: &FailureFilter,
    after: Option<Uuid>,
    limit: u64,
) -> Statement {
    let FailureFilter { project_id, failure_type, cluster_id, trace_id, model, from, to } = filter;
    let mut values: Vec<Value> = vec![tenant.into()];
    let mut sql = String::new();
    let mut and = |condition: &str, value: Option<Value>| {
        if let Some(value) = value {
            values.push(value);
            sql += &format!(" AND f.{condition} ${}", values.len());
        }
    };
    and("project_id =", project_id.map(Into::into));
    and("failure_type =", failure_type.map(|it| bit_of(it).into()));
    and("cluster_id =", cluster_id.map(Into::into));
    and("trace_id =", trace_id.map(Into::into));
    and("model =", model.as_deref().map(Into::into));
    // Ids are ordered by the time, so ranges of the time are ranges of the index.
    and("id >=", from.map(|it| first_id_at(it.micros()).into()));
    and("id <", to.map(|it| first_id_at(it.micros().saturating_add(1)).into()));
    and("id <", after.map(Into::into));
    let hint = index_of(filter).map(|it| dialect.index_hint(it)).unwrap_or_default();
    let sql =
        format!("SELECT * FROM failure f{hint} WHERE f.tenant_id = $1{sql} ORDER BY f.id DESC LIMIT {limit}");
    Statement::from_sql_and_values(dialect.backend(), sql, values)
}

/// Returns the index of the most selective filter, because SQLite has no statistics. Without a filter, the primary key
/// has the order of the list.
fn index_of(filter: &FailureFilter) -> Option<&'static str> {
    let FailureFilter { project_id, failure_type, cluster_id, trace_id, model, from: _, to: _ } = filter;
    [
        (trace_id.is_some(), TRACE_INDEX),
        (cluster_id.is_some(), "ix_failure_cluster"),
        (model.is_some(), "ix_failure_model"),
        (failure_type.is_some(), "ix_failure_type"),
        (project_id.is_some(), "ix_failure_project"),
    ]
    .into_iter()
    .find_map(|(is_set, index)| is_set.then_some(index))
}

/// Runs a statement that selects pairs of ids, for the given ones.
async fn existing_pairs(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    condition: &str,
    pairs: &[(Uuid, Uuid)],
) -> Result<HashSet<(Uuid, Uuid)>, DbErr> {
    let mut found = HashSet::new();
    for block in pairs.chunks(ROWS_PER_STATEMENT) {
        let sql = format!("{} {condition}", given(block.len()));
        let statement =
            Statement::from_sql_and_values(txn.get_database_backend(), sql, values(tenant, block));
        for row in txn.query_all_raw(statement).await? {
            found.insert((row.try_get_by_index(0)?, row.try_get_by_index(1)?));
        }
    }
    Ok(found)
}

/// Returns the expression of `count` pairs of ids, named `given`, whose placeholders begin with `$2`.
fn given(count: usize) -> String {
    let rows: Vec<String> = (0..count).map(|it| format!("(${},${})", 2 * it + 2, 2 * it + 3)).collect();
    format!("WITH given(first_id, second_id) AS (VALUES {})", rows.join(","))
}

fn values(tenant: Uuid, pairs: &[(Uuid, Uuid)]) -> Vec<Value> {
    std::iter::once(tenant).chain(pairs.iter().flat_map(|it| [it.0, it.1])).map(Into::into).collect()
}
