//! External evaluations, which clients send with their spans (`gen_ai.evaluation.*`).

use std::collections::HashSet;

use api::eval::EvaluationStatus;
use entities::evaluation;
use semantics::draft::EvaluationDraft;
use store::{derived_id, evaluations, row_text::MAX_LABEL};
use uuid::Uuid;

/// The evaluator version of external evaluations.
pub const EXTERNAL_VERSION: &str = "external";

/// Maximum length of a reason in characters; longer ones are truncated.
const MAX_REASON: usize = 10_000;

/// Returns the rows of the external evaluations of a span. Their IDs are derived from their content, so that an evaluation
/// that is sent again, with its span or as a log record, is stored once.
pub fn rows(
    drafts: &[EvaluationDraft],
    (tenant, project): (Uuid, Uuid),
    (trace, span): (Uuid, Uuid),
    now: i64,
) -> Vec<evaluation::Model> {
    let mut seen = HashSet::new();
    let row = |draft: &EvaluationDraft| evaluation::Model {
        id: id(span, draft),
        span_id: Some(span),
        metric_name: cut(&draft.name, MAX_LABEL),
        // The specification has two types; whether the client used code is unknown.
        evaluator_type: api::EvaluatorType::Llm.as_str().to_owned(),
        evaluator_version: EXTERNAL_VERSION.to_owned(),
        status: EvaluationStatus::Complete.as_str().to_owned(),
        score: draft.score.filter(|it| it.is_finite()),
        label: draft.label.as_deref().map(|it| cut(it, MAX_LABEL)),
        reasoning: draft.explanation.as_deref().map(|it| cut(it, MAX_REASON)),
        completed_at: Some(now),
        ..evaluations::pending_row(tenant, trace, project, now)
    };
    drafts.iter().map(row).filter(|it| seen.insert(it.id)).collect()
}

fn id(span: Uuid, draft: &EvaluationDraft) -> Uuid {
    let EvaluationDraft { name, score, label, explanation } = draft;
    derived_id(span, &format!("evaluation:{name:?}:{score:?}:{label:?}:{explanation:?}"))
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
