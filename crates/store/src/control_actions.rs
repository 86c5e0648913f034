//! Control actions: the rows of the control loop.
//!
//! A transaction that stores an action, or changes whether it counts, holds the lock of the trace's row, so that
//! concurrent requests never exceed a limit of the trace. It locks the trace before the action.

use api::control::{ActionFilter, ActionStatus, ActionType, EscalationReason};
use entities::{
    control_action::{Column, Entity, Model},
    dialect::Dialect,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, FromQueryResult,
    IntoActiveModel, QueryFilter, QuerySelect, Statement, Value,
};
use uuid::Uuid;

use crate::{db::Db, ids::first_id_at};

/// The index that finds the actions on a trace.
const TRACE_INDEX: &str = "ix_control_action_trace";

/// The numbers of actions on a trace that limits are compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromQueryResult)]
pub struct ActionCounts {
    /// Retries.
    pub retries: i64,
    /// Retries, fallback models and prompt modifications.
    pub remediations: i64,
}

/// Returns an action.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).one(db).await
}

/// Returns an action, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(txn: &DatabaseTransaction, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).lock_exclusive().one(txn).await
}

/// Stores a new action.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(txn: &impl ConnectionTrait, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    Ok(())
}

/// Replaces the stored action that has the same id.
///
/// # Errors
/// Fails when the database fails.
pub async fn replace(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}

/// Stores the cosine similarity of an action's outputs.
///
/// # Errors
/// Fails when the database fails.
pub async fn set_similarity(db: &Db, tenant: Uuid, id: Uuid, similarity: f64) -> Result<(), DbErr> {
    let change = Entity::update_many()
        .col_expr(Column::Similarity, similarity.into())
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Id.eq(id));
    change.exec(&db.write).await?;
    Ok(())
}

/// Returns the numbers of actions on a trace that count towards its limits.
///
/// # Errors
/// Fails when the database fails.
pub async fn counts(
    txn: &DatabaseTransaction,
    db: &Db,
    tenant: Uuid,
    trace: Uuid,
) -> Result<ActionCounts, DbErr> {
    let sql = format!(
        "SELECT COUNT(CASE WHEN a.action_type = '{}' THEN 1 END) AS retries, COUNT(*) AS remediations \
         FROM control_action a{} WHERE a.tenant_id = $1 AND a.trace_id = $2 AND a.is_counted",
        ActionType::Retry,
        db.dialect.index_hint(TRACE_INDEX)
    );
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into(), trace.into()]);
    Ok(ActionCounts::find_by_statement(statement).one(txn).await?.unwrap_or_default())
}

/// Returns the number of retries on a trace that called the provider.
///
/// # Errors
/// Fails when the database fails.
pub async fn executed_retries(db: &Db, tenant: Uuid, trace: Uuid) -> Result<i64, DbErr> {
    let sql = format!(
        "SELECT COUNT(*) FROM control_action a{} WHERE a.tenant_id = $1 AND a.trace_id = $2 \
         AND a.action_type = '{}' AND a.called_at IS NOT NULL",
        db.dialect.index_hint(TRACE_INDEX),
        ActionType::Retry
    );
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into(), trace.into()]);
    db.current().query_one_raw(statement).await?.map_or(Ok(0), |it| it.try_get_by_index(0))
}

/// Returns the actions that a policy triggered on a trace, as pairs of creation time and trigger.
///
/// # Errors
/// Fails when the database fails.
pub async fn triggered_by(
    txn: &DatabaseTransaction,
    db: &Db,
    tenant: Uuid,
    trace: Uuid,
    policy: Uuid,
) -> Result<Vec<(i64, Option<Uuid>)>, DbErr> {
    let sql = format!(
        "SELECT a.created_at, a.trigger_id FROM control_action a{} \
         WHERE a.tenant_id = $1 AND a.trace_id = $2 AND a.policy_id = $3",
        db.dialect.index_hint(TRACE_INDEX)
    );
    let values = [tenant.into(), trace.into(), policy.into()];
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    let rows = txn.query_all_raw(statement).await?;
    rows.iter().map(|it| Ok((it.try_get_by_index(0)?, it.try_get_by_index(1)?))).collect()
}

