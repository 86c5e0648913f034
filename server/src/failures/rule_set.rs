//! The enabled failure rules of a tenant, parsed.

use std::sync::Arc;

use api::{FailureType, eval_rule::RuleFilter};
use entities::failure_rule;
use semantics::rollup::FailureSet;
use store::traces::bit_of;
use uuid::Uuid;

/// A parsed failure rule.
#[derive(Debug)]
pub struct ParsedFailureRule {
    /// Its row.
    pub row: failure_rule::Model,
    /// The failure types that match.
    pub failure_types: FailureSet,
    /// The filter.
    pub filter: RuleFilter,
}

impl ParsedFailureRule {
    /// Parses a row.
    ///
    /// # Errors
    ///
    /// Fails when the row is invalid.
    pub fn of(row: failure_rule::Model) -> anyhow::Result<Self> {
        Ok(Self {
            failure_types: FailureSet::from_bits(u8::try_from(row.failure_types)?),
            filter: serde_json::from_str(&row.filter)?,
            row,
        })
    }

    /// Returns the types in the order of their declaration.
    pub fn types(&self) -> Vec<FailureType> {
        FailureType::ALL.iter().copied().filter(|it| self.failure_types.contains(*it)).collect()
    }

    /// Whether the rule concerns traces of a project.
    pub fn concerns(&self, project: Uuid) -> bool {
        self.row.project_id.is_none_or(|it| it == project)
    }

    /// Whether a failure with this stored type matches.
    pub fn matches_type(&self, failure_type: i16) -> bool {
        i16::from(self.failure_types.bits()) & failure_type != 0
    }

    /// Whether a score of a metric matches.
    pub fn matches_score(&self, metric: &str, score: f64) -> bool {
        self.row.metric_name.as_deref() == Some(metric) && self.row.max_score.is_some_and(|max| score <= max)
    }
}

/// Returns the stored form of failure types.
pub fn bits_of(types: impl IntoIterator<Item = FailureType>) -> i16 {
    types.into_iter().fold(0, |bits, it| bits | bit_of(it))
}

/// The enabled failure rules of a tenant.
#[derive(Debug, Default)]
pub struct FailureRules {
    /// The rules, oldest first.
    pub rules: Vec<Arc<ParsedFailureRule>>,
}

impl FailureRules {
    /// Reads the enabled rules.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn read(db: &impl store::Connection, tenant: Uuid) -> Result<Self, store::DbError> {
        let mut rules = Vec::new();
        for row in store::failure_rules::enabled(db, tenant).await? {
            let id = row.id;
            match ParsedFailureRule::of(row) {
                Ok(rule) => rules.push(Arc::new(rule)),
                Err(error) => {
                    tracing::error!(rule = %id, %error, "a stored failure rule can't be parsed and does not fire");
                }
            }
        }
        Ok(Self { rules })
    }

    /// Whether a score of a metric matches one of the rules, as far as that follows from the score.
    pub fn matches_any_score(&self, metric: &str, score: f64) -> bool {
        self.rules.iter().any(|it| it.matches_score(metric, score))
    }

    /// Whether a filter of the rules depends on the types of spans.
    pub fn depends_on_span_types(&self) -> bool {
        self.rules.iter().any(|it| it.filter.span_type.is_some())
    }
}
