//! Looks up rules and evaluators of a tenant, and tells why a rule does not run.

use std::sync::Arc;

use api::{Plan, eval::EvaluatorType, eval_rule::PauseReason};
use uuid::Uuid;

use crate::{
    app::App,
    error::Result,
    evaluator::{Evaluator, Own},
    judging::Nobody,
    rule_set::Rule,
};

/// Rules that run on the plan Starter: the oldest.
pub const STARTER_RULES: usize = 3;

/// How long a rule is paused whose judge can't work or whose code evaluator is too slow, in microseconds,
/// unless the rule or a credential changes before: an account may be topped up, or a key corrected by the
/// operator, without a request to this server.
pub const PAUSE: i64 = 900_000_000;

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
