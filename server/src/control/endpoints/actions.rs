//! Handlers of control actions.

use std::sync::Arc;

use api::{
    ErrorCode, Plan, Timestamp,
    control::{ActionFilter, ActionStatus, ActionType, ControlAction, ControlActionList, NewControlAction},
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use store::{control_actions, policies as policy_table, traces};
use uuid::Uuid;

use super::policies::{check_config, requestable_type};
use crate::{
    access::{Access, Caller},
    app::App,
    control::{
        requests::{self, ACTION_APPROVE, ACTION_REJECT, ACTION_REQUEST, ActionRequest, Requester},
        view,
    },
    error::{Problem, Result, not_found, problem},
    http::{
        query::{Query, invalid, path_id},
        read::ApiJson,
        route::{Route, route},
    },
};

/// Returns the routes of control actions.
pub fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::viewer().plan(Plan::Team)),
        route!(create, Access::member().plan(Plan::Team))
            .audited(ACTION_REQUEST)
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
        route!(detail, Access::viewer().plan(Plan::Team)),
        route!(approve, Access::owner().plan(Plan::Team))
            .audited(ACTION_APPROVE)
            .errors(&[ErrorCode::InvalidState]),
        route!(reject, Access::owner().plan(Plan::Team))
            .audited(ACTION_REJECT)
            .errors(&[ErrorCode::InvalidState]),
    ]
}

/// List control actions, newest first.
#[utoipa::path(get, path = "/v1/control/actions", tag = "Control actions", params(
    ("project_id" = Option<Uuid>, Query, description = "on traces of this project"),
    ("trace_id" = Option<Uuid>, Query, description = "on this trace"),
    ("policy_id" = Option<Uuid>, Query, description = "of this policy"),
    ("action_type" = Option<ActionType>, Query, description = "of this type"),
    ("status" = Option<ActionStatus>, Query, description = "with this status"),
    ("from" = Option<Timestamp>, Query, description = "created at this time or later"),
    ("to" = Option<Timestamp>, Query, description = "created at this time or earlier"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = ControlActionList)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Query,
) -> Result<Json<ControlActionList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let (from, to) = Query::ordered(("from", "to"), (query.time("from")?, query.time("to")?))?;
    let word = |name: &'static str| {
        move |it: api::enums::UnknownWord| invalid(name, &format!("must be one of {}", it.expected))
    };
    let filter = ActionFilter {
        project_id: query.uuid("project_id")?,
        trace_id: query.uuid("trace_id")?,
        policy_id: query.uuid("policy_id")?,
        action_type: query.get("action_type").map(str::parse).transpose().map_err(word("action_type"))?,
        status: query.get("status").map(str::parse).transpose().map_err(word("status"))?,
        from: from.map(Timestamp::from_micros),
        to: to.map(Timestamp::from_micros),
    };
    let scope = format!("control_actions {filter:?}");
    let after =
        query.get("cursor").map(|it| app.cursors.verify::<(i64, Uuid)>(tenant, &scope, it)).transpose()?;
    let after = after.map(|it| it.1);
    let mut rows = control_actions::page(&app.db, tenant, &filter, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.created_at, it.id));
    Ok(Json(ControlActionList {
        actions: rows.into_iter().map(view::action).collect::<Result<_>>()?,
        has_more: next_cursor.is_some(),
        next_cursor,
    }))
}

/// Show a control action.
#[utoipa::path(get, path = "/v1/control/actions/{id}", tag = "Control actions",
    params(("id" = Uuid, Path, description = "id of the action")), responses((status = 200, body = ControlAction)))]
pub async fn detail(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ControlAction>> {
    let row = control_actions::get(app.db.current(), caller.tenant_id, path_id(&id)?).await?;
    Ok(Json(view::action(row.ok_or_else(|| not_found("control action"))?)?))
}

/// Request a control action on a trace.
///
/// The request of a span is repeated in the background, and the output is stored as a new span of the trace. The
/// action waits for approval if its policy requires it. It is escalated, and also waits for approval, if the trace
/// has as many actions as `max_cascade_depth` allows, or as many retries as `max_retry_depth` allows.
#[utoipa::path(post, path = "/v1/control/actions", tag = "Control actions", request_body = NewControlAction,
    responses((status = 202, body = ControlAction)))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<NewControlAction>,
) -> Result<(StatusCode, Json<ControlAction>)> {
    let tenant = caller.tenant_id;
    let NewControlAction { trace_id, action_type, span_id, policy_id, action_config } = body;
    let action_type = requestable_type(&action_type)?;
    let trace = traces::some(app.db.current(), tenant, &[trace_id]).await?.pop();
    let trace = trace.ok_or_else(|| not_found("trace"))?;
    let policy = match policy_id {
        Some(id) => {
            let row = policy_table::get(app.db.current(), tenant, id).await?;
            let row = row.ok_or_else(|| not_found("policy"))?;
            if row.project_id != trace.project_id {
                return Err(Problem::field("policy_id", "belongs to another project than the trace").into());
            }
            Some(row)
        }
        None => None,
    };
    let has_own_callback =
        action_config.as_ref().is_some_and(|it| it.callback_url.is_some() || it.callback_secret.is_some());
    let config = match (action_config, &policy) {
        (Some(config), _) => config,
        (None, Some(policy)) if policy.action_type == action_type.as_str() => {
            serde_json::from_str(&policy.action_config).map_err(anyhow::Error::from)?
        }
        (None, _) => Default::default(),
    };
    check_config(action_type, &config)?;
    if has_own_callback {
        let message = "is only allowed in a policy; name the policy with policy_id instead";
        return Err(Problem::field("action_config.callback_url", message).into());
    }
    let span_id = match span_id {
        Some(span) => {
            if traces::some_spans(&app.db.primary(), tenant, &[(trace_id, span)]).await?.is_empty() {
                return Err(problem(ErrorCode::NotFound, "the trace has no span with this ID"));
            }
            Some(span)
        }
        None => requests::last_call(&app, tenant, trace_id).await?.map(|it| it.id),
    };
    let requester = Requester::Person(&caller);
    let request =
        ActionRequest { trace_id, span_id, action_type, config, policy: policy.as_ref(), requester };
    let row = requests::request(&app, tenant, request).await?;
    let row =
        row.ok_or_else(|| anyhow::anyhow!("a request without a trigger was taken for a repeated one"))?;
    Ok((StatusCode::ACCEPTED, Json(view::action(row)?)))
}

/// Approve a control action that waits for approval.
///
/// It is executed in the background. The approval of an escalated action executes the action that was requested,
/// which does not count towards the limits of the trace.
#[utoipa::path(post, path = "/v1/control/actions/{id}/approve", tag = "Control actions",
    params(("id" = Uuid, Path, description = "id of the action")), responses((status = 202, body = ControlAction)))]
pub async fn approve(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<ControlAction>)> {
    let row = requests::decide(&app, &caller, path_id(&id)?, true).await?;
    Ok((StatusCode::ACCEPTED, Json(view::action(row)?)))
}

/// Reject a control action that waits for approval.
#[utoipa::path(post, path = "/v1/control/actions/{id}/reject", tag = "Control actions",
    params(("id" = Uuid, Path, description = "id of the action")), responses((status = 200, body = ControlAction)))]
pub async fn reject(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ControlAction>> {
    let row = requests::decide(&app, &caller, path_id(&id)?, false).await?;
    Ok(Json(view::action(row)?))
}
