//! Table `evaluator`: the evaluators that a tenant made.

use sea_orm::entity::prelude::*;

/// An evaluator in its newest version.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "evaluator")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant; no built-in's.
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    /// Goes up with every change, also when a deleted one is made again.
    pub version: i64,
    /// A word of [`api::eval::EvaluatorType`].
    pub evaluator_type: String,
    /// JSON object: everything else that its maker said of it; empty when it is deleted.
    pub definition: String,
    /// Microseconds; null while it is there. The row stays, so that no version comes twice.
    pub deleted_at: Option<i64>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
