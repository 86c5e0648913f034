//! Handlers of eval rules: create, change, decisions, test, backfill.

use std::sync::Arc;

use api::{
    ErrorCode, EvaluatorType, Plan,
    eval::{BulkStarted, EvaluationStatus, ModelTier, Verdict},
    eval_rule::{
        EvalRule, EvalRuleChange, EvalRuleList, NewBackfill, NewEvalRule, NewRuleTest, RuleDecisionList,
        RuleFilter, RuleTest,
    },
    trace_filter::TraceConditions,
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use entities::eval_rule;
use serde_json::{Map, Value};
use store::{eval_rules as table, new_id, traces};
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::{Error, Problem, Result, not_found, problem},
    evals::{
        bulk, decision_deletion,
        evaluation_request::EvaluationRequest,
        preview, rule_decisions,
        rules::{self, STARTER_RULES},
        view,
    },
    http::{
        query::{Query, path_id},
        read::ApiJson,
        route::{Route, route},
    },
    rule_filter,
    rule_set::ParsedRule,
};

/// Maximum size in bytes of the configurations and filters of all rules of a tenant.
const MAX_STORED_BYTES: usize = 8 * 1024 * 1024;

/// Error codes of evaluating traces by a rule.
const EVALUATION_ERRORS: &[ErrorCode] = &[
    ErrorCode::ProviderCredentialsMissing,
    ErrorCode::JudgeNotConfigured,
    ErrorCode::EvalRulesQuotaExceeded,
    ErrorCode::EvalQuotaExceeded,
];

/// Returns the routes of eval rules.
pub fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::viewer().keys(Keys::Query)),
        route!(create, Access::member().keys(Keys::Full))
            .errors(&[ErrorCode::NotFound, ErrorCode::EvalRulesQuotaExceeded]),
        route!(detail, Access::viewer().keys(Keys::Query)),
        route!(update, Access::member().keys(Keys::Full))
            .errors(&[ErrorCode::Conflict, ErrorCode::EvalRulesQuotaExceeded]),
        route!(delete, Access::member().keys(Keys::Full)),
        route!(decisions, Access::viewer().keys(Keys::Query)),
        route!(test, Access::member().keys(Keys::Full)).errors(EVALUATION_ERRORS),
        route!(backfill, Access::member().keys(Keys::Full)).errors(EVALUATION_ERRORS),
    ]
}

/// List eval rules, newest first.
#[utoipa::path(get, path = "/v1/eval-rules", tag = "Eval rules", params(
    ("project_id" = Option<Uuid>, Query, description = "of this project"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = EvalRuleList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<EvalRuleList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let project = query.uuid("project_id")?;
    let scope = format!("eval_rules {project:?}");
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let mut rows = table::page(&app.db.read, tenant, project, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.created_at, it.id));
    let mut eval_rules = Vec::with_capacity(rows.len());
    for row in rows {
        eval_rules.push(to_wire(&app, &caller, row).await?);
    }
    Ok(Json(EvalRuleList { eval_rules, has_more: next_cursor.is_some(), next_cursor }))
}

/// Show an eval rule.
#[utoipa::path(get, path = "/v1/eval-rules/{id}", tag = "Eval rules", params(("id" = Uuid, Path, description = "id of the rule")),
    responses((status = 200, body = EvalRule)))]
pub async fn detail(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<EvalRule>> {
    let row = table::get(app.db.current(), caller.tenant_id, path_id(&id)?).await?;
    Ok(Json(to_wire(&app, &caller, row.ok_or_else(|| not_found("eval rule"))?).await?))
}

/// Create an eval rule. It evaluates every new trace that matches when the trace is ready.
///
/// A rule without an available judge is created too: `paused_reason` contains the code of the reason,
/// and `paused_detail` what to do.
#[utoipa::path(post, path = "/v1/eval-rules", tag = "Eval rules", request_body = NewEvalRule,
    responses((status = 201, body = EvalRule)))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<NewEvalRule>,
) -> Result<(StatusCode, Json<EvalRule>)> {
    let (tenant, now) = (caller.tenant_id, app.clock.now());
    let row = eval_rule::Model {
        tenant_id: tenant,
        id: new_id(),
        project_id: body.project_id,
        metric_name: body.metric_name,
        evaluator_type: body.evaluator_type,
        config: to_json(&body.config.unwrap_or_default())?,
        enabled: body.enabled.unwrap_or(true),
        model_tier: body.model_tier.unwrap_or_else(|| ModelTier::Cheap.as_str().to_owned()),
        min_score_drop: body.min_score_drop.unwrap_or(Some(0.0)),
        filter: to_json(&body.filter.unwrap_or_default())?,
        sample_rate: body.sample_rate.unwrap_or(1.0),
        paused_reason: None,
        paused_at: None,
        created_at: now,
        updated_at: now,
    };
    check(&app, &row).await?;
    let txn = app.db.begin().await?;
    // A lock, so that concurrent requests cannot exceed the plan's limit.
    store::tenants::lock(&txn, tenant).await?;
    require_project_and_evaluator(&txn, &row).await?;
    if caller.plan == Plan::Starter && table::count(&txn, tenant).await? >= STARTER_RULES as u64 {
        return Err(too_many_rules());
    }
    table::add(&txn, row.clone()).await?;
    require_size_limit(&txn, tenant).await?;
    app.commit(txn).await?;
    Ok((StatusCode::CREATED, Json(to_wire(&app, &caller, row).await?)))
}

