//! Handlers of failures.

use std::sync::Arc;

use api::{
    FailureType, Plan, Timestamp,
    failure::{FailureFilter, FailureList},
};
use axum::{Json, extract::State};
use uuid::Uuid;

use crate::{
    access::{Access, Caller},
    app::App,
    error::Result,
    failures::view,
    http::{
        query::{Query, invalid},
        route::{Route, route},
    },
};

/// Returns the routes of failures.
pub fn routes() -> Vec<Route> {
    vec![route!(list, Access::viewer().plan(Plan::Team))]
}

/// List failures, newest first.
#[utoipa::path(get, path = "/v1/failures", tag = "Failures", params(
    ("project_id" = Option<Uuid>, Query, description = "of this project"),
    ("type" = Option<FailureType>, Query, description = "of this type"),
    ("cluster_id" = Option<Uuid>, Query, description = "of this cluster"),
    ("trace_id" = Option<Uuid>, Query, description = "of this trace"),
    ("model" = Option<String>, Query, description = "of this model"),
    ("from" = Option<Timestamp>, Query, description = "stored at this time or later"),
    ("to" = Option<Timestamp>, Query, description = "stored at this time or earlier"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = FailureList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<FailureList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let (from, to) = Query::ordered(("from", "to"), (query.time("from")?, query.time("to")?))?;
    let filter = FailureFilter {
        project_id: query.uuid("project_id")?,
        failure_type: failure_type(&query, "type")?,
        cluster_id: query.uuid("cluster_id")?,
        trace_id: query.uuid("trace_id")?,
        model: query.text("model"),
        from: from.map(Timestamp::from_micros),
        to: to.map(Timestamp::from_micros),
    };
    let scope = format!("failures {filter:?}");
    let after =
        query.get("cursor").map(|it| app.cursors.verify::<(i64, Uuid)>(tenant, &scope, it)).transpose()?;
    let after = after.map(|it| it.1);
    let mut rows = store::failures::page(&app.db, tenant, &filter, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.created_at, it.id));
    Ok(Json(FailureList {
        failures: rows.into_iter().map(view::failure).collect::<Result<_>>()?,
        has_more: next_cursor.is_some(),
        next_cursor,
    }))
}

/// Returns the failure type that a parameter names.
///
/// # Errors
///
/// Fails with `invalid_query`.
pub fn failure_type(query: &Query, name: &str) -> Result<Option<FailureType>> {
    let unknown = |it: api::enums::UnknownWord| invalid(name, &format!("must be one of {}", it.expected));
    query.get(name).map(|it| it.parse().map_err(unknown)).transpose()
}
