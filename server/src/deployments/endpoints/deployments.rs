//! Handlers of prompt deployments.

use std::sync::Arc;

use api::{
    ErrorCode, Plan,
    deployment::{
        DeploymentDecision, DeploymentFilter, DeploymentStatus, NewPromptDeployment, PromptDeployment,
        PromptDeploymentList,
    },
    enums::UnknownWord,
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use store::prompts;
use uuid::Uuid;

use crate::{
    access::{Access, Caller},
    app::App,
    deployments::{
        creation::{self, DEPLOYMENT_CREATE},
        decisions::{self, DEPLOYMENT_APPROVE, DEPLOYMENT_REJECT, DEPLOYMENT_ROLLBACK, OwnerDecision},
        view,
    },
    error::{Result, not_found},
    http::{
        query::{Query, invalid, path_id},
        read::{ApiJson, OptionalJson},
        route::{Route, route},
    },
};

/// Returns the routes of prompt deployments.
pub fn routes() -> Vec<Route> {
    let owner = Access::owner().plan(Plan::Team);
    vec![
        route!(list, Access::viewer().plan(Plan::Team)).parameter_type::<DeploymentStatus>(),
        route!(create, Access::member().plan(Plan::Team)).audited(DEPLOYMENT_CREATE).errors(&[
            ErrorCode::NotFound,
            ErrorCode::Conflict,
            ErrorCode::ProviderCredentialsMissing,
        ]),
        route!(detail, Access::viewer().plan(Plan::Team)),
        route!(approve, owner).audited(DEPLOYMENT_APPROVE).errors(&[ErrorCode::InvalidState]),
        route!(reject, owner).audited(DEPLOYMENT_REJECT).errors(&[ErrorCode::InvalidState]),
        route!(rollback, owner).audited(DEPLOYMENT_ROLLBACK).errors(&[ErrorCode::InvalidState]),
    ]
}

/// List prompt deployments, newest first.
#[utoipa::path(get, path = "/v1/prompts/deployments", tag = "Prompts", params(
    ("project_id" = Option<Uuid>, Query, description = "of this project"),
    ("prompt_name" = Option<String>, Query, description = "of this prompt"),
    ("status" = Option<DeploymentStatus>, Query, description = "with this status"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = PromptDeploymentList)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Query,
) -> Result<Json<PromptDeploymentList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let word = |it: UnknownWord| invalid("status", &format!("must be one of {}", it.expected));
    let filter = DeploymentFilter {
        project_id: query.uuid("project_id")?,
        prompt_name: query.text("prompt_name"),
        status: query.get("status").map(str::parse).transpose().map_err(word)?,
    };
    let scope = format!("prompt_deployments {filter:?}");
    let after =
        query.get("cursor").map(|it| app.cursors.verify::<(i64, Uuid)>(tenant, &scope, it)).transpose()?;
    let after = after.map(|it| it.1);
    let mut rows = prompts::page(app.db.current(), tenant, &filter, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.created_at, it.id));
    Ok(Json(PromptDeploymentList {
        deployments: rows.into_iter().map(view::deployment).collect::<Result<_>>()?,
        has_more: next_cursor.is_some(),
        next_cursor,
    }))
}

/// Show a prompt deployment.
#[utoipa::path(get, path = "/v1/prompts/deployments/{id}", tag = "Prompts",
    params(("id" = Uuid, Path, description = "id of the deployment")),
    responses((status = 200, body = PromptDeployment)))]
pub async fn detail(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<PromptDeployment>> {
    let row = prompts::deployment(app.db.current(), caller.tenant_id, path_id(&id)?).await?;
    Ok(Json(view::deployment(row.ok_or_else(|| not_found("prompt deployment"))?)?))
}

/// Create a version of a prompt.
///
/// If a version of the prompt is shipped, the new one is tested against it: `live` with a share of the applications'
/// traffic, or by a `replay` of stored inputs. Otherwise it is `ab_passed` at once. A version that passed waits for approval,
/// unless `prompt_autoship_enabled` of its project is true.
#[utoipa::path(post, path = "/v1/prompts/deployments", tag = "Prompts", request_body = NewPromptDeployment,
    responses((status = 201, body = PromptDeployment)))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<NewPromptDeployment>,
) -> Result<(StatusCode, Json<PromptDeployment>)> {
    let row = creation::create(&app, &caller, body).await?;
    Ok((StatusCode::CREATED, Json(view::deployment(row)?)))
}

/// Ship a deployment that passed its test.
///
/// The version that was shipped before becomes `superseded`. Without a body, the decision has no note.
#[utoipa::path(post, path = "/v1/prompts/deployments/{id}/approve", tag = "Prompts",
    request_body = Option<DeploymentDecision>, params(("id" = Uuid, Path, description = "id of the deployment")),
    responses((status = 200, body = PromptDeployment)))]
pub async fn approve(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    OptionalJson(body): OptionalJson<DeploymentDecision>,
) -> Result<Json<PromptDeployment>> {
    decide(&app, &caller, &id, OwnerDecision::Approve, body).await
}

/// Reject a deployment.
///
/// If it was shipped, the version before it is shipped again. Without a body, the decision has no note.
#[utoipa::path(post, path = "/v1/prompts/deployments/{id}/reject", tag = "Prompts",
    request_body = Option<DeploymentDecision>, params(("id" = Uuid, Path, description = "id of the deployment")),
    responses((status = 200, body = PromptDeployment)))]
pub async fn reject(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    OptionalJson(body): OptionalJson<DeploymentDecision>,
) -> Result<Json<PromptDeployment>> {
    decide(&app, &caller, &id, OwnerDecision::Reject, body).await
}

/// Roll a shipped or regressed deployment back.
///
/// The version that was shipped before it is shipped again. Without a body, the decision has no note.
#[utoipa::path(post, path = "/v1/prompts/deployments/{id}/rollback", tag = "Prompts",
    request_body = Option<DeploymentDecision>, params(("id" = Uuid, Path, description = "id of the deployment")),
    responses((status = 200, body = PromptDeployment)))]
pub async fn rollback(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    OptionalJson(body): OptionalJson<DeploymentDecision>,
) -> Result<Json<PromptDeployment>> {
    decide(&app, &caller, &id, OwnerDecision::Rollback, body).await
}

async fn decide(
    app: &App,
    caller: &Caller,
    id: &str,
    decision: OwnerDecision,
    body: DeploymentDecision,
) -> Result<Json<PromptDeployment>> {
    let row = decisions::decide(app, caller, path_id(id)?, decision, body).await?;
    Ok(Json(view::deployment(row)?))
}
