//! Handlers of policies.

use std::{ops::RangeInclusive, sync::Arc};

use api::{
    ErrorCode, FailureType, Plan,
    control::{ActionConfig, ActionType, SYSTEM_PLACEHOLDER},
    enums::UnknownWord,
    policy::{
        DEFAULT_MAX_CASCADE_DEPTH, DEFAULT_MAX_RETRY_DEPTH, NewPolicy, NewPolicyTrigger, Policy,
        PolicyChange, PolicyList, TriggerType,
    },
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use entities::policy;
use semantics::money;
use serde_json::json;
use store::{new_id, policies as table, sealed::CALLBACK_SECRET};

use crate::{
    access::{Access, Caller},
    app::App,
    audit::{self, AuditAction, AuditEvent},
    control::view,
    error::{Problem, Result, not_found, problem},
    failures::rule_set::bits_of,
    http::{
        query::{Query, path_id},
        read::ApiJson,
        route::{Route, route},
    },
    webhooks::address::{URL_ERRORS, check_secret, check_url},
};

/// A policy was created.
const POLICY_CREATE: AuditAction = AuditAction::new("policy.create", "policy");
/// A policy was changed.
const POLICY_UPDATE: AuditAction = AuditAction::new("policy.update", "policy");
/// A policy was deleted.
const POLICY_DELETE: AuditAction = AuditAction::new("policy.delete", "policy");

/// Maximum number of policies of a tenant: every process keeps them in memory.
const MAX_POLICIES: u64 = 200;
/// Maximum length of a name or a model in characters.
const MAX_NAME_CHARS: usize = 200;
/// Maximum length of a prompt in bytes: each action has a copy.
const MAX_PROMPT_BYTES: usize = 64 * 1024;
/// Limits of `max_retry_depth`.
const RETRY_DEPTHS: RangeInclusive<i64> = 1..=10;
/// Limits of `max_cascade_depth`.
const CASCADE_DEPTHS: RangeInclusive<i64> = 1..=20;
/// Limits of `cooldown_seconds`.
const COOLDOWN_SECONDS: RangeInclusive<i64> = 0..=7 * 86_400;
/// Limits of a temperature.
const TEMPERATURE_LIMITS: RangeInclusive<f64> = 0.0..=2.0;

/// Returns the routes of policies.
pub fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::viewer().plan(Plan::Team)),
        route!(create, Access::owner().plan(Plan::Team))
            .audited(POLICY_CREATE)
            .errors(URL_ERRORS)
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
        route!(detail, Access::viewer().plan(Plan::Team)),
        route!(update, Access::owner().plan(Plan::Team))
            .audited(POLICY_UPDATE)
            .errors(URL_ERRORS)
            .errors(&[ErrorCode::Conflict]),
        // A lowered plan keeps the policies, which can be deleted.
        route!(delete, Access::owner()).audited(POLICY_DELETE),
    ]
}

/// List policies, newest first.
#[utoipa::path(get, path = "/v1/policies", tag = "Policies", params(
    ("project_id" = Option<Uuid>, Query, description = "of this project"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = PolicyList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<PolicyList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let project = query.uuid("project_id")?;
    let scope = format!("policies {project:?}");
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let mut rows = table::page(&app.db.read, tenant, project, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.created_at, it.id));
    let policies = rows.into_iter().map(view::policy).collect::<Result<_>>()?;
    Ok(Json(PolicyList { policies, has_more: next_cursor.is_some(), next_cursor }))
}

/// Show a policy.
#[utoipa::path(get, path = "/v1/policies/{id}", tag = "Policies",
    params(("id" = Uuid, Path, description = "id of the policy")), responses((status = 200, body = Policy)))]
