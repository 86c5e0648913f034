//! The demo as a client of its own API: requests pass through the server's router, without a connection.

use std::sync::Arc;

use anyhow::Context;
use axum::{Router, body::Body};
use http_body_util::{BodyExt, Limited};
use hyper::{
    Method, Request,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST},
    service::Service,
};
use hyper_util::service::TowerToHyperService;
use serde_json::Value;

use super::DemoTenant;
use crate::{
    app::App,
    http::{self, route::Route},
};

/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;

/// Sends requests with the session of an owner, as the console does.
#[derive(Clone)]
pub(super) struct OwnApi {
    router: Router,
    authorization: String,
}

impl OwnApi {
    /// Creates a client for the routes of the server.
    pub(super) fn new(app: &Arc<App>, routes: &'static [Route], tenant: &DemoTenant) -> anyhow::Result<Self> {
        Ok(Self {
            router: http::router(app, routes),
            authorization: format!("Bearer {}", tenant.session(app)?),
        })
    }

    /// Returns the JSON of a resource.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::GET, path, Body::empty()).await
    }

    /// Sends a JSON body; returns the JSON of the response.
    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send(Method::POST, path, Body::from(body.to_string())).await
    }

    async fn send(&self, method: Method, path: &str, body: Body) -> anyhow::Result<Value> {
        let request = Request::builder()
            .method(&method)
            .uri(path)
            .header(HOST, "localhost")
            .header(AUTHORIZATION, &self.authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(body)?;
        let Ok(response) = TowerToHyperService::new(self.router.clone()).call(request).await;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
        let body = body.map_err(|it| anyhow::anyhow!("{method} {path}: {it}"))?.to_bytes();
        anyhow::ensure!(
            status.is_success(),
            "{method} {path} returned {status}: {}",
            String::from_utf8_lossy(&body)
        );
        serde_json::from_slice(&body).with_context(|| format!("{method} {path} returned no JSON"))
    }
}

/// Returns a text of a JSON object.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    object.get(name).and_then(Value::as_str).with_context(|| format!("a response has no {name}"))
}
