//! Events of webhooks, their deliveries and attempts.

use std::collections::HashMap;

use api::webhook::DeliveryStatus;
use entities::{
    dialect::Dialect,
    webhook_attempt,
    webhook_delivery::{Column, Entity, Model},
    webhook_event,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait,
    FromQueryResult, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, Statement, Value,
    sea_query::{Expr, OnConflict, Query},
};
use uuid::Uuid;

use crate::{db::Db, housekeeping::ExpiringRows, page::newest_first};

/// Events by the time at which they occurred.
pub const EXPIRING_EVENTS: ExpiringRows = ExpiringRows::of("webhook_event", "created_at");
/// Deliveries by the time at which they were created.
pub const EXPIRING_DELIVERIES: ExpiringRows = ExpiringRows::of("webhook_delivery", "created_at");
/// Attempts by the time at which they started.
pub const EXPIRING_ATTEMPTS: ExpiringRows = ExpiringRows::of("webhook_attempt", "started_at");

/// Number of characters of a response that are kept when it is shortened. A partial index has longer responses.
pub const RESPONSE_BEGINNING_CHARS: usize = 128;

/// Number of rows that a statement inserts.
const ROWS_PER_STATEMENT: usize = 500;

/// Stores events and their deliveries.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(
    txn: &impl ConnectionTrait,
    events: &[webhook_event::Model],
    deliveries: &[Model],
) -> Result<(), DbErr> {
    for block in events.chunks(ROWS_PER_STATEMENT) {
        let rows = block.iter().map(|it| it.clone().into_active_model().reset_all());
        webhook_event::Entity::insert_many(rows).exec_without_returning(txn).await?;
    }
    for block in deliveries.chunks(ROWS_PER_STATEMENT) {
        let rows = block.iter().map(|it| it.clone().into_active_model().reset_all());
        Entity::insert_many(rows).exec_without_returning(txn).await?;
    }
    Ok(())
}

/// Claims up to `limit` due deliveries of each webhook until a time, oldest first.
///
/// # Errors
/// Fails when the database fails.
pub async fn claim(
    db: &Db,
    tenant: Uuid,
    webhooks: &[Uuid],
    (now, until): (i64, i64),
    limit: usize,
) -> Result<Vec<Model>, DbErr> {
    let due = for_each_webhook(webhooks, 5, |webhook| {
        format!(
            "SELECT id FROM webhook_delivery WHERE tenant_id = $1 AND webhook_id = {webhook} \
             AND status = 'pending' AND due_at <= $2 ORDER BY due_at, id LIMIT $3{}",
            db.dialect.for_update_skip_locked()
        )
    });
    let sql = format!(
        // Materialized: PostgreSQL may run a plain subquery once per row.
        "WITH due AS MATERIALIZED ({due}) \
         UPDATE webhook_delivery SET due_at = $4 WHERE tenant_id = $1 AND id IN (SELECT id FROM due) RETURNING *"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values: [Value; 4] = [tenant.into(), now.into(), limit.into(), until.into()];
    let values = values.into_iter().chain(webhooks.iter().map(|it| (*it).into()));
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    let rows = db.write.query_all_raw(statement).await?;
    let mut rows: Vec<Model> =
        rows.iter().map(|it| Model::from_query_result(it, "")).collect::<Result<_, _>>()?;
    rows.sort_unstable_by_key(|it| (it.created_at, it.id));
    Ok(rows)
}

/// Returns when the next delivery of each webhook is due, or a claim of one ends. Webhooks without a pending delivery are
/// left out.
///
/// # Errors
/// Fails when the database fails.
pub async fn next_due(db: &Db, tenant: Uuid, webhooks: &[Uuid]) -> Result<Vec<(Uuid, i64)>, DbErr> {
    if webhooks.is_empty() {
        return Ok(Vec::new());
    }
    let sql = for_each_webhook(webhooks, 2, |webhook| {
        format!(
            "SELECT webhook_id, due_at FROM webhook_delivery WHERE tenant_id = $1 AND webhook_id = {webhook} \
             AND status = 'pending' ORDER BY due_at LIMIT 1"
        )
    });
    let values = std::iter::once(tenant.into()).chain(webhooks.iter().map(|it| (*it).into()));
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    let rows = db.current().query_all_raw(statement).await?;
    rows.iter().map(|it| Ok((it.try_get("", "webhook_id")?, it.try_get("", "due_at")?))).collect()
}

/// Returns a query that combines the rows of one query for each webhook. `query` gets the parameter with the ID of the
/// webhook; the first has the number `first`. The limit of such a query applies to each webhook, and it reads no more
/// rows of the index than it returns, however many deliveries are pending.
fn for_each_webhook(webhooks: &[Uuid], first: usize, query: impl Fn(&str) -> String) -> String {
    let queries: Vec<String> = (first..first + webhooks.len())
        .map(|it| format!("SELECT * FROM ({}) AS of_{it}", query(&format!("${it}"))))
        .collect();
    queries.join(" UNION ALL ")
}

/// Returns the payloads of events by their ID.
///
/// # Errors
/// Fails when the database fails.
pub async fn payloads(db: &Db, tenant: Uuid, events: &[Uuid]) -> Result<HashMap<Uuid, String>, DbErr> {
    use webhook_event::Column;
    let query = webhook_event::Entity::find()
        .select_only()
        .columns([Column::Id, Column::Payload])
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Id.is_in(events.iter().copied()));
    Ok(query.into_tuple::<(Uuid, String)>().all(db.current()).await?.into_iter().collect())
}

