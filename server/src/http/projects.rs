//! Projects: reading, archiving, unarchiving.

use std::sync::Arc;

use api::{
    ErrorCode, Timestamp,
    project::{Project, ProjectList, ProjectStatus},
};
use axum::{
    Json,
    extract::{Path, State},
};
use entities::project;
use uuid::Uuid;

use super::query::{Query, invalid, path_id};
use crate::{
    access::Caller,
    app::App,
    error::{Result, not_found, problem},
    store::projects::{self as store, Show},
};

/// List projects, newest first; archived ones only when asked for.
#[utoipa::path(get, path = "/v1/projects", tag = "Projects", params(
    ("status" = Option<String>, Query, description = "active (default), archived or all"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = ProjectList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<ProjectList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let show = match query.get("status") {
        None | Some("active") => Show::Active,
        Some("archived") => Show::Archived,
        Some("all") => Show::All,
        Some(_) => return Err(invalid("status", "must be active, archived or all")),
    };
    let scope = format!("projects {show:?}");
    let after = query.get("cursor").map(|it| app.cursors.open(tenant, &scope, it)).transpose()?;
    let mut rows = store::page(&app.db.read, tenant, show, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.created_at, it.id));
    let has_more = next_cursor.is_some();
    Ok(Json(ProjectList { projects: rows.into_iter().map(wire).collect(), has_more, next_cursor }))
}

/// Show one project.
#[utoipa::path(get, path = "/v1/projects/{id}", tag = "Projects", params(("id" = Uuid, Path, description = "id of the project")),
    responses((status = 200, body = Project)))]
pub async fn detail(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Project>> {
    let row = store::get(&app.db.read, caller.tenant_id, path_id(&id)?).await?;
    row.map(|it| Json(wire(it))).ok_or_else(|| not_found("project"))
}

/// Archive a project: ingest with its keys is refused from now on; data, keys and history are kept.
#[utoipa::path(post, path = "/v1/projects/{id}/archive", tag = "Projects", params(("id" = Uuid, Path, description = "id of the project")),
    responses((status = 200, body = Project)))]
pub async fn archive(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Project>> {
    set_archived(&app, caller.tenant_id, path_id(&id)?, true).await
}

/// Unarchive a project: ingest resumes at once, with the same keys.
#[utoipa::path(post, path = "/v1/projects/{id}/unarchive", tag = "Projects", params(("id" = Uuid, Path, description = "id of the project")),
    responses((status = 200, body = Project)))]
pub async fn unarchive(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Project>> {
    set_archived(&app, caller.tenant_id, path_id(&id)?, false).await
}

async fn set_archived(app: &App, tenant: Uuid, id: Uuid, archive: bool) -> Result<Json<Project>> {
    let now = app.clock.now();
    let txn = app.db.begin().await?;
    // Two projects archived at the same time must not both be told that the other remains.
    let active = store::lock_active(&txn, tenant).await?;
    let row = store::get(&txn, tenant, id).await?.ok_or_else(|| not_found("project"))?;
    let row = match (archive, row.archived_at) {
        // Already as asked: nothing changes.
        (true, Some(_)) | (false, None) => row,
        (true, None) if active.iter().all(|it| *it == id) => {
            return Err(problem(
                ErrorCode::CannotArchiveLast,
                "this is the tenant's last active project and can't be archived",
            ));
        }
        (true, None) => store::set_archived(&txn, row, Some(now), now).await?,
        (false, Some(_)) => store::set_archived(&txn, row, None, now).await?,
    };
    txn.commit().await?;
    app.forget();
    Ok(Json(wire(row)))
}

fn wire(row: project::Model) -> Project {
    let project::Model {
        tenant_id: _,
        id,
        name,
        prompt_autoship_enabled,
        retention_days,
        archived_at,
        created_at,
        updated_at,
    } = row;
    Project {
        id,
        name,
        status: if archived_at.is_some() { ProjectStatus::Archived } else { ProjectStatus::Active },
        prompt_autoship_enabled,
        retention_days,
        archived_at: archived_at.map(Timestamp::from_micros),
        created_at: Timestamp::from_micros(created_at),
        updated_at: Timestamp::from_micros(updated_at),
    }
}
