//! The handler that serves a prompt to an application.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    ErrorCode, Plan,
    deployment::{PROMPT_NAME_TAG, PROMPT_VERSION_TAG, ServedPrompt, TestArm},
};
use axum::{
    Json,
    extract::{Path, State},
};
use store::{projects::Show, rates::RateBucket};
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Credential, Keys},
    app::App,
    deployments::{cached::PromptVersion, new_deployment::MAX_NAME_CHARS, serving},
    error::{Result, not_found},
    http::{
        query::{Query, invalid},
        route::{Route, route},
    },
};

/// Returns the route of served prompts. Only a miss of the cache needs a read permit, because a hit costs no query.
pub fn routes() -> Vec<Route> {
    vec![
        route!(serve, Access::viewer().keys(Keys::Any))
            .counts_to(RateBucket::Prompts)
            .acquires_permits()
            .errors(&[ErrorCode::NotFound])
            .parameter_type::<TestArm>(),
    ]
}

/// Show the version of a prompt that an application uses.
///
/// During a live test, `subject` (for example a user or a session) decides which version it gets: the same subject gets the
/// same version. Without a subject, each request is decided at random. The subject is neither stored nor logged. The
/// application sets the `tags` of the response on its traces, so that their scores count for this version.
#[utoipa::path(get, path = "/v1/prompts/{name}", tag = "Prompts", params(
    ("name" = String, Path, description = "name of the prompt"),
    ("project_id" = Option<Uuid>, Query, description = "default: the project of the key, or the only active project"),
    ("subject" = Option<String>, Query, description = "who gets the prompt")),
    responses((status = 200, body = ServedPrompt)))]
pub async fn serve(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    query: Query,
) -> Result<Json<ServedPrompt>> {
    let project = match (query.uuid("project_id")?, &caller.credential) {
        (Some(project), _) => project,
        (None, Credential::Key { project_id, .. }) => *project_id,
        (None, Credential::Session { .. }) => only_project(&app, caller.tenant_id).await?,
    };
    // Other names are not stored, and PostgreSQL rejects NUL.
    if name.contains('\0') || name.chars().nth(MAX_NAME_CHARS).is_some() {
        return Err(not_found("prompt"));
    }
    let read_permit = async || app.read_permit(caller.tenant_id).await;
    let versions = app.access_cache.prompt_versions(caller.tenant_id, project, &name, read_permit).await?;
    let versions = versions.ok_or_else(|| not_found("prompt with a shipped version"))?;
    // On a lower plan, tests do not progress, so they get no traffic.
    let (version, arm) = match caller.plan < Plan::Team {
        true => (&versions.shipped, None),
        false => serving::select(&versions, query.get("subject"))?,
    };
    let PromptVersion { deployment_id, version, template, model } = version.clone();
    let tags = BTreeMap::from([
        (PROMPT_NAME_TAG.to_owned(), name.clone()),
        (PROMPT_VERSION_TAG.to_owned(), version.to_string()),
    ]);
    Ok(Json(ServedPrompt {
        prompt_name: name,
        project_id: project,
        deployment_id,
        version,
        template,
        model,
        arm,
        tags,
    }))
}

/// Returns the only active project of a tenant.
async fn only_project(app: &App, tenant: Uuid) -> Result<Uuid> {
    let _permit = app.read_permit(tenant).await?;
    match store::projects::page(app.db.current(), tenant, Show::Active, None, 2).await?.as_slice() {
        [only] => Ok(only.id),
        _ => Err(invalid("project_id", "is required, because the tenant has several projects")),
    }
}