/// The next state of claimed deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeliveryState {
    /// The status.
    pub status: DeliveryStatus,
    /// Time of the next attempt.
    pub due_at: Option<i64>,
    /// Number of attempts that were made.
    pub attempts: i32,
}

/// Changes deliveries that are claimed until `claimed_until`. Deliveries that another worker has claimed since
/// remain unchanged.
///
/// # Errors
/// Fails when the database fails.
pub async fn change(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    ids: &[Uuid],
    claimed_until: i64,
    state: DeliveryState,
    now: i64,
) -> Result<(), DbErr> {
    let DeliveryState { status, due_at, attempts } = state;
    Entity::update_many()
        .col_expr(Column::Status, Expr::value(status.as_str()))
        .col_expr(Column::DueAt, Expr::value(due_at))
        .col_expr(Column::Attempts, Expr::value(attempts))
        .col_expr(Column::CompletedAt, Expr::value((status != DeliveryStatus::Pending).then_some(now)))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Id.is_in(ids.iter().copied()))
        .filter(Column::Status.eq(DeliveryStatus::Pending.as_str()))
        .filter(Column::DueAt.eq(claimed_until))
        .exec(txn)
        .await?;
    Ok(())
}

/// Stores attempts. An attempt that is stored already is kept.
///
/// # Errors
/// Fails when the database fails.
pub async fn add_attempts(
    txn: &DatabaseTransaction,
    attempts: Vec<webhook_attempt::Model>,
) -> Result<(), DbErr> {
    if attempts.is_empty() {
        return Ok(());
    }
    let rows = attempts.into_iter().map(|it| it.into_active_model().reset_all());
    let keep = OnConflict::new().do_nothing().to_owned();
    webhook_attempt::Entity::insert_many(rows).on_conflict(keep).exec_without_returning(txn).await?;
    Ok(())
}

