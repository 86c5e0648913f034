//! The demo as a client of its own API, with the session of an owner.

use std::sync::Arc;

use anyhow::Context;
use serde_json::Value;

use super::DemoTenant;
use crate::{
    app::App,
    http::{in_process::InProcessClient, route::Route},
};

/// Sends requests as the console does.
#[derive(Clone)]
pub(super) struct OwnApi {
    client: InProcessClient,
}

impl OwnApi {
    /// Creates a client for the routes of the server.
    pub(super) fn new(app: &Arc<App>, routes: &'static [Route], tenant: &DemoTenant) -> anyhow::Result<Self> {
        Ok(Self { client: InProcessClient::new(app, routes, tenant.session(app)?) })
    }

    /// Returns the JSON of a resource.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(path, None).await
    }

    /// Sends a JSON body; returns the JSON of the response.
    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send(path, Some(body.to_string())).await
    }

    async fn send(&self, path: &str, json: Option<String>) -> anyhow::Result<Value> {
        let (status, body) = self.client.send(path, json).await.with_context(|| path.to_owned())?;
        anyhow::ensure!(status.is_success(), "{path} returned {status}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).with_context(|| format!("{path} returned no JSON"))
    }
}

/// Returns a text of a JSON object.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    object.get(name).and_then(Value::as_str).with_context(|| format!("a response has no {name}"))
}
