//! Looks up rules and evaluators of a tenant, and tells why a rule does not run.

use std::sync::Arc;

use api::{Plan, eval::EvaluatorType, eval_rule::PauseReason};
use uuid::Uuid;

use crate::{
    app::App,
    error::Result,
    evaluator::{CustomEvaluator, Evaluator},
    judging::NoJudge,
    rule_set::ParsedRule,
};

/// Number of rules that run on the plan Starter: the oldest ones.
pub const STARTER_RULES: usize = 3;

/// How long a rule is paused whose judge cannot work or whose code evaluator is too slow, in microseconds,
/// unless the rule or a credential changes before: an account may be topped up, or a key corrected by the
/// operator, without a request to this server.
pub const PAUSE_MICROS: i64 = 900_000_000;

/// Returns an evaluator of a tenant, including one that another process has just created.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn find_evaluator(app: &App, tenant: Uuid, name: &str) -> Result<Option<Evaluator>> {
    if let Some(found) = app.access_cache.rule_set(tenant).await?.evaluator(name) {
        return Ok(Some(found));
    }
    // No name contains NUL, and PostgreSQL rejects such texts.
    if name.contains('\0') {
        return Ok(None);
    }
    let row = store::evaluators::get(app.db.current(), tenant, name).await?;
    Ok(row.map(CustomEvaluator::parse).transpose()?.map(|it| Evaluator::Custom(Arc::new(it))))
}

/// Returns a rule of a tenant, including one that another process has just created.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn find_rule(app: &App, tenant: Uuid, id: Uuid) -> Result<Option<Arc<ParsedRule>>> {
    if let Some(found) = app.access_cache.rule_set(tenant).await?.rule(id) {
        return Ok(Some(Arc::clone(found)));
    }
    let rows = store::eval_rules::all(app.db.current(), tenant).await?;
    let found = rows.into_iter().enumerate().find(|it| it.1.id == id);
    Ok(found.map(|(older, row)| ParsedRule::parse(row, older)).transpose()?.map(Arc::new))
}

/// The reason why an enabled rule does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePause {
    /// The reason as a code.
    pub reason: PauseReason,
    /// The remedy, in a sentence.
    pub detail: String,
}

/// Returns why an enabled rule does not run; `None` if it runs.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn find_pause(app: &App, tenant: Uuid, plan: Plan, rule: &ParsedRule) -> Result<Option<RulePause>> {
    let pause = |reason, detail| Ok(Some(RulePause { reason, detail }));
    let is_recent = |at: i64| app.clock.now().saturating_sub(at) < PAUSE_MICROS;
    // The database stores only pauses because of a rejected judge or a slow code evaluator, with the
    // sentence in the column. The other reasons follow from the current state.
    if let Some(why) = rule.row.paused_reason.as_ref().filter(|_| rule.row.paused_at.is_some_and(is_recent)) {
        let reason = match rule.kind {
            EvaluatorType::Rule => PauseReason::EvaluatorTooSlow,
            EvaluatorType::Llm => PauseReason::JudgeRejected,
        };
        return pause(reason, why.clone());
    }
    if plan == Plan::Starter && rule.older >= STARTER_RULES {
        let detail = format!(
            "the plan starter runs the {STARTER_RULES} oldest rules; delete one of those or upgrade the plan"
        );
        return pause(PauseReason::EvalRulesQuotaExceeded, detail);
    }
    if rule.kind == EvaluatorType::Rule {
        return Ok(None);
    }
    let Some(evaluator) = find_evaluator(app, tenant, &rule.row.metric_name).await? else {
        let detail = format!("the evaluator `{}` was deleted", rule.row.metric_name);
        return pause(PauseReason::EvaluatorMissing, detail);
    };
    let judge = app.judge.select(tenant, plan, evaluator.preferred_provider(), rule.tier).await?;
    Ok(judge.err().map(|it| RulePause { reason: reason(it), detail: it.to_string() }))
}

fn reason(missing: NoJudge) -> PauseReason {
    match missing {
        NoJudge::CredentialsMissing => PauseReason::ProviderCredentialsMissing,
        NoJudge::NotConfigured => PauseReason::JudgeNotConfigured,
        NoJudge::Sealed => PauseReason::ProviderCredentialsUnreadable,
    }
}
