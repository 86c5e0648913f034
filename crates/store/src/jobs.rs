//! Rows of the durable queue that are inserted together with the rows that make the work necessary.

use entities::job;
use sea_orm::{ConnectionTrait, DbErr, EntityTrait, sea_query::OnConflict};

/// Inserts a job unless one with its id is stored already. Returns whether it was inserted.
///
/// # Errors
/// Fails when the database fails.
pub async fn insert_once(db: &impl ConnectionTrait, job: job::Model) -> Result<bool, DbErr> {
    let row: job::ActiveModel = job.into();
    let keep = OnConflict::new().do_nothing().to_owned();
    Ok(job::Entity::insert(row).on_conflict(keep).exec_without_returning(db).await? > 0)
}
