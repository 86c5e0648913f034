//! Handlers of evaluations, on demand and in bulk.

use std::sync::Arc;

use api::{
    ErrorCode, Timestamp,
    eval::{
        Bulk, BulkStarted, Evaluation, EvaluationContext, EvaluationFilter, EvaluationList, EvaluationStatus,
        EvaluatorType, NewBulk, NewEvaluation,
    },
    trace_filter::{TraceConditions, TraceFilter, ValueType},
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use serde_json::{Map, Value};
use store::{bulk_runs, projects, rates::RateBucket};

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::{Error, Problem, Result, not_found},
    evals::{
        bulk,
        evaluation_request::{self, EvaluationRequest},
        view,
    },
    http::{
        query::{Query, invalid, path_id},
        read::ApiJson,
        route::{Route, route},
        trace_filter,
    },
};

/// Error codes of requesting evaluations of a trace, or of many.
const EVALUATION_ERRORS: &[ErrorCode] = &[
    ErrorCode::NotFound,
    ErrorCode::ProviderCredentialsMissing,
    ErrorCode::JudgeNotConfigured,
    ErrorCode::EvalQuotaExceeded,
];

/// Returns the routes of evaluations.
pub fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::viewer().keys(Keys::Query)),
        route!(create, Access::member().keys(Keys::Full))
            .counts_to(RateBucket::Eval)
            .errors(EVALUATION_ERRORS),
        route!(create_bulk, Access::member().keys(Keys::Full)).errors(EVALUATION_ERRORS),
        route!(bulk_progress, Access::viewer().keys(Keys::Query)),
        route!(detail, Access::viewer().keys(Keys::Query)),
    ]
}

/// Evaluate a trace.
///
/// The evaluation runs in the background: poll it until its `status` is `complete` or `failed`. An
/// evaluation of type `llm` uses the monthly quota, which is restored if it fails.
#[utoipa::path(post, path = "/v1/eval", tag = "Evaluations", request_body = NewEvaluation,
    responses((status = 202, description = "the evaluation is queued", body = Evaluation)))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<NewEvaluation>,
) -> Result<(StatusCode, Json<Evaluation>)> {
    let row = evaluation_request::create(&app, caller.tenant_id, caller.plan, body).await?;
    Ok((StatusCode::ACCEPTED, Json(view::evaluation(row)?)))
}

/// Show an evaluation.
#[utoipa::path(get, path = "/v1/eval/{id}", tag = "Evaluations", params(("id" = Uuid, Path, description = "ID of the evaluation")),
    responses((status = 200, body = Evaluation)))]
pub async fn detail(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Evaluation>> {
    let row = store::evaluations::get(&app.db, caller.tenant_id, path_id(&id)?).await?;
    Ok(Json(view::evaluation(row.ok_or_else(|| not_found("evaluation"))?)?))
}

/// List evaluations by creation time, newest first. All filters must match.
#[utoipa::path(get, path = "/v1/eval", tag = "Evaluations", params(
    ("project_id" = Option<Uuid>, Query, description = "of traces of this project"),
    ("trace_id" = Option<Uuid>, Query, description = "of this trace"),
    ("metric_name" = Option<String>, Query, description = "by this evaluator"),
    ("evaluator_type" = Option<EvaluatorType>, Query, description = "llm or rule"),
    ("status" = Option<EvaluationStatus>, Query, description = "pending, running, complete or failed"),
    ("label" = Option<String>, Query, description = "pass, warn, fail, or a label of the evaluator's scale"),
    ("context" = Option<EvaluationContext>, Query, description = "fresh or remediation"),
    ("rule_id" = Option<Uuid>, Query, description = "created by this eval rule"),
    ("from" = Option<Timestamp>, Query, description = "created at this time or later"),
    ("to" = Option<Timestamp>, Query, description = "created at this time or earlier"),
    ("min_score" = Option<f64>, Query, description = "with at least this score"),
    ("max_score" = Option<f64>, Query, description = "with at most this score"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = EvaluationList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<EvaluationList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let (from, to) = Query::ordered(("from", "to"), (query.time("from")?, query.time("to")?))?;
    let (min_score, max_score) = (number(&query, "min_score")?, number(&query, "max_score")?);
    if min_score.zip(max_score).is_some_and(|(min, max)| max < min) {
        return Err(invalid("max_score", "must not be less than min_score"));
    }
    let filter = EvaluationFilter {
        project_id: query.uuid("project_id")?,
        trace_id: query.uuid("trace_id")?,
        metric_name: query.filled_text("metric_name")?,
        evaluator_type: word(&query, "evaluator_type")?,
        status: word(&query, "status")?,
        label: query.filled_text("label")?,
        context: word(&query, "context")?,
        rule_id: query.uuid("rule_id")?,
        from: from.map(Timestamp::from_micros),
        to: to.map(Timestamp::from_micros),
        min_score,
        max_score,
    };
    let scope = scope(&filter);
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let mut rows = store::evaluations::page(&app.db.read, tenant, &filter, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.created_at, it.id));
    Ok(Json(EvaluationList {
        evaluations: rows.into_iter().map(view::evaluation).collect::<Result<_>>()?,
        has_more: next_cursor.is_some(),
        next_cursor,
    }))
}