/// Returns the spans with the outputs of actions on a trace.
///
/// # Errors
/// Fails when the database fails.
pub async fn remediated_spans(db: &Db, tenant: Uuid, trace: Uuid) -> Result<Vec<Uuid>, DbErr> {
    let sql = format!(
        "SELECT a.remediated_span_id FROM control_action a{} WHERE a.tenant_id = $1 AND a.trace_id = $2 \
         AND a.remediated_span_id IS NOT NULL",
        db.dialect.index_hint(TRACE_INDEX)
    );
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into(), trace.into()]);
    db.current().query_all_raw(statement).await?.iter().map(|it| it.try_get_by_index(0)).collect()
}

/// Returns the cost in pico-dollars of a policy's actions that called the provider at `since` (microseconds) or
/// later. An action may have been created long before, and have waited for approval.
///
/// # Errors
/// Fails when the database fails.
pub async fn spent(
    txn: &DatabaseTransaction,
    db: &Db,
    tenant: Uuid,
    policy: Uuid,
    since: i64,
) -> Result<i64, DbErr> {
    let sql = format!(
        "SELECT CAST(COALESCE(SUM(a.cost), 0) AS BIGINT) FROM control_action a{} \
         WHERE a.tenant_id = $1 AND a.policy_id = $2 AND a.called_at >= $3",
        db.dialect.index_hint("ix_control_action_called")
    );
    let values = [tenant.into(), policy.into(), since.into()];
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    txn.query_one_raw(statement).await?.map_or(Ok(0), |it| it.try_get_by_index(0))
}

/// Returns the number of a project's traces on which a policy reached its `max_retry_depth` at `since` (microseconds) or
/// later.
///
/// # Errors
/// Fails when the database fails.
pub async fn retry_cap_hits(db: &Db, tenant: Uuid, project: Uuid, since: i64) -> Result<i64, DbErr> {
    let sql = format!(
        "SELECT COUNT(DISTINCT a.trace_id) FROM control_action a{} WHERE a.tenant_id = $1 AND a.project_id = $2 \
         AND a.id >= $3 AND a.policy_id IS NOT NULL AND a.escalation_reason = '{}'",
        db.dialect.index_hint("ix_control_action_retry_cap"),
        EscalationReason::RetryThresholdExceeded
    );
    let values = [tenant.into(), project.into(), first_id_at(since).into()];
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    db.read.query_one_raw(statement).await?.map_or(Ok(0), |it| it.try_get_by_index(0))
}

/// Returns a page of actions, newest first, after the id `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &Db,
    tenant: Uuid,
    filter: &ActionFilter,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    let statement = page_statement(db.dialect, tenant, filter, after, limit);
    db.current().query_all_raw(statement).await?.iter().map(|it| Model::from_query_result(it, "")).collect()
}

/// Returns the statement of a page of actions.
fn page_statement(
    dialect: Dialect,
    tenant: Uuid,
    filter: &ActionFilter,
    after: Option<Uuid>,
    limit: u64,
) -> Statement {
    let ActionFilter { project_id, trace_id, policy_id, action_type, status, from, to } = filter;
    let mut values: Vec<Value> = vec![tenant.into()];
    let mut sql = String::new();
    let mut and = |condition: &str, value: Option<Value>| {
        if let Some(value) = value {
            values.push(value);
            sql += &format!(" AND a.{condition} ${}", values.len());
        }
    };
    and("project_id =", project_id.map(Into::into));
    and("trace_id =", trace_id.map(Into::into));
    and("policy_id =", policy_id.map(Into::into));
    and("action_type =", action_type.map(|it| it.as_str().into()));
    // Ids are ordered by the time, so ranges of the time are ranges of the index.
    and("id >=", from.map(|it| first_id_at(it.micros()).into()));
    and("id <", to.map(|it| first_id_at(it.micros().saturating_add(1)).into()));
    and("id <", after.map(Into::into));
    // A literal, because a partial index is used only if the query contains its condition.
    if let Some(status) = status {
        sql += &format!(" AND a.status = '{status}'");
    }
    let index = [
        (trace_id.is_some(), TRACE_INDEX),
        (*status == Some(ActionStatus::PendingApproval), "ix_control_action_pending"),
        (policy_id.is_some(), "ix_control_action_policy"),
        (project_id.is_some(), "ix_control_action_project"),
    ];
    let hint = index.into_iter().find_map(|(is_set, index)| is_set.then(|| dialect.index_hint(index)));
    let hint = hint.unwrap_or_default();
    let sql = format!(
        "SELECT * FROM control_action a{hint} WHERE a.tenant_id = $1{sql} ORDER BY a.id DESC LIMIT {limit}"
    );
    Statement::from_sql_and_values(dialect.backend(), sql, values)
}
