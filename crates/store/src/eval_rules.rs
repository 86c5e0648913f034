//! Eval rules, and the rule decisions that cannot be recomputed later.

use entities::{
    eval_rule::{Column, Entity, Model},
    rule_decision,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait,
    IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Expr, OnConflict},
};
use uuid::Uuid;

use crate::{db::Db, page::newest_first};

/// Returns an eval rule.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).one(db).await
}

/// Returns an eval rule, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(txn: &DatabaseTransaction, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).lock_exclusive().one(txn).await
}

/// Returns all eval rules of a tenant, oldest first.
///
/// # Errors
/// Fails when the database fails.
pub async fn all(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Vec<Model>, DbErr> {
    let query = Entity::find().filter(Column::TenantId.eq(tenant));
    query.order_by_asc(Column::CreatedAt).order_by_asc(Column::Id).all(db).await
}

/// Returns a page of eval rules, newest first.
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
    let query = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .apply_if(project, |query, it| query.filter(Column::ProjectId.eq(it)));
    newest_first(query, (Column::CreatedAt, Column::Id), after, limit).all(db).await
}

/// Returns the number of a tenant's eval rules.
///
/// # Errors
/// Fails when the database fails.
pub async fn count(db: &impl ConnectionTrait, tenant: Uuid) -> Result<u64, DbErr> {
    Entity::find().filter(Column::TenantId.eq(tenant)).count(db).await
}

/// Returns the total size of the configs and filters of a tenant's eval rules, in bytes.
///
/// # Errors
/// Fails when the database fails.
pub async fn stored_bytes(db: &impl ConnectionTrait, tenant: Uuid) -> Result<usize, DbErr> {
    let bytes = "CAST(COALESCE(SUM(octet_length(config) + octet_length(filter)), 0) AS BIGINT)";
    let query = Entity::find().select_only().expr(Expr::cust(bytes)).filter(Column::TenantId.eq(tenant));
    let bytes: Option<i64> = query.into_tuple().one(db).await?;
    Ok(bytes.and_then(|it| usize::try_from(it).ok()).unwrap_or(0))
}

/// Returns how many eval rules of the same tenant are older than this one, at most `most`.
///
/// # Errors
/// Fails when the database fails.
pub async fn count_older(db: &impl ConnectionTrait, row: &Model, max: u64) -> Result<usize, DbErr> {
    let same_time = Condition::all().add(Column::CreatedAt.eq(row.created_at)).add(Column::Id.lt(row.id));
    let query = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::TenantId.eq(row.tenant_id))
        .filter(Condition::any().add(Column::CreatedAt.lt(row.created_at)).add(same_time))
        .order_by_asc(Column::CreatedAt)
        .limit(max);
    Ok(query.into_tuple::<Uuid>().all(db).await?.len())
}

/// Returns how many of a tenant's eval rules run an evaluator.
///
/// # Errors
/// Fails when the database fails.
pub async fn count_using(db: &impl ConnectionTrait, tenant: Uuid, metric: &str) -> Result<u64, DbErr> {
    let query = Entity::find().filter(Column::TenantId.eq(tenant));
    query.filter(Column::MetricName.eq(metric)).count(db).await
}

/// Stores a new eval rule.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    Ok(())
}

/// Replaces the stored eval rule that has the same id.
///
/// # Errors
/// Fails when the database fails.
pub async fn replace(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}

/// Deletes an eval rule; evaluations that it requested remain. Returns false if there is no such rule.
///
/// # Errors
/// Fails when the database fails.
pub async fn delete(txn: &DatabaseTransaction, tenant: Uuid, id: Uuid) -> Result<bool, DbErr> {
    Ok(Entity::delete_by_id((tenant, id)).exec(txn).await?.rows_affected > 0)
}

/// Pauses an eval rule at `now`. Returns false if the rule is deleted, was changed after `wanted_at` (the
/// time of the request that could not be satisfied), or was paused at or after `since`. Times are in
/// microseconds.
///
/// # Errors
/// Fails when the database fails.
pub async fn pause(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    id: Uuid,
    why: &str,
    wanted_at: i64,
    (since, now): (i64, i64),
) -> Result<bool, DbErr> {
    let done = Entity::update_many()
        .col_expr(Column::PausedReason, Expr::value(why))
        .col_expr(Column::PausedAt, Expr::value(now))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Id.eq(id))
        .filter(Column::UpdatedAt.lte(wanted_at))
        .filter(Condition::any().add(Column::PausedAt.is_null()).add(Column::PausedAt.lt(since)))
        .exec(txn)
        .await?;
    Ok(done.rows_affected > 0)
}

/// Resumes all paused eval rules of a tenant.
///
/// # Errors
/// Fails when the database fails.
pub async fn resume_all(txn: &DatabaseTransaction, tenant: Uuid) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::PausedReason, Expr::value(Option::<String>::None))
        .col_expr(Column::PausedAt, Expr::value(Option::<i64>::None))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::PausedReason.is_not_null())
        .exec(txn)
        .await?;
    Ok(())
}

/// Stores why eval rules skipped traces, replacing earlier decisions of the same rule and trace.
///
/// # Errors
/// Fails when the database fails.
pub async fn store_decisions(
    txn: &DatabaseTransaction,
    rows: Vec<rule_decision::Model>,
) -> Result<(), DbErr> {
    use rule_decision::Column;
    for block in rows.chunks(1_000) {
        let on_conflict = OnConflict::columns([Column::TenantId, Column::TraceId, Column::Id])
            .update_columns([Column::Decision, Column::Detail, Column::DecidedAt])
            .to_owned();
        let rows = block.iter().map(|it| it.clone().into_active_model().reset_all());
        rule_decision::Entity::insert_many(rows).on_conflict(on_conflict).exec_without_returning(txn).await?;
    }
    Ok(())
}

/// Returns the stored decisions of an eval rule on these traces.
///
/// # Errors
/// Fails when the database fails.
pub async fn stored_decisions(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    rule: Uuid,
    traces: &[Uuid],
) -> Result<Vec<rule_decision::Model>, DbErr> {
    use rule_decision::Column;
    rule_decision::Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::TraceId.is_in(traces.iter().copied()))
        .filter(Column::Id.eq(rule))
        .all(db)
        .await
}

/// Deletes the decisions of an eval rule among the tenant's next `limit` decisions, on traces after `after`.
/// Returns the last trace visited; none if there are no further decisions.
///
/// # Errors
/// Fails when the database fails.
pub async fn delete_decisions(
    db: &Db,
    tenant: Uuid,
    rule: Uuid,
    after: Uuid,
    limit: u64,
) -> Result<Option<Uuid>, DbErr> {
    use rule_decision::Column;
    let seen = rule_decision::Entity::find()
        .select_only()
        .column(Column::TraceId)
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::TraceId.gt(after))
        .order_by_asc(Column::TraceId)
        .limit(limit);
    let Some(last) = seen.into_tuple::<Uuid>().all(db.current()).await?.pop() else { return Ok(None) };
    rule_decision::Entity::delete_many()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::TraceId.gt(after))
        .filter(Column::TraceId.lte(last))
        .filter(Column::Id.eq(rule))
        .exec(&db.write)
        .await?;
    Ok(Some(last))
}