/// Change an eval rule.
///
/// Absent fields keep their values; `config` and `filter` are replaced as a whole. A paused rule
/// resumes.
#[utoipa::path(patch, path = "/v1/eval-rules/{id}", tag = "Eval rules", request_body = EvalRuleChange,
    params(("id" = Uuid, Path, description = "id of the rule")),
    responses((status = 200, body = EvalRule)))]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    ApiJson(change): ApiJson<EvalRuleChange>,
) -> Result<Json<EvalRule>> {
    let (tenant, id, now) = (caller.tenant_id, path_id(&id)?, app.clock.now());
    within_plan(&caller, find_rule(&app, tenant, id).await?.as_ref())?;
    // Validation happens before the lock; the row is read again afterwards.
    let current = table::get(app.db.current(), tenant, id).await?.ok_or_else(|| not_found("eval rule"))?;
    check(&app, &with_change(&current, &change, now)?).await?;
    let txn = app.db.begin().await?;
    store::tenants::lock(&txn, tenant).await?;
    let was = table::lock(&txn, tenant, id).await?.ok_or_else(|| not_found("eval rule"))?;
    // A pause in the meantime is not a change by a user.
    let unpaused =
        |it: &eval_rule::Model| eval_rule::Model { paused_reason: None, paused_at: None, ..it.clone() };
    if unpaused(&was) != unpaused(&current) {
        return Err(problem(
            ErrorCode::Conflict,
            "another request changed the rule at the same time; check it and try again",
        ));
    }
    let row = with_change(&was, &change, now)?;
    if row == (eval_rule::Model { updated_at: now, ..was.clone() }) {
        return Ok(Json(to_wire(&app, &caller, was).await?));
    }
    require_project_and_evaluator(&txn, &row).await?;
    if (&row.metric_name, &row.evaluator_type) != (&was.metric_name, &was.evaluator_type) {
        // Waiting evaluations keep the configuration with which they were created.
        store::evaluations::keep_config(&txn, tenant, id, &was.config).await?;
    }
    table::replace(&txn, row.clone()).await?;
    require_size_limit(&txn, tenant).await?;
    app.commit(txn).await?;
    Ok(Json(to_wire(&app, &caller, row).await?))
}

/// Delete an eval rule. Its evaluations are kept, and waiting ones are executed.
#[utoipa::path(delete, path = "/v1/eval-rules/{id}", tag = "Eval rules", params(("id" = Uuid, Path, description = "id of the rule")),
    responses((status = 204, description = "the rule is deleted")))]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let (tenant, id) = (caller.tenant_id, path_id(&id)?);
    let txn = app.db.begin().await?;
    let rule = table::lock(&txn, tenant, id).await?.ok_or_else(|| not_found("eval rule"))?;
    // Waiting evaluations keep the configuration with which they were created.
    store::evaluations::keep_config(&txn, tenant, id, &rule.config).await?;
    table::delete(&txn, tenant, id).await?;
    decision_deletion::enqueue(&txn, tenant, id, app.clock.now()).await?;
    app.commit(txn).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List the decisions of an eval rule, newest trace first.
#[utoipa::path(get, path = "/v1/eval-rules/{id}/decisions", tag = "Eval rules", params(
    ("id" = Uuid, Path, description = "id of the rule"),
    ("trace_id" = Option<Uuid>, Query, description = "only of this trace, in any project"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = RuleDecisionList)))]
pub async fn decisions(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
) -> Result<Json<RuleDecisionList>> {
    let (tenant, id, limit) = (caller.tenant_id, path_id(&id)?, query.limit()?);
    let trace = query.uuid("trace_id")?;
    let scope = format!("decisions {id} {trace:?}");
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let rule = find_rule(&app, tenant, id).await?;
    let db = app.db.primary();
    let mut rows = match trace {
        Some(trace) => vec![traces::get(&db, tenant, trace).await?.ok_or_else(|| not_found("trace"))?],
        None => {
            let filter =
                TraceConditions { project_id: Some(rule.row.project_id), ..TraceConditions::default() };
            traces::narrow_page(&db, tenant, &filter, after, limit + 1).await?
        }
    };
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, traces::position);
    let decisions = rule_decisions::of_traces(&app, tenant, &rule, &rows).await?;
    Ok(Json(RuleDecisionList { decisions, has_more: next_cursor.is_some(), next_cursor }))
}

