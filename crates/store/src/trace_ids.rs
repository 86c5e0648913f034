//! Finds traces by their IDs.
//!
//! PostgreSQL has an index. IDs come in no order, so on SQLite each new trace would change another page of a large index,
//! and each changed page is written twice. SQLite therefore has three tables of IDs, which triggers fill: a small one of
//! new IDs, from which all are moved to one of recent IDs, from which all are moved to one of old IDs, always in their order.

use entities::{dialect::Dialect, trace};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, Statement,
    sea_query::{Alias, Expr, ExprTrait, Query},
};
use uuid::Uuid;

use crate::db::Db;

/// Number of new IDs from which they are moved.
const MAX_NEW_IDS: i64 = 8_000;
/// Number of recent IDs from which they are moved.
const MAX_RECENT_IDS: i64 = 100_000;
/// Number of recent IDs that one transaction moves.
const MOVED_PER_TRANSACTION: u64 = 10_000;

/// The view of SQLite with the columns `tenant_id`, `id` and `key` of all traces.
const SQLITE_VIEW: &str = "trace_key_by_id";

/// Returns the table or view from which statements read `key` by `tenant_id` and `id`. SQLite cannot use a view of several
/// tables in a join; read from it in a subquery.
pub fn relation(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => SQLITE_VIEW,
        Dialect::Postgres => "trace",
    }
}

/// Returns the condition that a row of `trace`, named `row`, belongs to the tenant `$1` and has one of the IDs of the
/// comma-separated `places`.
pub fn condition(dialect: Dialect, row: &str, places: &str) -> String {
    match dialect {
        // The view's rows are of the tenant. SQLite would use a condition on the row's tenant to scan an index.
        Dialect::Sqlite => format!(
            "{row}.key IN (SELECT k.key FROM {SQLITE_VIEW} k WHERE k.tenant_id = $1 AND k.id IN ({places}))"
        ),
        Dialect::Postgres => format!("{row}.tenant_id = $1 AND {row}.id IN ({places})"),
    }
}

/// Returns the condition like [`condition`], for statements of sea-orm.
pub fn are(db: &impl ConnectionTrait, tenant: Uuid, ids: impl IntoIterator<Item = Uuid>) -> Condition {
    match Dialect::of(db.get_database_backend()) {
        Dialect::Sqlite => {
            let (of_tenant, id) = (Expr::col(trace::Column::TenantId), Expr::col(trace::Column::Id));
            let keys = Query::select()
                .column(trace::Column::Key)
                .from(Alias::new(SQLITE_VIEW))
                .and_where(of_tenant.eq(tenant))
                .and_where(id.is_in(ids))
                .to_owned();
            Condition::all().add(trace::Column::Key.in_subquery(keys))
        }
        Dialect::Postgres => {
            Condition::all().add(trace::Column::TenantId.eq(tenant)).add(trace::Column::Id.is_in(ids))
        }
    }
}

/// Moves new and recent IDs into the larger tables of SQLite if they are many. Does nothing on PostgreSQL.
///
/// # Errors
/// Fails when the database fails. IDs that were not moved are found where they are.
pub async fn move_many(db: &Db) -> Result<(), DbErr> {
    if db.dialect == Dialect::Postgres || count(db, "trace_id_new").await? < MAX_NEW_IDS {
        return Ok(());
    }
    let txn = db.begin().await?;
    txn.execute_unprepared(
        "INSERT INTO trace_id_recent (tenant_id, id, key) \
         SELECT tenant_id, id, key FROM trace_id_new ORDER BY tenant_id, id; DELETE FROM trace_id_new",
    )
    .await?;
    txn.commit().await?;
    if count(db, "trace_id_recent").await? < MAX_RECENT_IDS {
        return Ok(());
    }
    // Parts of the order change few pages of the table of old IDs each, and other writers wait only for a part.
    let mut last = (Uuid::nil(), Uuid::nil());
    while let Some(end) = end_of_part(db, last).await? {
        move_recent(db, last, end).await?;
        last = end;
    }
    Ok(())
}

async fn count(db: &Db, table: &str) -> Result<i64, DbErr> {
    let statement = Statement::from_string(db.dialect.backend(), format!("SELECT COUNT(*) FROM {table}"));
    let row = db.current().query_one_raw(statement).await?;
    row.map_or(Ok(0), |it| it.try_get_by_index(0))
}

/// Returns the last of the next recent IDs, with its tenant.
async fn end_of_part(db: &Db, last: (Uuid, Uuid)) -> Result<Option<(Uuid, Uuid)>, DbErr> {
    let sql = format!(
        "SELECT tenant_id, id FROM (SELECT tenant_id, id FROM trace_id_recent WHERE (tenant_id, id) > ($1, $2) \
         ORDER BY tenant_id, id LIMIT {MOVED_PER_TRANSACTION}) ORDER BY tenant_id DESC, id DESC LIMIT 1"
    );
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [last.0.into(), last.1.into()]);
    let row = db.current().query_one_raw(statement).await?;
    row.map(|it| Ok((it.try_get_by_index(0)?, it.try_get_by_index(1)?))).transpose()
}

/// Moves the recent IDs after `last` up to `end` to the old ones.
async fn move_recent(db: &Db, last: (Uuid, Uuid), end: (Uuid, Uuid)) -> Result<(), DbErr> {
    let values = [last.0.into(), last.1.into(), end.0.into(), end.1.into()];
    let part = "FROM trace_id_recent WHERE (tenant_id, id) > ($1, $2) AND (tenant_id, id) <= ($3, $4)";
    let txn = db.begin().await?;
    for sql in [
        format!(
            "INSERT INTO trace_id_old (tenant_id, id, key) SELECT tenant_id, id, key {part} ORDER BY tenant_id, id"
        ),
        format!("DELETE {part}"),
    ] {
        txn.execute_raw(Statement::from_sql_and_values(db.dialect.backend(), sql, values.clone())).await?;
    }
    txn.commit().await
}

/// Enters the IDs of a tenant's traces again. Does nothing on PostgreSQL.
///
/// # Errors
/// Fails when the database fails; nothing has changed then.
pub async fn rebuild(db: &Db, tenant: Uuid) -> Result<(), DbErr> {
    if db.dialect == Dialect::Postgres {
        return Ok(());
    }
    let txn = db.begin().await?;
    for sql in [
        "DELETE FROM trace_id_new WHERE tenant_id = $1",
        "DELETE FROM trace_id_recent WHERE tenant_id = $1",
        "DELETE FROM trace_id_old WHERE tenant_id = $1",
        "INSERT INTO trace_id_old (tenant_id, id, key) \
         SELECT tenant_id, id, key FROM trace WHERE tenant_id = $1 ORDER BY tenant_id, id",
    ] {
        txn.execute_raw(Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into()])).await?;
    }
    txn.commit().await
}
