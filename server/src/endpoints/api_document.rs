//! The OpenAPI document.

use std::sync::Arc;

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};

use crate::{
    access::Access,
    app::App,
    error::Result,
    feature::Feature,
    http::route::{Route, route},
};

/// The OpenAPI document.
pub const FEATURE: Feature = Feature { routes, ..Feature::NONE };

fn routes() -> Vec<Route> {
    vec![route!(document, Access::Open)]
}

/// Show this document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "Health",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub async fn document(State(app): State<Arc<App>>) -> Result<Response> {
    Ok(([(header::CONTENT_TYPE, "application/json")], (app.openapi_json)()?).into_response())
}
