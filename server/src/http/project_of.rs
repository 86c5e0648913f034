//! The project that an ingest goes to.

use api::ErrorCode;
use axum::http::HeaderMap;
use entities::project;
use uuid::Uuid;

use crate::{
    access::{Caller, Credential},
    app::App,
    clock::new_id,
    error::{Problem, Result, problem},
    ingest::part::MAX_LABEL,
    store,
};

/// Projects that come into being by being named, a tenant.
const MAX_PROJECTS: u64 = 100;

/// The project for what names none, and whether the caller may ingest at all.
///
/// # Errors
/// `error.project.archived` when the key's project is archived.
pub async fn own(app: &App, caller: &Caller) -> Result<Uuid> {
    let archived_or_missing = || archived("the project");
    match &caller.credential {
        Credential::Key { project_id, .. } => match app.is_archived(caller.tenant_id, *project_id).await? {
            Some(false) => Ok(*project_id),
            _ => Err(archived_or_missing()),
        },
        Credential::Session { .. } => {
            let project = store::projects::oldest_active(&app.db.read, caller.tenant_id).await?;
            project.map(|it| it.id).ok_or_else(archived_or_missing)
        }
    }
}

/// The project of that name; it is made if there is none.
///
/// # Errors
/// `error.project.archived` when it is archived; `validation_failed` when it can't be made.
pub async fn named(app: &App, caller: &Caller, name: &str) -> Result<Uuid> {
    let name = name.trim().replace('\0', "\u{fffd}");
    if name.is_empty() || name.chars().nth(MAX_LABEL).is_some() {
        return Err(Problem::field("project_name", format!("must have 1 to {MAX_LABEL} characters")).into());
    }
    let tenant = caller.tenant_id;
    let known = match app.project_named(tenant, &name).await? {
        Some(known) => Some(known),
        None => {
            create(app, tenant, &name).await?;
            app.project_named(tenant, &name).await?
        }
    };
    match known {
        Some((id, false)) => Ok(id),
        _ => Err(archived(&format!("the project \"{name}\""))),
    }
}

/// The name that a request's header gives.
///
/// # Errors
/// `validation_failed` when it is not readable text.
pub fn header_name(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(value) = headers.get("x-project-name") else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes())
        .map_err(|_| Problem::field("X-Project-Name", "must be UTF-8 text"))?;
    Ok(Some(text.to_owned()).filter(|it| !it.trim().is_empty()))
}

async fn create(app: &App, tenant: Uuid, name: &str) -> Result<()> {
    if store::projects::count(&app.db.write, tenant).await? >= MAX_PROJECTS {
        let message = format!("there is no such project, and the tenant has {MAX_PROJECTS} already");
        return Err(Problem::field("project_name", message).into());
    }
    let now = app.clock.now();
    let row = project::Model {
        tenant_id: tenant,
        id: new_id(),
        name: name.to_owned(),
        prompt_autoship_enabled: false,
        retention_days: None,
        archived_at: None,
        created_at: now,
        updated_at: now,
    };
    match store::projects::add(&app.db.write, row).await {
        Ok(()) => Ok(()),
        // Another request was first.
        Err(error) if store::is_duplicate(&error) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn archived(what: &str) -> crate::error::Error {
    problem(ErrorCode::ProjectArchived, format!("{what} is archived and takes no traces"))
}
