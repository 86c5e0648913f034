//! Finds the redactors of the projects of a request.

use std::{collections::HashMap, sync::Arc};

use semantics::otlp::{OtlpExport, redact::Redact};
use uuid::Uuid;

use crate::{
    access::Caller,
    app::App,
    endpoints::projects,
    error::{Problem, Result, stopping},
    ingest::redaction::{ProjectRedactor, RequestRedactors},
};

/// Maximum number of projects that the resources of one request name.
const MAX_NAMED_PROJECTS: usize = 1_000;

/// Redacts an export. Spans belong to `project`, or to the project that their resource names if `by_resource`.
///
/// # Errors
///
/// Fails when the database fails, or when the request names too many projects.
pub async fn redact_export(
    app: &App,
    caller: &Caller,
    export: &mut impl OtlpExport,
    project: Uuid,
    by_resource: bool,
) -> Result<RequestRedactors> {
    let tenant = caller.tenant_id;
    let own = app.access_cache.redactor(tenant, project).await?;
    let mut by_name: HashMap<String, Option<Arc<ProjectRedactor>>> = HashMap::new();
    let names = export.project_names().into_iter().filter(|_| by_resource).flatten();
    for name in names {
        if by_name.contains_key(&name) {
            continue;
        }
        if by_name.len() == MAX_NAMED_PROJECTS {
            let message = format!("names more than {MAX_NAMED_PROJECTS} projects; send several requests");
            return Err(Problem::field("resourceSpans", message).into());
        }
        // A project that does not exist yet redacts nothing. Invalid names are rejected later.
        let id = match projects::validate_name("project_name", &name) {
            Ok(valid) => app.access_cache.project_by_name(tenant, &valid).await?.map(|it| it.0),
            Err(_) => None,
        };
        let redactor = match id {
            Some(id) => app.access_cache.redactor(tenant, id).await?,
            None => None,
        };
        by_name.insert(name, redactor);
    }
    let redactors: Vec<_> = own.iter().chain(by_name.values().flatten()).cloned().collect();
    if redactors.is_empty() {
        return Ok(RequestRedactors::default());
    }
    let _permit = app.decoding_permits.acquire().await.map_err(|_| stopping())?;
    export.redact(|name| {
        let redactor = match name.filter(|_| by_resource) {
            Some(name) => by_name.get(name).and_then(Option::as_ref),
            None => own.as_ref(),
        };
        redactor.map(|it| it.as_ref() as &dyn Redact)
    });
    Ok(RequestRedactors(redactors))
}
