//! Failure rules, and the traces that they matched.

use std::collections::HashSet;

use entities::{
    failure_rule::{Column, Entity, Model},
    failure_rule_match,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait,
    IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, sea_query::Expr,
};
use uuid::Uuid;

use crate::{housekeeping::ExpiringRows, page::newest_first};

/// Matches of rules by the time of the match.
pub const EXPIRING_MATCHES: ExpiringRows = ExpiringRows::of("failure_rule_match", "matched_at");

/// Number of rows per statement, because databases limit the number of parameters.
const ROWS_PER_STATEMENT: usize = 500;

/// Returns a failure rule.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).one(db).await
}

/// Returns those of these rules that exist, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(txn: &DatabaseTransaction, tenant: Uuid, ids: &[Uuid]) -> Result<Vec<Model>, DbErr> {
    let query = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Id.is_in(ids.iter().copied()))
        .order_by_asc(Column::Id)
        .lock_exclusive();
    query.all(txn).await
}

/// Returns all enabled failure rules of a tenant, oldest first.
///
/// # Errors
/// Fails when the database fails.
pub async fn enabled(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Vec<Model>, DbErr> {
    let query = Entity::find().filter(Column::TenantId.eq(tenant)).filter(Column::Enabled.eq(true));
    query.order_by_asc(Column::CreatedAt).order_by_asc(Column::Id).all(db).await
}

/// Returns a page of failure rules, newest first. With a project, also the rules of all projects.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    project: Option<Uuid>,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    let query = Entity::find().filter(Column::TenantId.eq(tenant)).apply_if(project, |query, it| {
        query.filter(Condition::any().add(Column::ProjectId.eq(it)).add(Column::ProjectId.is_null()))
    });
    newest_first(query, (Column::CreatedAt, Column::Id), after, limit).all(db).await
}

/// Returns the number of a tenant's failure rules.
///
/// # Errors
/// Fails when the database fails.
pub async fn count(db: &impl ConnectionTrait, tenant: Uuid) -> Result<u64, DbErr> {
    Entity::find().filter(Column::TenantId.eq(tenant)).count(db).await
}

/// Stores a new failure rule.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(txn: &impl ConnectionTrait, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    Ok(())
}

/// Replaces the stored failure rule that has the same id.
///
/// # Errors
/// Fails when the database fails.
pub async fn replace(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}

/// Deletes a failure rule. Its matches expire. Returns false if there is no such rule.
///
/// # Errors
/// Fails when the database fails.
pub async fn delete(txn: &DatabaseTransaction, tenant: Uuid, id: Uuid) -> Result<bool, DbErr> {
    Ok(Entity::delete_by_id((tenant, id)).exec(txn).await?.rows_affected > 0)
}

/// Stores the time at which rules fired, microseconds.
///
/// # Errors
/// Fails when the database fails.
pub async fn set_fired(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    ids: impl IntoIterator<Item = Uuid>,
    now: i64,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::LastFiredAt, Expr::value(now))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Id.is_in(ids))
        .exec(txn)
        .await?;
    Ok(())
}

/// Returns the stored matches of these rules and traces, as pairs of rule and trace.
///
/// # Errors
/// Fails when the database fails.
pub async fn matched(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    rules: &[Uuid],
    traces: &[Uuid],
) -> Result<HashSet<(Uuid, Uuid)>, DbErr> {
    use failure_rule_match::Column;
    let mut found = HashSet::new();
    for block in traces.chunks(ROWS_PER_STATEMENT) {
        let query = failure_rule_match::Entity::find()
            .select_only()
            .columns([Column::Id, Column::TraceId])
            .filter(Column::TenantId.eq(tenant))
            .filter(Column::TraceId.is_in(block.iter().copied()))
            .filter(Column::Id.is_in(rules.iter().copied()));
        found.extend(query.into_tuple::<(Uuid, Uuid)>().all(txn).await?);
    }
    Ok(found)
}

/// Returns the times of the newest `limit` matches of a rule within a period, both ends inclusive, in microseconds.
///
/// # Errors
/// Fails when the database fails.
pub async fn match_times(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    rule: Uuid,
    (from, to): (i64, i64),
    limit: u64,
) -> Result<Vec<i64>, DbErr> {
    use failure_rule_match::Column;
    let query = failure_rule_match::Entity::find()
        .select_only()
        .column(Column::MatchedAt)
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Id.eq(rule))
        .filter(Column::MatchedAt.between(from, to))
        .order_by_desc(Column::MatchedAt)
        .limit(limit);
    query.into_tuple().all(txn).await
}

/// Stores new matches.
///
/// # Errors
/// Fails when the database fails, or a rule has matched a trace already.
pub async fn add_matches(txn: &DatabaseTransaction, rows: &[failure_rule_match::Model]) -> Result<(), DbErr> {
    for block in rows.chunks(ROWS_PER_STATEMENT) {
        let rows = block.iter().map(|it| it.clone().into_active_model().reset_all());
        failure_rule_match::Entity::insert_many(rows).exec_without_returning(txn).await?;
    }
    Ok(())
}