pub async fn detail(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Policy>> {
    let row = table::get(app.db.current(), caller.tenant_id, path_id(&id)?).await?;
    Ok(Json(view::policy(row.ok_or_else(|| not_found("policy"))?)?))
}

/// Create a policy.
///
/// A policy requests a control action for each trace of its project that becomes ready with a failure of one of its
/// types, or for each evaluation of its metric with a low score. Without a trigger, it only provides limits and
/// configuration to actions that people request.
#[utoipa::path(post, path = "/v1/policies", tag = "Policies", request_body = NewPolicy,
    responses((status = 201, body = Policy)))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<NewPolicy>,
) -> Result<(StatusCode, Json<Policy>)> {
    let (tenant, now) = (caller.tenant_id, app.clock.now());
    let NewPolicy {
        project_id,
        action_type,
        name,
        enabled,
        trigger,
        action_config,
        require_approval,
        max_retry_depth,
        max_cascade_depth,
        cooldown_seconds,
        daily_budget_usd,
    } = body;
    let blank = policy::Model {
        tenant_id: tenant,
        id: new_id(),
        project_id,
        name: String::new(),
        enabled: true,
        trigger_type: None,
        failure_types: 0,
        metric_name: None,
        max_score: None,
        action_config: "{}".to_owned(),
        callback_secret: None,
        require_approval: false,
        max_retry_depth: DEFAULT_MAX_RETRY_DEPTH,
        max_cascade_depth: DEFAULT_MAX_CASCADE_DEPTH,
        cooldown_seconds: 0,
        daily_budget: None,
        created_at: now,
        updated_at: now,
        action_type: String::new(),
    };
    let change = PolicyChange {
        project_id: None,
        name: Some(name.unwrap_or_else(|| action_type.clone())),
        enabled,
        trigger: Some(trigger),
        action_type: Some(action_type),
        action_config: Some(action_config.unwrap_or_default()),
        require_approval,
        max_retry_depth,
        max_cascade_depth,
        cooldown_seconds,
        daily_budget_usd: Some(daily_budget_usd),
    };
    let ChangedPolicy { row, new_secret } = changed(blank.clone(), change)?;
    let row = with_callback(&app, &blank, row, new_secret).await?;
    check_metric(&app, &row).await?;
    let txn = app.db.begin().await?;
    // A lock, so that concurrent requests cannot exceed the limit.
    store::tenants::lock(&txn, tenant).await?;
    if store::projects::get(&txn, tenant, project_id).await?.is_none() {
        return Err(not_found("project"));
    }
    if table::count(&txn, tenant).await? >= MAX_POLICIES {
        let message = format!("a tenant may have {MAX_POLICIES} policies; delete one that is not needed");
        return Err(problem(ErrorCode::Conflict, message));
    }
    table::add(&txn, row.clone()).await?;
    audit::record(&txn, &caller, AuditEvent::of(POLICY_CREATE).on(row.id), now).await?;
    app.commit(txn).await?;
    Ok((StatusCode::CREATED, Json(view::policy(row)?)))
}

/// Change a policy.
///
/// Absent fields keep their values; `trigger` and `action_config` are replaced as a whole.
#[utoipa::path(patch, path = "/v1/policies/{id}", tag = "Policies", request_body = PolicyChange,
    params(("id" = Uuid, Path, description = "id of the policy")), responses((status = 200, body = Policy)))]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    ApiJson(change): ApiJson<PolicyChange>,
) -> Result<Json<Policy>> {
    let (tenant, id, now) = (caller.tenant_id, path_id(&id)?, app.clock.now());
    // The address is resolved before the transaction begins.
    let was = table::get(app.db.current(), tenant, id).await?.ok_or_else(|| not_found("policy"))?;
    let ChangedPolicy { row, new_secret } = changed(was.clone(), change)?;
    let row = with_callback(&app, &was, row, new_secret).await?;
    if row == was {
        return Ok(Json(view::policy(was)?));
    }
    if (&row.trigger_type, &row.metric_name) != (&was.trigger_type, &was.metric_name) {
        check_metric(&app, &row).await?;
    }
    let txn = app.db.begin().await?;
    if table::lock(&txn, tenant, id).await?.ok_or_else(|| not_found("policy"))? != was {
        return Err(problem(ErrorCode::Conflict, "the policy was changed at the same time; try again"));
    }
    if row.project_id != was.project_id && store::projects::get(&txn, tenant, row.project_id).await?.is_none()
    {
        return Err(not_found("project"));
    }
    let row = policy::Model { updated_at: now, ..row };
    table::replace(&txn, row.clone()).await?;
    let event = AuditEvent::of(POLICY_UPDATE).on(id).with(json!({"enabled": row.enabled}));
    audit::record(&txn, &caller, event, now).await?;
    app.commit(txn).await?;
    Ok(Json(view::policy(row)?))
}

/// Delete a policy. Its actions remain.
#[utoipa::path(delete, path = "/v1/policies/{id}", tag = "Policies",
    params(("id" = Uuid, Path, description = "id of the policy")),
    responses((status = 204, description = "the policy is deleted")))]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let (tenant, id) = (caller.tenant_id, path_id(&id)?);
    let txn = app.db.begin().await?;
    if !table::delete(&txn, tenant, id).await? {
        return Err(not_found("policy"));
    }
    audit::record(&txn, &caller, AuditEvent::of(POLICY_DELETE).on(id), app.clock.now()).await?;
    app.commit(txn).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A policy with a change applied, without the changes of its callback's secret.
struct ChangedPolicy {
    row: policy::Model,
    new_secret: Option<String>,
}

