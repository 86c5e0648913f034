//! Prices of models that tenants set.

use std::collections::HashMap;

use api::model::ModelPrice;
use entities::model_price;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, Set, sea_query::OnConflict};
use uuid::Uuid;

/// Returns all prices that a tenant set, by model.
///
/// # Errors
/// Fails when the database fails.
pub async fn all(db: &impl ConnectionTrait, tenant: Uuid) -> Result<HashMap<String, ModelPrice>, DbErr> {
    let rows = model_price::Entity::find().filter(model_price::Column::TenantId.eq(tenant)).all(db).await?;
    rows.into_iter()
        .map(|row| {
            let price = serde_json::from_str(&row.price).map_err(|it| DbErr::Custom(it.to_string()))?;
            Ok((row.name, price))
        })
        .collect()
}

/// Sets the price of a model.
///
/// # Errors
/// Fails when the database fails.
pub async fn set(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    name: &str,
    price: &ModelPrice,
    now: i64,
) -> Result<(), DbErr> {
    let row = model_price::ActiveModel {
        tenant_id: Set(tenant),
        name: Set(name.to_owned()),
        price: Set(serde_json::to_string(price).map_err(|it| DbErr::Custom(it.to_string()))?),
        updated_at: Set(now),
    };
    model_price::Entity::insert(row)
        .on_conflict(
            OnConflict::columns([model_price::Column::TenantId, model_price::Column::Name])
                .update_columns([model_price::Column::Price, model_price::Column::UpdatedAt])
                .to_owned(),
        )
        .exec_without_returning(db)
        .await?;
    Ok(())
}
