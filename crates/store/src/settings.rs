//! Settings of the installation.

use entities::setting;
use sea_orm::{ConnectionTrait, DbErr, EntityTrait, Set, sea_query::OnConflict};

use crate::ids::new_id;

/// Returns the value of a setting.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, name: &str) -> Result<Option<String>, DbErr> {
    Ok(setting::Entity::find_by_id(name.to_owned()).one(db).await?.map(|it| it.value))
}

/// Stores a new setting.
///
/// # Errors
/// Fails when the database fails or when the setting exists.
pub async fn add(db: &impl ConnectionTrait, name: &str, value: &str) -> Result<(), DbErr> {
    let row = setting::ActiveModel { name: Set(name.to_owned()), value: Set(value.to_owned()) };
    setting::Entity::insert(row).exec_without_returning(db).await?;
    Ok(())
}

/// The setting that holds the cache version, which changes with all data that server processes cache.
pub const CACHE_VERSION_SETTING: &str = "generation";

/// Changes the cache version, so that every process drops its access cache once the transaction is committed.
/// Call this last in a transaction, because other changes wait for the row.
///
/// # Errors
/// Fails when the database fails.
pub async fn new_generation(txn: &impl ConnectionTrait) -> Result<(), DbErr> {
    let row = setting::ActiveModel {
        name: Set(CACHE_VERSION_SETTING.to_owned()),
        value: Set(new_id().to_string()),
    };
    setting::Entity::insert(row)
        .on_conflict(
            OnConflict::column(setting::Column::Name).update_column(setting::Column::Value).to_owned(),
        )
        .exec_without_returning(txn)
        .await?;
    Ok(())
}
