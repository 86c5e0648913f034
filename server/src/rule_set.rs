//! The rules and evaluators of a tenant, parsed.

use std::{collections::HashMap, sync::Arc};

use api::{
    eval::{EvaluatorType, ModelTier},
    eval_rule::RuleFilter,
};
use entities::eval_rule;
use uuid::Uuid;

use crate::evaluator::{CustomEvaluator, Evaluator};

/// A parsed eval rule.
#[derive(Debug)]
pub struct ParsedRule {
    /// The rule's row.
    pub row: eval_rule::Model,
    /// The type of its evaluator.
    pub kind: EvaluatorType,
    /// The judge tier.
    pub tier: ModelTier,
    /// The filter.
    pub filter: RuleFilter,
    /// The number of older rules of the tenant.
    pub older: usize,
}

impl ParsedRule {
    /// Parses a row; `older` rules are older.
    ///
    /// # Errors
    ///
    /// Fails when the row is invalid.
    pub fn parse(row: eval_rule::Model, older: usize) -> anyhow::Result<Self> {
        Ok(Self {
            kind: row.evaluator_type.parse()?,
            tier: row.model_tier.parse()?,
            filter: serde_json::from_str(&row.filter)?,
            older,
            row,
        })
    }
}

/// The eval rules and custom evaluators of a tenant.
#[derive(Default)]
pub struct RuleSet {
    /// The rules, oldest first.
    pub rules: Vec<Arc<ParsedRule>>,
    custom_evaluators: HashMap<String, Evaluator>,
}

impl RuleSet {
    /// Reads the stored rules and evaluators.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn read(db: &impl store::Connection, tenant: Uuid) -> Result<Self, store::DbError> {
        let mut rule_set = Self::default();
        for (older, row) in store::eval_rules::all(db, tenant).await?.into_iter().enumerate() {
            let id = row.id;
            match ParsedRule::parse(row, older) {
                Ok(rule) => rule_set.rules.push(Arc::new(rule)),
                Err(error) => {
                    tracing::error!(rule = %id, %error, "a stored rule can't be parsed and does not run")
                }
            }
        }
        for row in store::evaluators::all(db, tenant).await? {
            let name = row.name.clone();
            match CustomEvaluator::parse(row) {
                Ok(custom) => {
                    _ = rule_set.custom_evaluators.insert(name, Evaluator::Custom(Arc::new(custom)))
                }
                Err(error) => tracing::error!(name, %error, "a stored evaluator can't be parsed"),
            }
        }
        Ok(rule_set)
    }

    /// Returns the evaluator with this name.
    pub fn evaluator(&self, name: &str) -> Option<Evaluator> {
        Evaluator::builtin(name).or_else(|| self.custom_evaluators.get(name).cloned())
    }

    /// Returns a rule.
    pub fn rule(&self, id: Uuid) -> Option<&Arc<ParsedRule>> {
        self.rules.iter().find(|it| it.row.id == id)
    }
}