/// Test an eval rule on a trace without storing the result.
///
/// A rule of type `llm` uses the monthly quota, which is restored if the evaluation fails.
#[utoipa::path(post, path = "/v1/eval-rules/{id}/test", tag = "Eval rules", request_body = NewRuleTest,
    params(("id" = Uuid, Path, description = "id of the rule")),
    responses((status = 200, body = RuleTest)))]
pub async fn test(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    ApiJson(body): ApiJson<NewRuleTest>,
) -> Result<Json<RuleTest>> {
    let tenant = caller.tenant_id;
    let rule = find_rule(&app, tenant, path_id(&id)?).await?;
    within_plan(&caller, &rule)?;
    let trace =
        traces::get(&app.db.primary(), tenant, body.trace_id).await?.ok_or_else(|| not_found("trace"))?;
    let paused = rules::find_pause(&app, tenant, caller.plan, &rule).await?;
    let (decision, detail) = rule_decisions::predict(&app, tenant, &rule, &trace, paused).await?;
    let request = evaluation_request(&app, &rule).await?;
    let evaluator_version = request.evaluator.version();
    let result = preview::evaluate(&app, tenant, caller.plan, request, trace.id).await?;
    let (status, score, label, reasoning, error) = match result.verdict {
        Ok(Verdict { score, label, reasoning }) => {
            (EvaluationStatus::Complete, Some(score), Some(label), Some(reasoning), None)
        }
        Err(why) => (EvaluationStatus::Failed, None, None, None, Some(why)),
    };
    Ok(Json(RuleTest {
        trace_id: trace.id,
        decision,
        detail,
        status,
        score,
        label,
        reasoning,
        error,
        evaluator_version,
        judge_model: result.usage.model,
        prompt_tokens: result.usage.prompt_tokens,
        completion_tokens: result.usage.completion_tokens,
        cost: result.usage.cost.map(semantics::money::to_usd),
    }))
}

/// Apply an eval rule to existing traces that match its filter and sample.
///
/// Traces that the rule has already evaluated are skipped, so `queued` is an upper bound; `GET
/// /v1/eval/bulk/{id}` shows the progress. The backfill ends early when the rule is paused, and reports
/// it.
#[utoipa::path(post, path = "/v1/eval-rules/{id}/backfill", tag = "Eval rules", request_body = NewBackfill,
    params(("id" = Uuid, Path, description = "id of the rule")),
    responses((status = 202, description = "the evaluations are being created", body = BulkStarted)))]
pub async fn backfill(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    ApiJson(body): ApiJson<NewBackfill>,
) -> Result<(StatusCode, Json<BulkStarted>)> {
    let (from, to) = (body.from.map(api::Timestamp::micros), body.to.map(api::Timestamp::micros));
    if from.zip(to).is_some_and(|(from, to)| to < from) {
        return Err(Problem::field("to", "must not be before from").into());
    }
    let rule = find_rule(&app, caller.tenant_id, path_id(&id)?).await?;
    within_plan(&caller, &rule)?;
    let request = evaluation_request(&app, &rule).await?;
    request.require_judge(&app, caller.tenant_id, caller.plan).await?;
    let filter = bulk::backfill_filter(&rule, from, to);
    let row = bulk::start(&app, caller.tenant_id, caller.plan, &request, filter, Some(rule.row.id)).await?;
    Ok((
        StatusCode::ACCEPTED,
        Json(BulkStarted { matched: row.matched, queued: row.granted, bulk_id: row.id }),
    ))
}

/// Fails for a rule beyond the plan's limit; after a plan was lowered, such rules can be read and
/// deleted.
fn within_plan(caller: &Caller, rule: &ParsedRule) -> Result<()> {
    if caller.plan == Plan::Starter && rule.older >= STARTER_RULES { Err(too_many_rules()) } else { Ok(()) }
}

fn too_many_rules() -> Error {
    let message =
        format!("the plan starter allows {STARTER_RULES} eval rules; delete one or upgrade the plan");
    problem(ErrorCode::EvalRulesQuotaExceeded, message)
}

