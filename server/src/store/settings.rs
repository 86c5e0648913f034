//! Facts about the installation.

use entities::setting;
use sea_orm::{ConnectionTrait, DbErr, EntityTrait, Set};

/// The value of a fact.
///
/// # Errors
/// When the database fails.
pub async fn get(db: &impl ConnectionTrait, name: &str) -> Result<Option<String>, DbErr> {
    Ok(setting::Entity::find_by_id(name.to_owned()).one(db).await?.map(|it| it.value))
}

/// Notes a fact that must not be there yet.
///
/// # Errors
/// When the database fails or the fact is there.
pub async fn add(db: &impl ConnectionTrait, name: &str, value: &str) -> Result<(), DbErr> {
    let row = setting::ActiveModel { name: Set(name.to_owned()), value: Set(value.to_owned()) };
    setting::Entity::insert(row).exec_without_returning(db).await?;
    Ok(())
}
