//! Handlers of failure rules.

use std::sync::Arc;

use api::{
    ErrorCode, FailureType, Plan,
    enums::UnknownWord,
    eval_rule::RuleFilter,
    failure_rule::{FailureRule, FailureRuleChange, FailureRuleList, NewFailureRule},
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use entities::failure_rule;
use serde_json::json;
use store::{failure_rules as table, new_id};
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    audit::{self, AuditAction, AuditEvent},
    error::{Problem, Result, not_found, problem},
    failures::{rule_set::bits_of, view},
    http::{
        query::{Query, path_id},
        read::ApiJson,
        route::{Route, route},
    },
    rule_filter,
};

/// A failure rule was created.
const RULE_CREATE: AuditAction = AuditAction::new("failure_rule.create", "failure_rule");
/// A failure rule was changed.
const RULE_UPDATE: AuditAction = AuditAction::new("failure_rule.update", "failure_rule");
/// A failure rule was deleted.
const RULE_DELETE: AuditAction = AuditAction::new("failure_rule.delete", "failure_rule");

/// Maximum number of failure rules of a tenant: every process keeps them in memory.
const MAX_RULES: u64 = 200;
/// Maximum length of a name in characters.
const MAX_NAME_CHARS: usize = 200;
/// Limits of `min_count`.
const MIN_COUNTS: std::ops::RangeInclusive<i64> = 1..=1_000;
/// Limits of `window_minutes`.
const WINDOW_MINUTES: std::ops::RangeInclusive<i64> = 1..=7 * 24 * 60;
/// `window_minutes` when none is given.
const DEFAULT_WINDOW_MINUTES: i64 = 60;

/// Returns the routes of failure rules.
pub fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::viewer().keys(Keys::Full).plan(Plan::Pro)),
        route!(create, Access::member().keys(Keys::Full).plan(Plan::Pro))
            .audited(RULE_CREATE)
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
        route!(detail, Access::viewer().keys(Keys::Full).plan(Plan::Pro)),
        route!(update, Access::member().keys(Keys::Full).plan(Plan::Pro)).audited(RULE_UPDATE),
        // A lowered plan keeps the rules, which can be deleted.
        route!(delete, Access::owner().keys(Keys::Full)).audited(RULE_DELETE),
    ]
}

/// List failure rules, newest first.
#[utoipa::path(get, path = "/v1/failure-rules", tag = "Failure rules", params(
    ("project_id" = Option<Uuid>, Query, description = "that concern traces of this project"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = FailureRuleList)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Query,
) -> Result<Json<FailureRuleList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let project = query.uuid("project_id")?;
    let scope = format!("failure_rules {project:?}");
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let mut rows = table::page(&app.db.read, tenant, project, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.created_at, it.id));
    let failure_rules = rows.into_iter().map(view::rule).collect::<Result<_>>()?;
    Ok(Json(FailureRuleList { failure_rules, has_more: next_cursor.is_some(), next_cursor }))
}

/// Show a failure rule.
#[utoipa::path(get, path = "/v1/failure-rules/{id}", tag = "Failure rules",
    params(("id" = Uuid, Path, description = "id of the rule")), responses((status = 200, body = FailureRule)))]
pub async fn detail(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<FailureRule>> {
    let row = table::get(app.db.current(), caller.tenant_id, path_id(&id)?).await?;
    Ok(Json(view::rule(row.ok_or_else(|| not_found("failure rule"))?)?))
}

/// Create a failure rule.
///
/// A rule matches a trace with a failure of one of `failure_types`, or with a completed evaluation of `metric_name` that
/// scores at most `max_score`. It fires once for each matching trace, while at least `min_count` traces matched within
/// `window_minutes`. Webhooks then get the event `failure.detected`.
#[utoipa::path(post, path = "/v1/failure-rules", tag = "Failure rules", request_body = NewFailureRule,
    responses((status = 201, body = FailureRule)))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<NewFailureRule>,
) -> Result<(StatusCode, Json<FailureRule>)> {
    let (tenant, now) = (caller.tenant_id, app.clock.now());
    let failure_types = match (&body.failure_types, &body.metric_name) {
        (Some(words), _) => types(words)?,
        (None, None) => bits_of(FailureType::FILTERABLE_TYPES),
        (None, Some(_)) => 0,
    };
    let row = failure_rule::Model {
        tenant_id: tenant,
        id: new_id(),
        name: body.name,
        enabled: body.enabled.unwrap_or(true),
        project_id: body.project_id,
        failure_types,
        metric_name: body.metric_name,
        max_score: body.max_score,
        filter: filter(&body.filter.unwrap_or_default())?,
        min_count: bounded("min_count", &MIN_COUNTS, body.min_count.unwrap_or(1))?,
        window_minutes: window_minutes(body.window_minutes.unwrap_or(DEFAULT_WINDOW_MINUTES))?,
        created_at: now,
        updated_at: now,
        last_fired_at: None,
    };
    check(&row)?;
    check_metric(&app, tenant, row.metric_name.as_deref()).await?;
    let txn = app.db.begin().await?;
    // A lock, so that concurrent requests cannot exceed the limit.
    store::tenants::lock(&txn, tenant).await?;
    check_project(&txn, &row).await?;
    if table::count(&txn, tenant).await? >= MAX_RULES {
        let message = format!("a tenant may have {MAX_RULES} failure rules; delete one that is not needed");
        return Err(problem(ErrorCode::Conflict, message));
    }
    table::add(&txn, row.clone()).await?;
    audit::record(&txn, &caller, AuditEvent::of(RULE_CREATE).on(row.id), now).await?;
    app.commit(txn).await?;
    Ok((StatusCode::CREATED, Json(view::rule(row)?)))
}

