//! Table `evaluator`: custom evaluators.

use sea_orm::entity::prelude::*;

/// The latest version of a custom evaluator.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "evaluator")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant; not the name of a built-in evaluator.
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    /// Incremented with every change, also when a deleted evaluator is created again.
    pub version: i64,
    /// A word of [`api::eval::EvaluatorType`].
    pub evaluator_type: String,
    /// JSON object with the remaining properties; empty when deleted.
    pub definition: String,
    /// Time of deletion, microseconds; null if not deleted. The row remains, so that no version number
    /// is reused.
    pub deleted_at: Option<i64>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