/// Shortens the long responses of a webhook except the newest `max_long` to their first
/// [`RESPONSE_BEGINNING_CHARS`] characters.
///
/// # Errors
/// Fails when the database fails.
pub async fn shorten_responses(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    webhook: Uuid,
    max_long: u16,
) -> Result<(), DbErr> {
    let dialect = Dialect::of(txn.get_database_backend());
    // SQLite uses the partial index only if the query contains its condition literally.
    let long =
        format!("tenant_id = $1 AND webhook_id = $2 AND length(response_body) > {RESPONSE_BEGINNING_CHARS}");
    let hint = dialect.index_hint("ix_webhook_attempt_response");
    let sql = format!(
        "UPDATE webhook_attempt{hint} SET response_body = substr(response_body, 1, {RESPONSE_BEGINNING_CHARS}) \
         WHERE {long} AND started_at <= (SELECT started_at FROM webhook_attempt{hint} WHERE {long} \
         ORDER BY started_at DESC LIMIT 1 OFFSET {max_long})"
    );
    let values: [Value; 2] = [tenant.into(), webhook.into()];
    txn.execute_raw(Statement::from_sql_and_values(dialect.backend(), sql, values)).await?;
    Ok(())
}

/// Postpones the due deliveries of a webhook.
///
/// # Errors
/// Fails when the database fails.
pub async fn postpone(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    webhook: Uuid,
    now: i64,
    until: i64,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::DueAt, Expr::value(until))
        .filter(pending(tenant, webhook))
        .filter(Column::DueAt.lte(now))
        .exec(txn)
        .await?;
    Ok(())
}

/// Cancels up to `limit` pending deliveries of a webhook. Returns their number.
///
/// # Errors
/// Fails when the database fails.
pub async fn cancel(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    webhook: Uuid,
    now: i64,
    limit: u64,
) -> Result<u64, DbErr> {
    let some = Query::select()
        .column(Column::Id)
        .from(Entity)
        .cond_where(pending(tenant, webhook))
        .limit(limit)
        .to_owned();
    let done = Entity::update_many()
        .col_expr(Column::Status, Expr::value(DeliveryStatus::Cancelled.as_str()))
        .col_expr(Column::DueAt, Expr::value(Option::<i64>::None))
        .col_expr(Column::CompletedAt, Expr::value(now))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Id.in_subquery(some))
        .exec(txn)
        .await?;
    Ok(done.rows_affected)
}

/// Returns a page of the deliveries to a webhook, newest first.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    webhook: Uuid,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    let query = Entity::find().filter(Column::TenantId.eq(tenant)).filter(Column::WebhookId.eq(webhook));
    newest_first(query, (Column::CreatedAt, Column::Id), after, limit).all(db).await
}

/// Returns the attempts of deliveries, by delivery, first to last.
///
/// # Errors
/// Fails when the database fails.
pub async fn attempts(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    deliveries: &[Uuid],
) -> Result<Vec<webhook_attempt::Model>, DbErr> {
    use webhook_attempt::Column;
    webhook_attempt::Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeliveryId.is_in(deliveries.iter().copied()))
        .order_by_asc(Column::DeliveryId)
        .order_by_asc(Column::Attempt)
        .all(db)
        .await
}

/// Returns a delivery to a webhook, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    webhook: Uuid,
    id: Uuid,
) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).filter(Column::WebhookId.eq(webhook)).lock_exclusive().one(txn).await
}

/// Makes a locked delivery due at a time.
///
/// # Errors
/// Fails when the database fails.
pub async fn make_due(txn: &DatabaseTransaction, row: &Model, at: i64) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::DueAt, Expr::value(at))
        .filter(Column::TenantId.eq(row.tenant_id))
        .filter(Column::Id.eq(row.id))
        .exec(txn)
        .await?;
    Ok(())
}

/// Returns an event.
///
/// # Errors
/// Fails when the database fails.
pub async fn event(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    id: Uuid,
) -> Result<Option<webhook_event::Model>, DbErr> {
    webhook_event::Entity::find_by_id((tenant, id)).one(db).await
}

/// Selects the pending deliveries of a webhook.
fn pending(tenant: Uuid, webhook: Uuid) -> Condition {
    Condition::all()
        .add(Column::TenantId.eq(tenant))
        .add(Column::WebhookId.eq(webhook))
        // SQLite uses the partial index only if the query contains its condition literally.
        .add(Expr::cust("status = 'pending'"))
}
