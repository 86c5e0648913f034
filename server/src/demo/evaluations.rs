//! Creates the eval rules of the demo, and evaluations that look like those of a judge model: the demo
//! calls no model.

use api::eval::{EvaluationStatus, EvaluatorType, ModelTier};
use entities::{eval_rule, evaluation, trace};
use evaluators::verdict::Threshold;
use fastrand::Rng;
use serde_json::{Value, json};
use store::{evaluations, new_id};

use super::DemoTenant;
use crate::{app::App, evaluator::Evaluator};

/// One in this many traces of a project has an evaluation by a judge.
const TRACES_PER_EVALUATION: usize = 3;
/// The judge model, for its prices.
const JUDGE_MODEL: &str = "gpt-4o-mini";
/// Prices of a prompt token and of a completion token, in pico-dollars.
const TOKEN_PRICES: (i64, i64) = (150_000, 600_000);

/// Project, evaluator, config, filter and sampling rate of an eval rule.
type DemoRule = (usize, &'static str, Value, Value, f64);

/// Reasonings of a judge, best first: the minimum score and the texts.
const SAMPLE_REASONINGS: [(f64, [&str; 3]); 3] = [
    (
        0.85,
        [
            "The retrieved documents support every claim.",
            "The output answers the question and adds nothing else.",
            "The output contains all relevant facts.",
        ],
    ),
    (
        0.5,
        [
            "The retrieved documents do not contain one of the details.",
            "The output answers the question after a long digression.",
            "The output does not answer the second part of the question.",
        ],
    ),
    (
        0.0,
        [
            "The output contains a number that the retrieved documents do not contain.",
            "The output answers a different question.",
            "The output promises an action that no tool call performed.",
        ],
    ),
];

/// Returns typical eval rules of a team.
fn rules() -> Vec<DemoRule> {
    vec![
        (0, "latency_threshold", json!({"max_latency_ms": 6000}), json!({}), 1.0),
        (0, "pii_leakage", json!({}), json!({"error": false}), 0.5),
        (1, "latency_threshold", json!({"max_latency_ms": 4000}), json!({}), 1.0),
        (2, "cost_threshold", json!({"max_cost_usd": 0.05}), json!({}), 1.0),
    ]
}

/// Creates the eval rules, which are active from then on.
pub(super) async fn create_rules(app: &App, tenant: &DemoTenant) -> anyhow::Result<()> {
    let now = app.clock.now();
    let txn = app.db.begin().await?;
    for (index, (project, metric, config, filter, sample_rate)) in rules().into_iter().enumerate() {
        let at = now - (9 - i64::try_from(index)?) * 86_400_000_000;
        let row = eval_rule::Model {
            tenant_id: tenant.tenant_id,
            id: new_id(),
            project_id: tenant.projects[project],
            metric_name: metric.to_owned(),
            evaluator_type: EvaluatorType::Rule.as_str().to_owned(),
            config: config.to_string(),
            enabled: true,
            model_tier: ModelTier::Cheap.as_str().to_owned(),
            min_score_drop: Some(0.0),
            filter: filter.to_string(),
            sample_rate,
            paused_reason: None,
            paused_at: None,
            created_at: at,
            updated_at: at,
        };
        store::eval_rules::add(&txn, row).await?;
    }
    app.commit(txn).await?;
    Ok(())
}

/// Stores evaluations by a judge for some of these traces.
pub(super) async fn store_evaluations(
    app: &App,
    rng: &mut Rng,
    traces: &[trace::Model],
) -> anyhow::Result<()> {
    let now = app.clock.now();
    let mut rows = Vec::new();
    for trace in traces.iter().filter(|it| it.error.is_none()) {
        if rng.usize(..TRACES_PER_EVALUATION) == 0 {
            let metrics: &[&str] = if trace.span_count > 3 {
                &["faithfulness", "answer_relevance"]
            } else {
                &["answer_relevance"]
            };
            rows.extend(metrics.iter().filter_map(|it| sample_evaluation(rng, trace, it, now)));
        }
    }
    let txn = app.db.begin().await?;
    evaluations::add(&txn, rows).await?;
    txn.commit().await?;
    Ok(())
}

fn sample_evaluation(
    rng: &mut Rng,
    trace: &trace::Model,
    metric: &str,
    now: i64,
) -> Option<evaluation::Model> {
    let evaluator = Evaluator::builtin(metric)?;
    let ended = trace.ended_at.unwrap_or(trace.started_at);
    let created_at = ended.saturating_add(6_000_000).min(now);
    // Most answers are good, some are bad, few are in between.
    let score = if rng.f64() < 0.82 { 1.0 - rng.f64().powi(2) * 0.25 } else { rng.f64() * 0.8 };
    let score = (score * 20.0).round() / 20.0;
    let reasonings =
        SAMPLE_REASONINGS.iter().find(|it| score >= it.0).map_or(&SAMPLE_REASONINGS[2].1, |it| &it.1);
    let (prompt_tokens, completion_tokens) = (rng.i64(600..2_400), rng.i64(60..140));
    Some(evaluation::Model {
        id: new_id(),
        metric_name: metric.to_owned(),
        evaluator_type: EvaluatorType::Llm.as_str().to_owned(),
        evaluator_version: evaluator.version(),
        model_tier: Some(ModelTier::Cheap.as_str().to_owned()),
        status: EvaluationStatus::Complete.as_str().to_owned(),
        score: Some(score),
        label: Some(Threshold::default().label(score).to_owned()),
        reasoning: Some(reasonings[rng.usize(..reasonings.len())].to_owned()),
        judge_model: Some(JUDGE_MODEL.to_owned()),
        prompt_tokens: Some(prompt_tokens),
        completion_tokens: Some(completion_tokens),
        cost: Some(prompt_tokens * TOKEN_PRICES.0 + completion_tokens * TOKEN_PRICES.1),
        attempts: 1,
        completed_at: Some(created_at.saturating_add(rng.i64(900_000..4_000_000)).min(now)),
        ..evaluations::pending_row(trace.tenant_id, trace.id, trace.project_id, created_at)
    })
}
