//! Converts rows of evaluations and rules to wire types.

use api::{
    Timestamp,
    eval::{Bulk, BulkStatus, Evaluation},
    eval_rule::EvalRule,
    evaluator::Evaluator as WireEvaluator,
};
use entities::{eval_bulk, eval_rule, evaluation};
use evaluators::custom;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use uuid::Uuid;

use super::rules::RulePause;
use crate::{
    error::Result,
    evaluator::{CustomEvaluator, Evaluator},
};

/// Converts an evaluation.
///
/// # Errors
///
/// Fails when the row is invalid.
pub fn evaluation(row: evaluation::Model) -> Result<Evaluation> {
    let invalid = anyhow::Error::from;
    Ok(Evaluation {
        id: row.id,
        trace_id: row.trace_id,
        project_id: row.project_id,
        span_id: row.span_id,
        metric_name: row.metric_name,
        evaluator_type: row.evaluator_type.parse().map_err(invalid)?,
        evaluator_version: row.evaluator_version,
        status: row.status.parse().map_err(invalid)?,
        context: row.context.parse().map_err(invalid)?,
        score: row.score,
        label: row.label,
        reasoning: row.reasoning,
        error: row.error,
        rule_id: row.rule_id,
        bulk_id: row.bulk_id,
        source_action_id: Some(row.source_action_id).filter(|it| *it != Uuid::nil()),
        original_evaluation_id: row.original_evaluation_id,
        model_tier: row.model_tier.map(|it| it.parse()).transpose().map_err(invalid)?,
        judge_model: row.judge_model,
        prompt_tokens: row.prompt_tokens,
        completion_tokens: row.completion_tokens,
        cost: row.cost.map(semantics::money::to_usd),
        created_at: Timestamp::from_micros(row.created_at),
        completed_at: row.completed_at.map(Timestamp::from_micros),
    })
}

/// Converts a rule; `paused` is the reason why it does not run.
///
/// # Errors
///
/// Fails when the row is invalid.
pub fn rule(row: eval_rule::Model, paused: Option<RulePause>) -> Result<EvalRule> {
    let (reason, detail) = paused.map(|it| (it.reason.as_str().to_owned(), it.detail)).unzip();
    let invalid = anyhow::Error::from;
    let invalid_json = anyhow::Error::from;
    Ok(EvalRule {
        id: row.id,
        project_id: row.project_id,
        metric_name: row.metric_name,
        evaluator_type: row.evaluator_type.parse().map_err(invalid)?,
        config: RawValue::from_string(row.config).map_err(invalid_json)?,
        enabled: row.enabled,
        model_tier: row.model_tier.parse().map_err(invalid)?,
        min_score_drop: row.min_score_drop,
        filter: serde_json::from_str(&row.filter).map_err(invalid_json)?,
        sample_rate: row.sample_rate,
        paused_reason: reason,
        paused_detail: detail,
        created_at: Timestamp::from_micros(row.created_at),
        updated_at: Timestamp::from_micros(row.updated_at),
    })
}

/// Converts a bulk evaluation, with the number of its evaluations by status.
pub fn bulk(row: eval_bulk::Model, progress: &BTreeMap<String, i64>) -> Bulk {
    let count = |word: &str| progress.get(word).copied().unwrap_or(0);
    let (pending, running) = (count("pending"), count("running"));
    let status =
        if row.filled && pending == 0 && running == 0 { BulkStatus::Complete } else { BulkStatus::Running };
    // A bulk evaluation creates as many evaluations as it reserved, so those not yet created are
    // waiting too. For a backfill the number is not known in advance.
    let to_come = if row.filled || row.rule_id.is_some() { 0 } else { (row.granted - row.queued).max(0) };
    Bulk {
        bulk_id: row.id,
        metric_name: row.metric_name,
        rule_id: row.rule_id,
        status,
        matched: row.matched,
        queued: row.queued + to_come,
        pending: pending + to_come,
        running,
        complete: count("complete"),
        failed: count("failed"),
        detail: row.detail,
        created_at: Timestamp::from_micros(row.created_at),
    }
}

/// Converts an evaluator.
pub fn evaluator(evaluator: &Evaluator) -> WireEvaluator {
    match evaluator {
        Evaluator::Builtin(it) => it.described(),
        Evaluator::Custom(it) => custom(it, evaluator),
    }
}

fn custom(custom: &CustomEvaluator, evaluator: &Evaluator) -> WireEvaluator {
    let (row, definition) = (&custom.row, &custom.definition);
    let is_rule = evaluator.types() == [api::EvaluatorType::Rule];
    WireEvaluator {
        name: row.name.clone(),
        display_name: definition.display_name.clone().unwrap_or_else(|| row.name.clone()),
        tags: definition.tags.clone().unwrap_or_default(),
        evaluator_type: evaluator.types()[0],
        evaluator_types: evaluator.types().to_vec(),
        description: definition.description.clone().unwrap_or_default(),
        version: row.version,
        config_schema: custom::config::options(definition.config_schema.as_ref()),
        builtin: false,
        rubric: definition.rubric.clone(),
        scale: definition.scale.clone(),
        checks: definition.checks.clone(),
        combine: is_rule.then(|| custom.combine()),
        created_at: Some(Timestamp::from_micros(row.created_at)),
        updated_at: Some(Timestamp::from_micros(row.updated_at)),
    }
}
