//! Determines the project of an ingest request.

use api::ErrorCode;
use axum::http::HeaderMap;
use entities::project;
use store::Connection;
use uuid::Uuid;

use crate::{
    access::{Caller, Credential},
    app::App,
    audit,
    endpoints::projects,
    error::{Problem, Result, problem},
    http::idempotency::PROJECT_NAME_HEADER,
};

/// Maximum number of projects that ingest creates for a tenant; projects created by request do not
/// count.
const MAX_PROJECTS_BY_INGEST: u64 = 100;

/// Returns the default project of the caller, and checks that the caller may ingest.
///
/// # Errors
///
/// Fails with `error.project.archived` when the key's project is archived.
pub async fn default_project(app: &App, caller: &Caller) -> Result<Uuid> {
    let archived_or_missing = || archived("the project");
    match &caller.credential {
        Credential::Key { project_id, .. } => {
            match app.access_cache.is_project_archived(caller.tenant_id, *project_id).await? {
                Some(false) => Ok(*project_id),
                _ => Err(archived_or_missing()),
            }
        }
        Credential::Session { .. } => {
            let project = store::projects::oldest_active(app.db.current(), caller.tenant_id).await?;
            project.map(|it| it.id).ok_or_else(archived_or_missing)
        }
    }
}

/// Returns the project with this name and creates it if it does not exist.
///
/// # Errors
///
/// Fails with `error.project.archived` when it is archived, and with `validation_failed` when it cannot
/// be created.
pub async fn by_name(app: &App, caller: &Caller, name: &str) -> Result<Uuid> {
    let name = projects::validate_name("project_name", name)?;
    let tenant = caller.tenant_id;
    let known = match app.access_cache.project_by_name(tenant, &name).await? {
        Some(known) => Some(known),
        None => {
            create(app, caller, &name).await?;
            app.access_cache.project_by_name(tenant, &name).await?
        }
    };
    match known {
        Some((id, false)) => Ok(id),
        _ => Err(archived(&format!("the project \"{name}\""))),
    }
}

/// Returns the project name in a request's header.
///
/// # Errors
///
/// Fails with `validation_failed` when it is not valid text.
pub fn name_in_header(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(value) = headers.get(PROJECT_NAME_HEADER) else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes())
        .map_err(|_| Problem::field("X-Project-Name", "must be UTF-8 text"))?;
    Ok(Some(text.to_owned()).filter(|it| !it.trim().is_empty()))
}

async fn create(app: &App, caller: &Caller, name: &str) -> Result<()> {
    let tenant = caller.tenant_id;
    // Checked without a lock first, so that repeated invalid names do not block other requests.
    if !is_missing(app.db.current(), tenant, name).await? {
        return Ok(());
    }
    let txn = app.db.begin().await?;
    // A lock, so that concurrent requests cannot exceed the limit.
    store::tenants::lock(&txn, tenant).await?;
    if !is_missing(&txn, tenant, name).await? {
        return Ok(());
    }
    let new = projects::new_row(tenant, name.to_owned(), app.clock.now());
    let row = project::Model { created_by_ingest: true, ..new };
    match store::projects::add(&txn, row.clone()).await {
        // Creating or renaming a project by request takes no lock.
        Err(error) if store::is_duplicate(&error) => return Ok(()),
        added => added?,
    }
    audit::record(&txn, caller, projects::creation_event(&row), row.created_at).await?;
    Ok(txn.commit().await?)
}

/// Whether a project must be created; false if it exists.
///
/// # Errors
///
/// Fails with `validation_failed` when it must not be created.
async fn is_missing(db: &impl Connection, tenant: Uuid, name: &str) -> Result<bool> {
    // In this order: the project that reached the limit may be the one with this name.
    let projects = store::projects::count_created_by_ingest(db, tenant).await?;
    if store::projects::by_name(db, tenant, name).await?.is_some() {
        return Ok(false);
    }
    if projects >= MAX_PROJECTS_BY_INGEST {
        let message = format!(
            "there is no such project, and ingest has already created its maximum of {MAX_PROJECTS_BY_INGEST} projects; \
             create it with POST /v1/projects"
        );
        return Err(Problem::field("project_name", message).into());
    }
    Ok(true)
}

fn archived(what: &str) -> crate::error::Error {
    problem(ErrorCode::ProjectArchived, format!("{what} is archived and does not accept traces"))
}
