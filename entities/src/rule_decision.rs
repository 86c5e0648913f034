//! Table `rule_decision`: skip reasons of eval rules that cannot be recomputed later.

use sea_orm::entity::prelude::*;

/// A trace that a rule matched but did not evaluate.
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
    /// Explains the decision.
    pub detail: String,
    /// Microseconds.
    pub decided_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
