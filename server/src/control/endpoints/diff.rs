//! The handler that compares the output of an action with the original one.

use std::{sync::Arc, time::Duration};

use api::{
    ErrorCode, Plan,
    control::{ActionStatus, DiffProgress, DiffStatus, RemediationDiff},
    eval::EvaluationStatus,
};
use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use entities::{control_action, evaluation, span};
use store::{control_actions, eval_rules, evaluations, traces};
use uuid::Uuid;

use crate::{
    access::{Access, Caller},
    app::App,
    control::diff::{EvaluatedRule, eval_delta},
    error::{Result, not_found, problem},
    http::{
        page_writer::PageWriter,
        query::path_id,
        route::{Route, route},
    },
};

/// Seconds after which a client asks again while evaluations run.
const POLL_SECONDS: &str = "2";
/// Timeout of embedding two outputs.
const EMBEDDING_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length in bytes of the beginning of an output that is embedded.
const MAX_EMBEDDED_BYTES: usize = 8 * 1024;

/// Returns the route of the diff.
pub fn routes() -> Vec<Route> {
    vec![route!(diff, Access::viewer().plan(Plan::Team)).errors(&[ErrorCode::InvalidState])]
}

/// Compare the output of an action with the original one.
///
/// Status 202 while the action, or an evaluation of its output, has not ended: ask again after `Retry-After`. An action
/// that ended without an output, or waits for approval, has no diff (409).
#[utoipa::path(get, path = "/v1/control/actions/{id}/diff", tag = "Control actions",
    params(("id" = Uuid, Path, description = "id of the action")),
    responses((status = 200, body = RemediationDiff), (status = 202, body = DiffProgress)))]
pub async fn diff(State(app): State<Arc<App>>, caller: Caller, Path(id): Path<String>) -> Result<Response> {
    let (tenant, id) = (caller.tenant_id, path_id(&id)?);
    let action = control_actions::get(app.db.current(), tenant, id).await?;
    let action = action.ok_or_else(|| not_found("control action"))?;
    let (original, remediated) = match action.status.parse().map_err(anyhow::Error::from)? {
        ActionStatus::Queued | ActionStatus::Running => return Ok(in_progress(&[])),
        ActionStatus::Succeeded => match spans_of(&app, &action).await? {
            Some(spans) => spans,
            None => return Err(not_found("span of the control action")),
        },
        status => {
            let message = format!("the action is {status}; only an executed action has a diff");
            return Err(problem(ErrorCode::InvalidState, message));
        }
    };
    let rows = evaluations::of_action(app.db.current(), tenant, action.trace_id, id).await?;
    if rows.iter().any(|it| !has_ended(it)) {
        return Ok(in_progress(&rows));
    }
    let eval_deltas = evaluated_rules(&app, tenant, &rows).await?.iter().map(eval_delta).collect();
    let mut memory = app.workspace(tenant).await?;
    let blocks = [original.body_id, remediated.body_id].into_iter().flatten();
    // A replica may not have the output of an action that has just ended.
    let db = app.db.primary();
    let mut texts = traces::TextBlocks::load(&db, tenant, blocks).await?;
    let of_original = texts.of_span(&db, &original, &mut memory).await?;
    let of_remediated = texts.of_span(&db, &remediated, &mut memory).await?;
    let (original_output, remediated_output) = (of_original.texts.output, of_remediated.texts.output);
    let outputs = (original_output.as_deref(), remediated_output.as_deref());
    let embedding_similarity = similarity(&app, &caller, &action, outputs).await;
    let delta = |one: Option<i64>, other: Option<i64>| Some(one? - other?);
    let diff = RemediationDiff {
        action_id: id,
        original_span_id: original.id,
        remediated_span_id: remediated.id,
        token_length_delta: delta(remediated.completion_tokens, original.completion_tokens),
        latency_delta_ms: delta(remediated.latency_ms, original.latency_ms),
        original_output,
        remediated_output,
        embedding_similarity,
        eval_deltas,
    };
    let reserved = of_original.reserved + of_remediated.reserved;
    Ok(PageWriter::begin_object(memory, diff, reserved).await?.finish(b"}"))
}

