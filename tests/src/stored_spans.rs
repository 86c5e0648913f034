//! The stored spans of a tenant, in span blocks and in rows.

#![allow(clippy::unwrap_used, reason = "a failed query fails the test")]

use entities::{span, span_block};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter};
use store::span_block::unpack;
use uuid::Uuid;

use crate::TestApp;

/// Returns all stored spans of a tenant, in no order.
pub async fn all(app: &TestApp, tenant: Uuid) -> Vec<span::Model> {
    let query = span::Entity::find().filter(span::Column::TenantId.eq(tenant));
    let rows = query.all(&app.app.db.write).await.unwrap();
    blocks(app, tenant).await.iter().flat_map(|it| unpack(it).unwrap()).chain(rows).collect()
}

/// Returns the span blocks of a tenant.
pub async fn blocks(app: &TestApp, tenant: Uuid) -> Vec<span_block::Model> {
    let query = span_block::Entity::find().filter(span_block::Column::TenantId.eq(tenant));
    query.all(&app.app.db.write).await.unwrap()
}

/// Moves the spans of a tenant from blocks into rows, as versions before span blocks stored them.
pub async fn move_into_rows(app: &TestApp, tenant: Uuid) {
    let db = &app.app.db.write;
    for block in blocks(app, tenant).await {
        let spans = unpack(&block).unwrap().into_iter().map(|it| it.into_active_model().reset_all());
        span::Entity::insert_many(spans).exec_without_returning(db).await.unwrap();
        span_block::Entity::delete_by_id((tenant, block.trace_key)).exec(db).await.unwrap();
    }
}
