//! Handlers of projects.

use std::sync::Arc;

use api::{
    ErrorCode, Timestamp,
    project::{NewProject, Project, ProjectChange, ProjectList, ProjectStatus, RedactionSettings},
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use entities::project;
use queue::new_job;
use serde_json::{Value, json};
use store::{DbError, is_duplicate, new_id, projects::Show, row_text::MAX_LABEL, tenants};
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    audit::{self, AuditAction, AuditEvent},
    deployments::jobs::ShipWaiting,
    error::{Error, Problem, Result, not_found, problem},
    feature::Feature,
    http::{
        query::{Query, invalid, path_id},
        read::ApiJson,
        route::{Route, route},
    },
    ingest::redaction::ProjectRedactor,
};

/// A project was created.
const PROJECT_CREATE: AuditAction = AuditAction::new("project.create", "project");
/// A project's settings were changed.
const PROJECT_UPDATE: AuditAction = AuditAction::new("project.update", "project");
/// A project was archived.
const PROJECT_ARCHIVE: AuditAction = AuditAction::new("project.archive", "project");
/// A project was unarchived.
const PROJECT_UNARCHIVE: AuditAction = AuditAction::new("project.unarchive", "project");

/// The redaction settings of a project were changed.
const PROJECT_SET_REDACTION: AuditAction = AuditAction::new("project.set_redaction", "project");

/// Maximum retention in days.
const MAX_RETENTION_DAYS: i32 = 3_650;

/// Projects.
pub const FEATURE: Feature = Feature { routes, ..Feature::NONE };

fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::viewer().keys(Keys::Query)),
        route!(create, Access::member().keys(Keys::Full))
            .audited(PROJECT_CREATE)
            .errors(&[ErrorCode::Conflict]),
        route!(detail, Access::viewer().keys(Keys::Query)),
        route!(update, Access::owner().keys(Keys::Full))
            .audited(PROJECT_UPDATE)
            .errors(&[ErrorCode::Conflict]),
        route!(archive, Access::owner().keys(Keys::Full))
            .audited(PROJECT_ARCHIVE)
            .errors(&[ErrorCode::CannotArchiveLast]),
        route!(unarchive, Access::owner().keys(Keys::Full)).audited(PROJECT_UNARCHIVE),
        route!(redaction, Access::viewer().keys(Keys::Query)),
        route!(set_redaction, Access::owner().keys(Keys::Full)).audited(PROJECT_SET_REDACTION),
    ]
}

/// List active projects, newest first; archived ones on request.
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
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let mut rows = store::projects::page(&app.db.read, tenant, show, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.created_at, it.id));
    let has_more = next_cursor.is_some();
    Ok(Json(ProjectList { projects: rows.into_iter().map(to_wire).collect(), has_more, next_cursor }))
}

/// Show a project.
#[utoipa::path(get, path = "/v1/projects/{id}", tag = "Projects", params(("id" = Uuid, Path, description = "id of the project")),
    responses((status = 200, body = Project)))]
pub async fn detail(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Project>> {
    let row = store::projects::get(app.db.current(), caller.tenant_id, path_id(&id)?).await?;
    row.map(|it| Json(to_wire(it))).ok_or_else(|| not_found("project"))
}

/// Create a project.
#[utoipa::path(post, path = "/v1/projects", tag = "Projects", request_body = NewProject,
    responses((status = 201, body = Project)))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<NewProject>,
) -> Result<(StatusCode, Json<Project>)> {
    let now = app.clock.now();
    let row = project::Model {
        prompt_autoship_enabled: body.prompt_autoship_enabled.unwrap_or(false),
        retention_days: validate_retention(body.retention_days)?,
        ..new_row(caller.tenant_id, validate_name("name", &body.name)?, now)
    };
    let txn = app.db.begin().await?;
    store::projects::add(&txn, row.clone()).await.map_err(|it| name_conflict(it, &row.name))?;
    audit::record(&txn, &caller, creation_event(&row), now).await?;
    app.commit(txn).await?;
    Ok((StatusCode::CREATED, Json(to_wire(row))))
}

