//! Health checks: whether the process runs and can serve requests.

use std::sync::Arc;

use api::ErrorCode;
use axum::{Json, extract::State, response::Html};

use crate::{
    access::Access,
    app::App,
    error::{Result, problem},
    feature::Feature,
    http::route::{Route, route},
};

/// The body of a passing health check.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub struct Status {
    /// `ok`.
    status: &'static str,
}

/// Health checks.
pub const FEATURE: Feature = Feature { routes, ..Feature::NONE };

fn routes() -> Vec<Route> {
    vec![
        route!(root, Access::Open),
        route!(live, Access::Open),
        route!(ready, Access::Open).errors(&[ErrorCode::Overloaded]),
    ]
}

/// Show a short page for browsers.
#[utoipa::path(get, path = "/", tag = "Health",
    responses((status = 200, description = "a short page", body = String, content_type = "text/html")))]
pub async fn root() -> Html<&'static str> {
    Html(
        "<!doctype html><title>Loupe</title><p>This is Loupe, observability and evaluation for LLM applications.\n\
         <p>Its API is described at <a href=\"/docs\">/docs</a>.\n\
         <p>Look at traces with <code>loupe console</code>.\n",
    )
}

/// Check that the process runs.
#[utoipa::path(get, path = "/healthz", tag = "Health",
    responses((status = 200, description = "up", body = Status)))]
pub async fn live() -> Json<Status> {
    Json(Status { status: "ok" })
}

/// Check that the server can serve requests: the database responds, its schema is current, and it is
/// writable.
#[utoipa::path(get, path = "/readyz", tag = "Health",
    responses((status = 200, description = "can serve", body = Status)))]
pub async fn ready(State(app): State<Arc<App>>) -> Result<Json<Status>> {
    if let Err(reason) = app.db.health.check_writable() {
        return Err(reason.into());
    }
    // Serving begins after the migrations, so the schema of a reachable database is current.
    if app.is_stopping() || !app.db.is_reachable().await {
        return Err(problem(
            ErrorCode::Overloaded,
            "the database can't be reached, or the server is stopping",
        ));
    }
    Ok(Json(Status { status: "ok" }))
}