/// Evaluate all traces that match a filter.
///
/// `filter` accepts the parameters of `GET /v1/traces` except `q`, `cursor`, `limit` and `preview`;
/// `tag` may be a list whose tags must all match. Traces stored later are not included. `queued` is
/// smaller than `matched` when the monthly quota is exhausted.
#[utoipa::path(post, path = "/v1/eval/bulk", tag = "Evaluations", request_body = NewBulk,
    responses((status = 202, description = "the evaluations are being created", body = BulkStarted)))]
pub async fn create_bulk(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<NewBulk>,
) -> Result<(StatusCode, Json<BulkStarted>)> {
    let NewBulk { metric_name, evaluator_type, filter, config, model_tier } = body;
    let (tenant, kind, tier) = (caller.tenant_id, evaluator_type.as_deref(), model_tier.as_deref());
    let request = EvaluationRequest::validate(&app, tenant, &metric_name, kind, config, tier).await?;
    let filter = parse_filter(filter.unwrap_or_default())?;
    if let Some(project) = filter.project_id
        && projects::get(app.db.current(), tenant, project).await?.is_none()
    {
        return Err(not_found("project"));
    }
    request.require_judge(&app, tenant, caller.plan).await?;
    let row = bulk::start(&app, tenant, caller.plan, &request, filter, None).await?;
    Ok((
        StatusCode::ACCEPTED,
        Json(BulkStarted { matched: row.matched, queued: row.granted, bulk_id: row.id }),
    ))
}

/// Show the progress of a bulk evaluation or backfill. It is deleted after 30 days.
#[utoipa::path(get, path = "/v1/eval/bulk/{id}", tag = "Evaluations", params(("id" = Uuid, Path, description = "`bulk_id` of the bulk evaluation or backfill")),
    responses((status = 200, body = Bulk)))]
pub async fn bulk_progress(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Bulk>> {
    let (tenant, id, db) = (caller.tenant_id, path_id(&id)?, app.db.current());
    let row = bulk_runs::get(db, tenant, id).await?.ok_or_else(|| not_found("bulk run"))?;
    let progress = store::evaluations::progress(db, tenant, id).await?;
    Ok(Json(view::bulk(row, &progress)))
}

/// Parses the filter of a bulk evaluation. Unknown and empty fields are rejected: ignoring one would
/// evaluate, and cost, more than intended.
fn parse_filter(filter: Map<String, Value>) -> Result<TraceConditions> {
    let mut pairs = Vec::new();
    for (name, value) in filter {
        let invalid_value = |why: &str| Err(Problem::field(format!("filter.{name}"), why).into());
        match TraceFilter::with_parameter(&name).map(|it| it.definition().value_type) {
            Some(ValueType::Words) => {
                return invalid_value("is not allowed here: text search covers only the newest traces");
            }
            Some(_) => {}
            None => {
                return invalid_value(&format!(
                    "is not a filter of traces; filters: {}",
                    filters().join(", ")
                ));
            }
        }
        let values = match value {
            Value::Null => continue,
            Value::Array(values) if name == "tag" => values,
            Value::Array(_) => return invalid_value("must be one value, not a list"),
            value => vec![value],
        };
        if values.is_empty() {
            return invalid_value("must not be empty");
        }
        for value in values {
            let text = match value {
                Value::String(text) => text,
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    return invalid_value("must be a text, a number, true or false");
                }
            };
            // The value of a tag may be empty.
            if text.is_empty() && name != "tag_value" {
                return invalid_value("must not be empty");
            }
            if text.contains('\0') {
                return invalid_value("must not contain NUL");
            }
            pairs.push((name.clone(), text));
        }
    }
    trace_filter::conditions(&Query::of(pairs)).map_err(|error| match error {
        Error::Problem(problem) => {
            let message = problem.message.clone();
            Problem::field("filter", message).into()
        }
        other => other,
    })
}

/// Returns the parameters of the trace list that select the traces of a bulk evaluation.
fn filters() -> Vec<&'static str> {
    let definitions = TraceFilter::ALL.iter().map(|it| it.definition());
    let filters = definitions.filter(|it| it.value_type != ValueType::Words);
    filters.flat_map(|it| it.parameters).map(|it| it.name).collect()
}

/// Returns the scope of the list's cursors. Cursors are signed for this text, so it stays as it is.
fn scope(filter: &EvaluationFilter) -> String {
    let EvaluationFilter {
        project_id,
        trace_id,
        metric_name,
        evaluator_type,
        status,
        label,
        context,
        rule_id,
        from,
        to,
        min_score,
        max_score,
    } = filter;
    let (from, to) = (from.map(Timestamp::micros), to.map(Timestamp::micros));
    format!(
        "evaluations Filter {{ project_id: {project_id:?}, trace_id: {trace_id:?}, metric_name: {metric_name:?}, \
         evaluator_type: {evaluator_type:?}, status: {status:?}, label: {label:?}, context: {context:?}, \
         rule_id: {rule_id:?}, from: {from:?}, to: {to:?}, min_score: {min_score:?}, max_score: {max_score:?} }}"
    )
}

fn word<T: std::str::FromStr<Err = api::enums::UnknownWord>>(query: &Query, name: &str) -> Result<Option<T>> {
    query.get(name).map(|it| it.parse().map_err(|it: T::Err| invalid(name, &it.to_string()))).transpose()
}

fn number(query: &Query, name: &str) -> Result<Option<f64>> {
    let parse = |it: &str| it.parse().ok().filter(|it: &f64| it.is_finite());
    query.get(name).map(|it| parse(it).ok_or_else(|| invalid(name, "must be a number"))).transpose()
}
