//! Table `failure_rule_match`: which traces a failure rule matched.

use sea_orm::entity::prelude::*;

/// A match of a failure rule.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "failure_rule_match")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The rule.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// Time of the failure or of the evaluation, microseconds.
    #[sea_orm(primary_key, auto_increment = false)]
    pub matched_at: i64,
    /// The trace.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_id: Uuid,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
