//! Counts traces that were stored by a version without metrics, and the tokens of those that a version without token
//! metrics counted.
//!
//! The selection of traces is SQL, because sea-orm has no index hints.

use entities::trace;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Statement,
    sea_query::Expr,
};
use uuid::Uuid;

use super::{add, delta::Delta};
use crate::{db::Db, housekeeping::next_tenant, trace_ids};

/// The index of the traces whose tokens are not counted. Uncounted traces are among them.
const UNCOUNTED_INDEX: &str = "ix_trace_tokens_unmeasured";

/// Returns the next tenant after `last` that has traces to count.
///
/// # Errors
/// Fails when the database fails.
pub async fn next_tenant_to_measure(db: &Db, last: Uuid) -> Result<Option<Uuid>, DbErr> {
    next_tenant(db, "trace", &db.dialect.index_hint(UNCOUNTED_INDEX), "NOT tokens_measured", last).await
}

/// Adds about `limit` traces of a tenant, or their tokens, to the metrics. Returns the number of traces.
///
/// # Errors
/// Fails when the database fails; nothing has changed then.
pub async fn measure(db: &Db, tenant: Uuid, limit: u64, now: i64) -> Result<usize, DbErr> {
    let sql = format!(
        "SELECT id FROM trace{} WHERE tenant_id = $1 AND NOT tokens_measured ORDER BY started_at, key LIMIT {limit}",
        db.dialect.index_hint(UNCOUNTED_INDEX)
    );
    let txn = db.begin().await?;
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, [tenant.into()]);
    let ids = txn.query_all_raw(statement).await?;
    let ids: Vec<Uuid> = ids.iter().map(|it| it.try_get_by_index(0)).collect::<Result<_, _>>()?;
    let rows = trace::Entity::find()
        .filter(trace_ids::are(&txn, tenant, ids.iter().copied()))
        .filter(trace::Column::TokensMeasured.eq(false))
        .order_by_asc(trace::Column::Id)
        .lock_exclusive()
        .all(&txn)
        .await?;
    let mut delta = Delta::default();
    for row in &rows {
        delta.replace(row, &trace::Model { measured: true, tokens_measured: true, ..row.clone() });
    }
    trace::Entity::update_many()
        .col_expr(trace::Column::Measured, Expr::value(true))
        .col_expr(trace::Column::TokensMeasured, Expr::value(true))
        .filter(trace_ids::are(&txn, tenant, rows.iter().map(|it| it.id)))
        .exec(&txn)
        .await?;
    add(&txn, tenant, delta, now).await?;
    txn.commit().await?;
    Ok(ids.len())
}