/// Change a project's settings.
///
/// Absent fields keep their values. With `retention_days`, older traces are deleted soon and
/// permanently. Switching `prompt_autoship_enabled` on ships the newest waiting deployment of each prompt.
#[utoipa::path(patch, path = "/v1/projects/{id}", tag = "Projects", request_body = ProjectChange,
    params(("id" = Uuid, Path, description = "id of the project")),
    responses((status = 200, body = Project)))]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    ApiJson(body): ApiJson<ProjectChange>,
) -> Result<Json<Project>> {
    let (id, now) = (path_id(&id)?, app.clock.now());
    let name = body.name.as_deref().map(|it| validate_name("name", it)).transpose()?;
    let keep_days = body.retention_days.map(validate_retention).transpose()?;
    let txn = app.db.begin().await?;
    let was = store::projects::lock(&txn, caller.tenant_id, id).await?.ok_or_else(|| not_found("project"))?;
    let row = project::Model {
        name: name.unwrap_or_else(|| was.name.clone()),
        prompt_autoship_enabled: body.prompt_autoship_enabled.unwrap_or(was.prompt_autoship_enabled),
        retention_days: keep_days.unwrap_or(was.retention_days),
        ..was.clone()
    };
    if row == was {
        return Ok(Json(to_wire(was)));
    }
    let row = project::Model { updated_at: now, ..row };
    store::projects::replace(&txn, row.clone()).await.map_err(|it| name_conflict(it, &row.name))?;
    let event = AuditEvent::of(PROJECT_UPDATE).on(id).with(changes(&was, &row));
    audit::record(&txn, &caller, event, now).await?;
    let mut jobs = Vec::new();
    if row.prompt_autoship_enabled && !was.prompt_autoship_enabled {
        jobs.push(new_job(row.tenant_id, &ShipWaiting { project: id }, now, now));
        queue::enqueue_all(&txn, jobs.clone()).await?;
    }
    app.commit(txn).await?;
    app.wake_ups().wake_for(&jobs);
    Ok(Json(to_wire(row)))
}

/// Archive a project. Ingest with its keys is rejected from now on; data, keys and history are kept.
#[utoipa::path(post, path = "/v1/projects/{id}/archive", tag = "Projects", params(("id" = Uuid, Path, description = "id of the project")),
    responses((status = 200, body = Project)))]
pub async fn archive(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Project>> {
    set_archived(&app, &caller, path_id(&id)?, true).await
}

/// Unarchive a project. Ingest resumes immediately with the same keys.
#[utoipa::path(post, path = "/v1/projects/{id}/unarchive", tag = "Projects", params(("id" = Uuid, Path, description = "id of the project")),
    responses((status = 200, body = Project)))]
pub async fn unarchive(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Project>> {
    set_archived(&app, &caller, path_id(&id)?, false).await
}

/// Show the redaction settings of a project.
#[utoipa::path(get, path = "/v1/projects/{id}/redaction", tag = "Projects", params(("id" = Uuid, Path, description = "id of the project")),
    responses((status = 200, body = RedactionSettings)))]
pub async fn redaction(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<RedactionSettings>> {
    let row = store::projects::get(app.db.current(), caller.tenant_id, path_id(&id)?).await?;
    Ok(Json(redaction_of(&row.ok_or_else(|| not_found("project"))?)?))
}

/// Replace the redaction settings of a project. Ingest masks values in new texts before it stores them.
///
/// Requests that begin after the response are redacted; stored texts stay as they are. Empty lists mask nothing.
#[utoipa::path(put, path = "/v1/projects/{id}/redaction", tag = "Projects", request_body = RedactionSettings,
    params(("id" = Uuid, Path, description = "id of the project")),
    responses((status = 200, body = RedactionSettings)))]
pub async fn set_redaction(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    ApiJson(body): ApiJson<RedactionSettings>,
) -> Result<Json<RedactionSettings>> {
    let (id, now) = (path_id(&id)?, app.clock.now());
    ProjectRedactor::new(&body).map_err(|it| Problem::field(it.field, it.message))?;
    let txn = app.db.begin().await?;
    let was = store::projects::lock(&txn, caller.tenant_id, id).await?.ok_or_else(|| not_found("project"))?;
    let from = redaction_of(&was)?;
    if from == body {
        return Ok(Json(body));
    }
    let stored = (!body.is_off()).then(|| serde_json::to_string(&body)).transpose();
    let row = project::Model { redaction: stored.map_err(anyhow::Error::from)?, updated_at: now, ..was };
    store::projects::replace(&txn, row).await?;
    let event = AuditEvent::of(PROJECT_SET_REDACTION).on(id).with(json!({"from": from, "to": body}));
    audit::record(&txn, &caller, event, now).await?;
    app.commit(txn).await?;
    Ok(Json(body))
}

