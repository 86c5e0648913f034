//! The OpenAPI document and the page that shows it, which works without a network.

use std::sync::{Arc, LazyLock};

use axum::{Json, Router};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::openapi;
use crate::app::App;

static DOCUMENT: LazyLock<utoipa::openapi::OpenApi> = LazyLock::new(openapi::document);

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "Health", 
    responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub async fn document() -> Json<&'static utoipa::openapi::OpenApi> {
    Json(&DOCUMENT)
}

/// `/docs`.
pub fn swagger() -> Router<Arc<App>> {
    SwaggerUi::new("/docs").config(Config::from("/v1/openapi.json")).into()
}
