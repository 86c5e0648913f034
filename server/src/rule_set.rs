//! The rules and evaluators of a tenant, parsed.

use std::{collections::HashMap, sync::Arc};

use api::{
    eval::{EvaluatorType, ModelTier},
    eval_rule::RuleFilter,
};
use entities::eval_rule;
use uuid::Uuid;

use crate::evaluator::{Evaluator, Own};

/// A rule, read.
#[derive(Debug)]
pub struct Rule {
    /// Its row.
    pub row: eval_rule::Model,
    /// How it judges.
    pub kind: EvaluatorType,
    /// Which judge.
    pub tier: ModelTier,
    /// Which traces.
    pub filter: RuleFilter,
    /// How many of the tenant's rules are older.
    pub older: usize,
}

impl Rule {
    /// Reads a row; `older` rules came before it.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn of(row: eval_rule::Model, older: usize) -> anyhow::Result<Self> {
        Ok(Self {
            kind: row.evaluator_type.parse()?,
            tier: row.model_tier.parse()?,
            filter: serde_json::from_str(&row.filter)?,
            older,
            row,
        })
    }
}

/// What a tenant set up.
#[derive(Default)]
pub struct Setup {
    /// Its rules, oldest first.
    pub rules: Vec<Arc<Rule>>,
    own: HashMap<String, Evaluator>,
}

impl Setup {
    /// Reads what is stored.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn read(db: &impl store::Connection, tenant: Uuid) -> Result<Self, store::DbError> {
        let mut setup = Self::default();
        for (older, row) in store::eval_rules::all(db, tenant).await?.into_iter().enumerate() {
            let id = row.id;
            match Rule::of(row, older) {
                Ok(rule) => setup.rules.push(Arc::new(rule)),
                Err(error) => {
                    tracing::error!(rule = %id, %error, "a stored rule can't be read, and does not run")
                }
            }
        }
        for row in store::evaluators::all(db, tenant).await? {
            let name = row.name.clone();
            match Own::of(row) {
                Ok(own) => _ = setup.own.insert(name, Evaluator::Own(Arc::new(own))),
                Err(error) => tracing::error!(name, %error, "a stored evaluator can't be read"),
            }
        }
        Ok(setup)
    }

    /// The evaluator of a name.
    pub fn evaluator(&self, name: &str) -> Option<Evaluator> {
        Evaluator::builtin(name).or_else(|| self.own.get(name).cloned())
    }

    /// A rule.
    pub fn rule(&self, id: Uuid) -> Option<&Arc<Rule>> {
        self.rules.iter().find(|it| it.row.id == id)
    }
}
