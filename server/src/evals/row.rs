//! New rows of evaluations.

use api::eval::{EvaluationContext, EvaluationStatus};
use entities::evaluation;
use store::new_id;
use uuid::Uuid;

/// Returns a waiting evaluation of a trace. The caller sets the evaluator.
pub fn pending(tenant: Uuid, trace: Uuid, project: Uuid, now: i64) -> evaluation::Model {
    evaluation::Model {
        tenant_id: tenant,
        id: new_id(),
        trace_id: trace,
        project_id: project,
        span_id: None,
        metric_name: String::new(),
        evaluator_type: String::new(),
        evaluator_version: String::new(),
        config: None,
        model_tier: None,
        status: EvaluationStatus::Pending.as_str().to_owned(),
        context: EvaluationContext::Fresh.as_str().to_owned(),
        source_action_id: Uuid::nil(),
        original_evaluation_id: None,
        rule_id: None,
        bulk_id: None,
        score: None,
        label: None,
        reasoning: None,
        error: None,
        judge_model: None,
        prompt_tokens: None,
        completion_tokens: None,
        cost: None,
        attempts: 0,
        returns: 0,
        asked: 0,
        quota_month: None,
        created_at: now,
        completed_at: None,
    }
}
