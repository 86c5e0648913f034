//! The rules and evaluators of a tenant as a process remembers them.

use std::{collections::HashMap, sync::Arc};

use api::{
    Plan,
    eval::{EvaluatorType, ModelTier},
    eval_rule::{PauseReason, RuleFilter},
};
use entities::eval_rule;
use uuid::Uuid;

use super::evaluator::{Evaluator, Own};
use crate::{app::App, error::Result, judging::Nobody};

/// Rules that run on the plan Starter: the oldest.
pub const STARTER_RULES: usize = 3;

/// How long a rule is paused whose judge can't work or whose code evaluator is too slow, in microseconds,
/// unless the rule or a credential changes before: an account may be topped up, or a key corrected by the
/// operator, without a request to this server.
pub const PAUSE: i64 = 900_000_000;

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

/// An evaluator of a tenant, also one that another process made a moment ago.
///
/// # Errors
/// When the database fails.
pub async fn evaluator(app: &App, tenant: Uuid, name: &str) -> Result<Option<Evaluator>> {
    if let Some(found) = app.known.setup(tenant).await?.evaluator(name) {
        return Ok(Some(found));
    }
    // No name has it, and PostgreSQL takes no such text.
    if name.contains('\0') {
        return Ok(None);
    }
    let row = store::evaluators::get(app.db.current(), tenant, name).await?;
    Ok(row.map(Own::of).transpose()?.map(|it| Evaluator::Own(Arc::new(it))))
}

/// A rule of a tenant, also one that another process made a moment ago.
///
/// # Errors
/// When the database fails.
pub async fn rule(app: &App, tenant: Uuid, id: Uuid) -> Result<Option<Arc<Rule>>> {
    if let Some(found) = app.known.setup(tenant).await?.rule(id) {
        return Ok(Some(Arc::clone(found)));
    }
    let rows = store::eval_rules::all(app.db.current(), tenant).await?;
    let found = rows.into_iter().enumerate().find(|it| it.1.id == id);
    Ok(found.map(|(older, row)| Rule::of(row, older)).transpose()?.map(Arc::new))
}

/// The reason why an enabled rule does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The reason as a code.
    pub reason: PauseReason,
    /// What to do about it, in a sentence.
    pub detail: String,
}

/// Why a rule that is enabled does not run; none when it does.
///
/// # Errors
/// When the database fails.
pub async fn paused(app: &App, tenant: Uuid, plan: Plan, rule: &Rule) -> Result<Option<Pause>> {
    let pause = |reason, detail| Ok(Some(Pause { reason, detail }));
    let rests = |at: i64| app.clock.now().saturating_sub(at) < PAUSE;
    // The database stores only pauses because of a rejected judge or a slow code evaluator, with the
    // sentence in the column. The other reasons follow from the current state.
    if let Some(why) = rule.row.paused_reason.as_ref().filter(|_| rule.row.paused_at.is_some_and(rests)) {
        let reason = match rule.kind {
            EvaluatorType::Rule => PauseReason::EvaluatorTooSlow,
            EvaluatorType::Llm => PauseReason::JudgeRejected,
        };
        return pause(reason, why.clone());
    }
    if plan == Plan::Starter && rule.older >= STARTER_RULES {
        let detail = format!(
            "the plan starter runs the {STARTER_RULES} oldest rules; delete one of those or take a higher plan"
        );
        return pause(PauseReason::EvalRulesQuotaExceeded, detail);
    }
    if rule.kind == EvaluatorType::Rule {
        return Ok(None);
    }
    let Some(evaluator) = evaluator(app, tenant, &rule.row.metric_name).await? else {
        let detail = format!("there is no evaluator `{}` any more", rule.row.metric_name);
        return pause(PauseReason::EvaluatorMissing, detail);
    };
    let judge = app.judge.choose(tenant, plan, evaluator.prefers(), rule.tier).await?;
    Ok(judge.err().map(|it| Pause { reason: reason(it), detail: it.to_string() }))
}

fn reason(nobody: Nobody) -> PauseReason {
    match nobody {
        Nobody::CredentialsMissing => PauseReason::ProviderCredentialsMissing,
        Nobody::NotConfigured => PauseReason::JudgeNotConfigured,
        Nobody::Sealed => PauseReason::ProviderCredentialsUnreadable,
    }
}