/// Returns a policy with a change applied.
fn changed(was: policy::Model, change: PolicyChange) -> Result<ChangedPolicy> {
    let PolicyChange {
        project_id,
        name,
        enabled,
        trigger,
        action_type,
        action_config,
        require_approval,
        max_retry_depth,
        max_cascade_depth,
        cooldown_seconds,
        daily_budget_usd,
    } = change;
    let mut row = was;
    row.project_id = project_id.unwrap_or(row.project_id);
    if let Some(name) = name {
        row.name = checked_name("name", name)?;
    }
    row.enabled = enabled.unwrap_or(row.enabled);
    if let Some(trigger) = trigger {
        set_trigger(&mut row, trigger)?;
    }
    if let Some(word) = action_type {
        row.action_type = requestable_type(&word)?.as_str().to_owned();
    }
    let mut new_secret = None;
    if let Some(mut config) = action_config {
        new_secret = config.callback_secret.take();
        row.action_config = serde_json::to_string(&config).map_err(anyhow::Error::from)?;
    }
    let config = config_of(&row)?;
    check_config(row.action_type.parse().map_err(anyhow::Error::from)?, &config)?;
    row.require_approval = require_approval.unwrap_or(row.require_approval);
    if let Some(depth) = max_retry_depth {
        row.max_retry_depth = bounded("max_retry_depth", &RETRY_DEPTHS, depth)?;
    }
    if let Some(depth) = max_cascade_depth {
        row.max_cascade_depth = bounded("max_cascade_depth", &CASCADE_DEPTHS, depth)?;
    }
    if let Some(seconds) = cooldown_seconds {
        row.cooldown_seconds = bounded("cooldown_seconds", &COOLDOWN_SECONDS, seconds)?;
    }
    if let Some(budget) = daily_budget_usd {
        let invalid = || Problem::field("daily_budget_usd", "must be a positive amount of US dollars");
        let pico = |usd: f64| money::from_usd(usd).filter(|it| *it > 0).ok_or_else(invalid);
        row.daily_budget = budget.map(pico).transpose()?;
    }
    Ok(ChangedPolicy { row, new_secret })
}

/// Validates the address of a callback, and seals its secret. The secret of an unchanged address is kept: a stored
/// secret is never used with an address other than the one that it was set for.
async fn with_callback(
    app: &App,
    was: &policy::Model,
    mut row: policy::Model,
    new_secret: Option<String>,
) -> Result<policy::Model> {
    const SECRET_FIELD: &str = "action_config.callback_secret";
    let (url, url_before) = (config_of(&row)?.callback_url, config_of(was)?.callback_url);
    let Some(url) = url else {
        if new_secret.is_some() {
            return Err(Problem::field(SECRET_FIELD, "is only allowed with callback_url").into());
        }
        row.callback_secret = None;
        return Ok(row);
    };
    let is_changed = url_before.is_none_or(|it| it != url);
    if is_changed {
        check_url(app, "action_config.callback_url", &url).await?;
    }
    match new_secret {
        Some(secret) => {
            check_secret(SECRET_FIELD, &secret)?;
            let place = row.id.simple().to_string();
            row.callback_secret =
                Some(app.sealer.seal(CALLBACK_SECRET.location(row.tenant_id, &place), &secret)?);
        }
        None if is_changed => {
            return Err(Problem::field(SECRET_FIELD, "is required for a new callback_url").into());
        }
        None => {}
    }
    Ok(row)
}

fn config_of(row: &policy::Model) -> Result<ActionConfig> {
    Ok(serde_json::from_str(&row.action_config).map_err(anyhow::Error::from)?)
}

fn set_trigger(row: &mut policy::Model, trigger: Option<NewPolicyTrigger>) -> Result<()> {
    (row.trigger_type, row.failure_types, row.metric_name, row.max_score) = (None, 0, None, None);
    let Some(NewPolicyTrigger { trigger_type, failure_types, metric_name, max_score }) = trigger else {
        return Ok(());
    };
    let trigger_type: TriggerType = trigger_type.parse().map_err(unknown("trigger.type"))?;
    row.trigger_type = Some(trigger_type.as_str().to_owned());
    match trigger_type {
        TriggerType::Failure => {
            for (field, is_given) in
                [("metric_name", metric_name.is_some()), ("max_score", max_score.is_some())]
            {
                if is_given {
                    return Err(only_for(&format!("trigger.{field}"), TriggerType::Evaluation.as_str()));
                }
            }
            let parse = |it: &String| it.parse::<FailureType>().map_err(unknown("trigger.failure_types"));
            let types = failure_types.unwrap_or_default();
            row.failure_types = bits_of(types.iter().map(parse).collect::<Result<Vec<_>, _>>()?);
            if row.failure_types == 0 {
                let message = "must name at least one failure type";
                return Err(Problem::field("trigger.failure_types", message).into());
            }
        }
        TriggerType::Evaluation => {
            if failure_types.is_some() {
                return Err(only_for("trigger.failure_types", TriggerType::Failure.as_str()));
            }
            let required = |field| Problem::field(field, "is required for evaluations");
            row.metric_name = Some(metric_name.ok_or_else(|| required("trigger.metric_name"))?);
            let max_score = max_score.ok_or_else(|| required("trigger.max_score"))?;
            if !(0.0..=1.0).contains(&max_score) {
                return Err(
                    Problem::field("trigger.max_score", "must be from 0 to 1, like every score").into()
                );
            }
            row.max_score = Some(max_score);
        }
    }
    Ok(())
}

