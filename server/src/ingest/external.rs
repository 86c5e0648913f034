//! Evaluations that clients made and sent with their spans (`gen_ai.evaluation.*`).

use api::eval::EvaluationStatus;
use entities::evaluation;
use semantics::draft::EvaluationDraft;
use store::{derived_id, evaluations, row_text::MAX_LABEL};
use uuid::Uuid;

/// What such an evaluation says judged.
pub const EXTERNAL: &str = "external";

/// Characters of a reason that are kept.
const MAX_REASON: usize = 10_000;

/// The rows of the evaluations that came with a span. The same span again gives the same ids, so
/// that what a client repeats is stored once.
pub fn rows(
    drafts: &[EvaluationDraft],
    (tenant, project): (Uuid, Uuid),
    (trace, span): (Uuid, Uuid),
    now: i64,
) -> Vec<evaluation::Model> {
    let row = |(place, draft): (usize, &EvaluationDraft)| evaluation::Model {
        id: derived_id(span, &format!("evaluation:{place}:{}", draft.name)),
        span_id: Some(span),
        metric_name: cut(&draft.name, MAX_LABEL),
        // The specification knows two types; that a client may have used code is not told.
        evaluator_type: api::EvaluatorType::Llm.as_str().to_owned(),
        evaluator_version: EXTERNAL.to_owned(),
        status: EvaluationStatus::Complete.as_str().to_owned(),
        score: draft.score.filter(|it| it.is_finite()),
        label: draft.label.as_deref().map(|it| cut(it, MAX_LABEL)),
        reasoning: draft.explanation.as_deref().map(|it| cut(it, MAX_REASON)),
        completed_at: Some(now),
        ..evaluations::pending_row(tenant, trace, project, now)
    };
    drafts.iter().enumerate().map(row).collect()
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