/// Returns the response while evaluations run.
fn in_progress(rows: &[evaluation::Model]) -> Response {
    let completed = rows.iter().filter(|it| has_ended(it)).count();
    let progress = DiffProgress { status: DiffStatus::Evaluating, completed, total: rows.len() };
    let headers = [(RETRY_AFTER, HeaderValue::from_static(POLL_SECONDS))];
    (StatusCode::ACCEPTED, headers, Json(progress)).into_response()
}

fn has_ended(row: &evaluation::Model) -> bool {
    let ended = [EvaluationStatus::Complete.as_str(), EvaluationStatus::Failed.as_str()];
    ended.contains(&row.status.as_str())
}

/// Returns the original and the remediated span; `None` if one of them is missing.
async fn spans_of(app: &App, action: &control_action::Model) -> Result<Option<(span::Model, span::Model)>> {
    let (Some(original), Some(remediated)) = (action.span_id, action.remediated_span_id) else {
        return Ok(None);
    };
    let ids = [(action.trace_id, original), (action.trace_id, remediated)];
    let rows = traces::some_spans(&app.db.primary(), action.tenant_id, &ids).await?;
    let find = |id: Uuid| rows.iter().find(|it| it.id == id).cloned();
    Ok(find(original).zip(find(remediated)))
}

/// Returns the evaluations by eval rules with their baselines.
async fn evaluated_rules(app: &App, tenant: Uuid, rows: &[evaluation::Model]) -> Result<Vec<EvaluatedRule>> {
    let baselines: Vec<Uuid> = rows.iter().filter_map(|it| it.original_evaluation_id).collect();
    let baselines = evaluations::some(app.db.current(), tenant, &baselines).await?;
    let mut rules = Vec::new();
    for row in rows {
        let Some(rule_id) = row.rule_id else { continue };
        let rule = eval_rules::get(app.db.current(), tenant, rule_id).await?;
        let baseline = baselines.iter().find(|it| Some(it.id) == row.original_evaluation_id);
        rules.push(EvaluatedRule {
            rule_id,
            metric_name: row.metric_name.clone(),
            original_score: baseline.and_then(|it| it.score),
            remediated_score: row.score,
            min_score_drop: rule.and_then(|it| it.min_score_drop),
        });
    }
    Ok(rules)
}

/// Returns the cosine similarity of the beginnings of two outputs, embedded by the tenant's provider. It is computed once
/// and stored. A provider that fails leaves it unknown, so that the diff is shown in any case.
async fn similarity(
    app: &App,
    caller: &Caller,
    action: &control_action::Model,
    (original, remediated): (Option<&str>, Option<&str>),
) -> Option<f64> {
    if action.similarity.is_some() {
        return action.similarity;
    }
    let texts = [beginning(original?), beginning(remediated?)];
    if texts.iter().any(|it| it.trim().is_empty()) {
        return None;
    }
    let provider = app.embedder.for_queries(caller.tenant_id, caller.plan).await.ok()?;
    let vectors = app.embedder.embed(&provider.endpoint, &texts, EMBEDDING_TIMEOUT).await.ok()?;
    let [one, other] = vectors.as_slice() else { return None };
    let products = one.numbers().iter().zip(other.numbers()).map(|(a, b)| f64::from(*a) * f64::from(*b));
    // Vectors of 32-bit numbers have a length of 1 only approximately.
    let similarity = products.sum::<f64>().clamp(-1.0, 1.0);
    if let Err(error) =
        control_actions::set_similarity(&app.db, caller.tenant_id, action.id, similarity).await
    {
        tracing::warn!(tenant = %caller.tenant_id, %error, "the similarity of an action's outputs was not stored");
    }
    Some(similarity)
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_EMBEDDED_BYTES)]
}
