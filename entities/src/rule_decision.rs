//! Table `rule_decision`: why a rule left out a trace, where that can't be worked out later.

use sea_orm::entity::prelude::*;

/// A trace that a rule would have judged.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "rule_decision")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The trace.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_id: Uuid,
    /// The rule.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// `quota` or `paused` of [`api::eval_rule::Decision`].
    pub decision: String,
    /// In words.
    pub detail: String,
    /// Microseconds.
    pub decided_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