/// Change a failure rule.
///
/// Absent fields keep their values; `failure_types` and `filter` are replaced as a whole.
#[utoipa::path(patch, path = "/v1/failure-rules/{id}", tag = "Failure rules", request_body = FailureRuleChange,
    params(("id" = Uuid, Path, description = "id of the rule")), responses((status = 200, body = FailureRule)))]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    ApiJson(change): ApiJson<FailureRuleChange>,
) -> Result<Json<FailureRule>> {
    let (tenant, id, now) = (caller.tenant_id, path_id(&id)?, app.clock.now());
    check_metric(&app, tenant, change.metric_name.as_ref().and_then(Option::as_deref)).await?;
    let txn = app.db.begin().await?;
    let was = table::lock(&txn, tenant, &[id]).await?.pop().ok_or_else(|| not_found("failure rule"))?;
    let row = changed(was.clone(), change)?;
    check(&row)?;
    check_project(&txn, &row).await?;
    if row == was {
        return Ok(Json(view::rule(was)?));
    }
    let row = failure_rule::Model { updated_at: now, ..row };
    table::replace(&txn, row.clone()).await?;
    audit::record(
        &txn,
        &caller,
        AuditEvent::of(RULE_UPDATE).on(id).with(json!({"enabled": row.enabled})),
        now,
    )
    .await?;
    app.commit(txn).await?;
    Ok(Json(view::rule(row)?))
}

/// Delete a failure rule.
#[utoipa::path(delete, path = "/v1/failure-rules/{id}", tag = "Failure rules",
    params(("id" = Uuid, Path, description = "id of the rule")),
    responses((status = 204, description = "the rule is deleted")))]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let (tenant, id) = (caller.tenant_id, path_id(&id)?);
    let txn = app.db.begin().await?;
    if !table::delete(&txn, tenant, id).await? {
        return Err(not_found("failure rule"));
    }
    audit::record(&txn, &caller, AuditEvent::of(RULE_DELETE).on(id), app.clock.now()).await?;
    app.commit(txn).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns a rule with a change applied.
fn changed(was: failure_rule::Model, change: FailureRuleChange) -> Result<failure_rule::Model> {
    let metric_name = change.metric_name.unwrap_or_else(|| was.metric_name.clone());
    let max_score = change.max_score.unwrap_or_else(|| was.max_score.filter(|_| metric_name.is_some()));
    Ok(failure_rule::Model {
        name: change.name.unwrap_or(was.name),
        enabled: change.enabled.unwrap_or(was.enabled),
        project_id: change.project_id.unwrap_or(was.project_id),
        failure_types: change.failure_types.map(|it| types(&it)).transpose()?.unwrap_or(was.failure_types),
        metric_name,
        max_score,
        filter: change.filter.map(|it| filter(&it.unwrap_or_default())).transpose()?.unwrap_or(was.filter),
        min_count: match change.min_count {
            Some(count) => bounded("min_count", &MIN_COUNTS, count)?,
            None => was.min_count,
        },
        window_minutes: change.window_minutes.map(window_minutes).transpose()?.unwrap_or(was.window_minutes),
        ..was
    })
}

/// Validates a rule.
fn check(row: &failure_rule::Model) -> Result<()> {
    let name = row.name.trim();
    if name.is_empty() || name.contains('\0') || name.chars().count() > MAX_NAME_CHARS {
        let message = format!("must have 1 to {MAX_NAME_CHARS} characters, none of them NUL");
        return Err(Problem::field("name", message).into());
    }
    match (&row.metric_name, row.max_score) {
        (Some(_), None) => Err(Problem::field("max_score", "is required with metric_name").into()),
        (None, Some(_)) => Err(Problem::field("metric_name", "is required with max_score").into()),
        (None, None) if row.failure_types == 0 => {
            let message = "must not be empty in a rule without metric_name";
            Err(Problem::field("failure_types", message).into())
        }
        _ => Ok(()),
    }
}

/// Fails if there is no such evaluator.
async fn check_metric(app: &App, tenant: Uuid, metric: Option<&str>) -> Result<()> {
    match metric {
        Some(metric) if app.access_cache.rule_set(tenant).await?.evaluator(metric).is_none() => {
            Err(Problem::field("metric_name", format!("there is no evaluator `{metric}`")).into())
        }
        _ => Ok(()),
    }
}

/// Fails if the rule's project does not exist.
async fn check_project(txn: &store::Transaction, row: &failure_rule::Model) -> Result<()> {
    if let Some(project) = row.project_id
        && store::projects::get(txn, row.tenant_id, project).await?.is_none()
    {
        return Err(not_found("project"));
    }
    Ok(())
}

/// Returns the stored form of failure types.
fn types(words: &[String]) -> Result<i16> {
    let parse = |it: &String| {
        it.parse::<FailureType>().map_err(|it: UnknownWord| Problem::field("failure_types", it.to_string()))
    };
    Ok(bits_of(words.iter().map(parse).collect::<Result<Vec<_>, Problem>>()?))
}

/// Validates a filter, and returns its stored form.
fn filter(filter: &RuleFilter) -> Result<String> {
    rule_filter::validate(filter)?;
    Ok(serde_json::to_string(filter).map_err(anyhow::Error::from)?)
}

fn window_minutes(minutes: i64) -> Result<i32> {
    bounded("window_minutes", &WINDOW_MINUTES, minutes)
}

fn bounded(field: &str, range: &std::ops::RangeInclusive<i64>, value: i64) -> Result<i32> {
    let message = || format!("must be from {} to {}", range.start(), range.end());
    let value = Some(value).filter(|it| range.contains(it)).and_then(|it| i32::try_from(it).ok());
    Ok(value.ok_or_else(|| Problem::field(field, message()))?)
}
