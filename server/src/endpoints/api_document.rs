//! The OpenAPI document and its viewer, which works without a network.

use std::sync::{Arc, LazyLock};

use axum::{
    Router,
    body::Bytes,
    http::header,
    response::{IntoResponse, Response},
};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::{app::App, error::Result, http::openapi};

/// The document as JSON, shared by all responses.
static OPENAPI_JSON: LazyLock<serde_json::Result<Bytes>> =
    LazyLock::new(|| serde_json::to_vec(&openapi::document()).map(Bytes::from));

/// Show this document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "Health",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub async fn document() -> Result<Response> {
    let json = OPENAPI_JSON.as_ref().map_err(|error| anyhow::anyhow!("the OpenAPI document: {error}"))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json.clone()).into_response())
}

/// Serves the viewer at `/docs`.
pub fn swagger() -> Router<Arc<App>> {
    SwaggerUi::new("/docs").config(Config::from("/v1/openapi.json")).into()
}
