//! Requests that the process sends to itself: they pass through the router with all middleware, without a connection.

use std::sync::Arc;

use axum::{Router, body::Body, http::Method};
use http_body_util::{BodyExt, Limited};
use hyper::{
    Request, StatusCode,
    body::Bytes,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST},
    service::Service,
};
use hyper_util::service::TowerToHyperService;

use super::route::Route;
use crate::app::App;

/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;

/// Sends requests of one caller to the routes of this process.
#[derive(Clone)]
pub struct InProcessClient {
    router: Router,
    token: String,
}

impl InProcessClient {
    /// Creates a client that sends `token` with each request.
    pub fn new(app: &Arc<App>, routes: &'static [Route], token: String) -> Self {
        Self { router: super::router(app, routes), token }
    }

    /// Sends a request, with a JSON body unless it is a GET. Returns the status and the body of the response.
    ///
    /// # Errors
    ///
    /// Fails when the path is invalid, or the response is larger than 8 MiB.
    pub async fn send(&self, path: &str, json: Option<String>) -> anyhow::Result<(StatusCode, Bytes)> {
        let method = if json.is_some() { Method::POST } else { Method::GET };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost")
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(CONTENT_TYPE, "application/json")
            .body(json.map_or_else(Body::empty, Body::from))?;
        let Ok(response) = TowerToHyperService::new(self.router.clone()).call(request).await;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
        let body = body.map_err(|it| anyhow::anyhow!("the response can't be read: {it}"))?;
        Ok((status, body.to_bytes()))
    }
}