/// Returns the redaction settings of a project.
fn redaction_of(row: &project::Model) -> Result<RedactionSettings> {
    let Some(stored) = &row.redaction else { return Ok(RedactionSettings::default()) };
    Ok(serde_json::from_str(stored).map_err(anyhow::Error::from)?)
}

async fn set_archived(app: &App, caller: &Caller, id: Uuid, archive: bool) -> Result<Json<Project>> {
    let (tenant, now) = (caller.tenant_id, app.clock.now());
    let txn = app.db.begin().await?;
    if archive {
        // A lock, so that concurrent requests cannot archive the last two projects.
        tenants::lock(&txn, tenant).await?;
    }
    let was = store::projects::lock(&txn, tenant, id).await?.ok_or_else(|| not_found("project"))?;
    // The project is already in the requested state.
    if was.archived_at.is_some() == archive {
        return Ok(Json(to_wire(was)));
    }
    if archive && !store::projects::another_is_active(&txn, tenant, id).await? {
        return Err(problem(
            ErrorCode::CannotArchiveLast,
            "this is the tenant's last active project and can't be archived",
        ));
    }
    let row = project::Model { archived_at: archive.then_some(now), updated_at: now, ..was };
    store::projects::replace(&txn, row.clone()).await?;
    let action = if archive { PROJECT_ARCHIVE } else { PROJECT_UNARCHIVE };
    let event = AuditEvent::of(action).on(id).with(json!({"name": row.name}));
    audit::record(&txn, caller, event, now).await?;
    app.commit(txn).await?;
    Ok(Json(to_wire(row)))
}

/// Returns a new project with default settings.
pub fn new_row(tenant: Uuid, name: String, now: i64) -> project::Model {
    project::Model {
        tenant_id: tenant,
        id: new_id(),
        name,
        prompt_autoship_enabled: false,
        retention_days: None,
        archived_at: None,
        created_at: now,
        updated_at: now,
        created_by_ingest: false,
        redaction: None,
    }
}

/// Returns the audit event of a created project.
pub fn creation_event(row: &project::Model) -> AuditEvent {
    let detail = json!({"name": row.name, "retention_days": row.retention_days});
    AuditEvent::of(PROJECT_CREATE).on(row.id).with(detail)
}

/// Validates and normalizes a name.
///
/// # Errors
///
/// Fails with `validation_failed` when it is empty or too long.
pub fn validate_name(field: &str, text: &str) -> Result<String> {
    let name = text.trim().replace('\0', "\u{fffd}");
    if name.is_empty() || name.chars().nth(MAX_LABEL).is_some() {
        return Err(Problem::field(field, format!("must have 1 to {MAX_LABEL} characters")).into());
    }
    Ok(name)
}

fn validate_retention(days: Option<i64>) -> Result<Option<i32>> {
    let Some(days) = days else { return Ok(None) };
    let allowed = i32::try_from(days).ok().filter(|it| (1..=MAX_RETENTION_DAYS).contains(it));
    let problem = || {
        Problem::field("retention_days", format!("must be between 1 and {MAX_RETENTION_DAYS}, or be null"))
    };
    Ok(Some(allowed.ok_or_else(problem)?))
}

fn name_conflict(error: DbError, name: &str) -> Error {
    match is_duplicate(&error) {
        true => problem(ErrorCode::Conflict, format!("the project \"{name}\" exists already")),
        false => error.into(),
    }
}

/// Returns the changed fields with their old and new values.
fn changes(was: &project::Model, is: &project::Model) -> Value {
    let pairs = [
        ("name", json!(was.name), json!(is.name)),
        ("prompt_autoship_enabled", json!(was.prompt_autoship_enabled), json!(is.prompt_autoship_enabled)),
        ("retention_days", json!(was.retention_days), json!(is.retention_days)),
    ];
    pairs
        .into_iter()
        .filter(|it| it.1 != it.2)
        .map(|(name, from, to)| (name.to_owned(), json!({"from": from, "to": to})))
        .collect()
}

fn to_wire(row: project::Model) -> Project {
    let project::Model {
        tenant_id: _,
        id,
        name,
        prompt_autoship_enabled,
        retention_days,
        archived_at,
        created_at,
        updated_at,
        created_by_ingest: _,
        redaction: _,
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