/// Returns the action type that a request names.
///
/// # Errors
///
/// Fails if it cannot be requested.
pub fn requestable_type(word: &str) -> Result<ActionType> {
    let known = word.parse().ok().filter(|it| ActionType::REQUESTABLE_TYPES.contains(it));
    let words = ActionType::REQUESTABLE_TYPES.map(ActionType::as_str).join(", ");
    Ok(known.ok_or_else(|| Problem::field("action_type", format!("must be one of {words}")))?)
}

/// Validates the configuration of an action.
///
/// # Errors
///
/// Fails with `validation_failed` if a value is missing, invalid, or not used by the action type.
pub fn check_config(action_type: ActionType, config: &ActionConfig) -> Result<()> {
    let ActionConfig {
        model,
        system_suffix,
        prompt_template,
        temperature,
        callback_url: _,
        callback_secret: _,
    } = config;
    let (fallback, prompt) = (ActionType::FallbackModel, ActionType::PromptModification);
    match model {
        Some(_) if action_type != fallback => return Err(only_for("action_config.model", fallback.as_str())),
        Some(model) => drop(checked_name("action_config.model", model.clone())?),
        None if action_type == fallback => {
            return Err(Problem::field("action_config.model", "is required for fallback_model").into());
        }
        None => {}
    }
    for (field, text) in [("system_suffix", system_suffix), ("prompt_template", prompt_template)] {
        let field = format!("action_config.{field}");
        match text {
            Some(_) if action_type != prompt => return Err(only_for(&field, prompt.as_str())),
            Some(text) if text.trim().is_empty() || text.contains('\0') || text.len() > MAX_PROMPT_BYTES => {
                let message = format!("must have 1 to {MAX_PROMPT_BYTES} bytes, none of them NUL");
                return Err(Problem::field(field, message).into());
            }
            _ => {}
        }
    }
    // The recorded system message may have 4 MiB.
    if prompt_template.as_ref().is_some_and(|it| it.matches(SYSTEM_PLACEHOLDER).nth(1).is_some()) {
        let message = format!("must contain {SYSTEM_PLACEHOLDER} at most once");
        return Err(Problem::field("action_config.prompt_template", message).into());
    }
    if action_type == prompt && system_suffix.is_none() && prompt_template.is_none() {
        let message = "needs system_suffix or prompt_template for prompt_modification";
        return Err(Problem::field("action_config", message).into());
    }
    if temperature.is_some_and(|it| !TEMPERATURE_LIMITS.contains(&it)) {
        return Err(Problem::field("action_config.temperature", "must be from 0 to 2").into());
    }
    Ok(())
}

/// Fails if a policy's metric has no evaluator.
async fn check_metric(app: &App, row: &policy::Model) -> Result<()> {
    match &row.metric_name {
        Some(metric) if app.access_cache.rule_set(row.tenant_id).await?.evaluator(metric).is_none() => {
            let message = format!("there is no evaluator `{metric}`");
            Err(Problem::field("trigger.metric_name", message).into())
        }
        _ => Ok(()),
    }
}

fn checked_name(field: &str, name: String) -> Result<String> {
    if name.trim().is_empty() || name.contains('\0') || name.chars().count() > MAX_NAME_CHARS {
        let message = format!("must have 1 to {MAX_NAME_CHARS} characters, none of them NUL");
        return Err(Problem::field(field, message).into());
    }
    Ok(name)
}

fn only_for(field: &str, word: &str) -> crate::error::Error {
    Problem::field(field, format!("is only allowed for {word}")).into()
}

fn unknown(field: &'static str) -> impl Fn(UnknownWord) -> Problem {
    move |it| Problem::field(field, it.to_string())
}

fn bounded<T: TryFrom<i64>>(field: &str, range: &RangeInclusive<i64>, value: i64) -> Result<T> {
    let message = || format!("must be from {} to {}", range.start(), range.end());
    let value = Some(value).filter(|it| range.contains(it)).and_then(|it| T::try_from(it).ok());
    Ok(value.ok_or_else(|| Problem::field(field, message()))?)
}