/// Fails if the tenant's rules are too large together: every process keeps all of them in memory.
async fn require_size_limit(txn: &store::Transaction, tenant: Uuid) -> Result<()> {
    if table::stored_bytes(txn, tenant).await? <= MAX_STORED_BYTES {
        return Ok(());
    }
    let message = format!(
        "the configurations of all rules of a tenant may take {} MiB; delete rules that are not needed",
        MAX_STORED_BYTES / 1024 / 1024
    );
    Err(Problem::field("config", message).into())
}

async fn find_rule(app: &App, tenant: Uuid, id: Uuid) -> Result<Arc<ParsedRule>> {
    rules::find_rule(app, tenant, id).await?.ok_or_else(|| not_found("eval rule"))
}

async fn evaluation_request(app: &App, rule: &ParsedRule) -> Result<EvaluationRequest> {
    let row = &rule.row;
    let config: Map<String, Value> = serde_json::from_str(&row.config).map_err(anyhow::Error::from)?;
    let (kind, tier) = (Some(row.evaluator_type.as_str()), Some(row.model_tier.as_str()));
    EvaluationRequest::validate(app, row.tenant_id, &row.metric_name, kind, Some(config), tier).await
}

/// Converts a rule to its wire type, with the reason of a pause.
async fn to_wire(app: &App, caller: &Caller, row: eval_rule::Model) -> Result<EvalRule> {
    // Only the plan Starter needs the number of older rules.
    let older = match caller.plan {
        Plan::Starter => table::count_older(app.db.current(), &row, STARTER_RULES as u64).await?,
        _ => 0,
    };
    let rule = ParsedRule::parse(row, older)?;
    let paused = if rule.row.enabled {
        rules::find_pause(app, caller.tenant_id, caller.plan, &rule).await?
    } else {
        None
    };
    view::rule(rule.row, paused)
}

/// Returns a rule with a change applied.
fn with_change(was: &eval_rule::Model, change: &EvalRuleChange, now: i64) -> Result<eval_rule::Model> {
    let was = was.clone();
    Ok(eval_rule::Model {
        project_id: change.project_id.unwrap_or(was.project_id),
        metric_name: change.metric_name.clone().unwrap_or(was.metric_name),
        evaluator_type: change.evaluator_type.clone().unwrap_or(was.evaluator_type),
        config: change.config.as_ref().map(to_json).transpose()?.unwrap_or(was.config),
        enabled: change.enabled.unwrap_or(was.enabled),
        model_tier: change.model_tier.clone().unwrap_or(was.model_tier),
        min_score_drop: change.min_score_drop.unwrap_or(was.min_score_drop),
        filter: change.filter.as_ref().map(to_json).transpose()?.unwrap_or(was.filter),
        sample_rate: change.sample_rate.unwrap_or(was.sample_rate),
        paused_reason: None,
        paused_at: None,
        updated_at: now,
        ..was
    })
}

/// Validates a rule.
async fn check(app: &App, row: &eval_rule::Model) -> Result<()> {
    let field = |name: &str, message: &str| Err(Problem::field(name, message).into());
    if row.min_score_drop.is_some_and(|it| !it.is_finite() || it < 0.0) {
        return field("min_score_drop", "must be 0 or more, or null");
    }
    if !(0.0..=1.0).contains(&row.sample_rate) {
        return field("sample_rate", "must be from 0 to 1");
    }
    let filter: RuleFilter = serde_json::from_str(&row.filter).map_err(anyhow::Error::from)?;
    rule_filter::validate(&filter)?;
    row.evaluator_type
        .parse::<EvaluatorType>()
        .map_err(|it: api::enums::UnknownWord| Problem::field("evaluator_type", it.to_string()))?;
    let config: Map<String, Value> = serde_json::from_str(&row.config).map_err(anyhow::Error::from)?;
    let (kind, tier) = (Some(row.evaluator_type.as_str()), Some(row.model_tier.as_str()));
    EvaluationRequest::validate(app, row.tenant_id, &row.metric_name, kind, Some(config), tier)
        .await
        .map(drop)
}

/// Fails if the rule's project or evaluator does not exist; the tenant is locked.
async fn require_project_and_evaluator(txn: &store::Transaction, row: &eval_rule::Model) -> Result<()> {
    if store::projects::get(txn, row.tenant_id, row.project_id).await?.is_none() {
        return Err(not_found("project"));
    }
    let builtin = evaluators::builtin::find(&row.metric_name).is_some();
    if !builtin && store::evaluators::get(txn, row.tenant_id, &row.metric_name).await?.is_none() {
        return Err(Problem::field("metric_name", "the evaluator was deleted").into());
    }
    Ok(())
}

fn to_json(value: &impl serde::Serialize) -> Result<String> {
    Ok(serde_json::to_string(value).map_err(anyhow::Error::from)?)
}
