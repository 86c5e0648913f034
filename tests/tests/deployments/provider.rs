//! A model provider with OpenAI's protocol, and a server whose tenant uses it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use api::{Plan, Role};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tests::{On, TestApp, loopback::LoopbackServer};

/// The response to a request.
#[derive(Clone, Debug)]
pub enum ModelReply {
    /// This text.
    Text(&'static str),
    /// This status.
    Status(u16),
    /// No response.
    Nothing,
}

#[derive(Clone, Default)]
struct ProviderState {
    replies: Arc<Mutex<VecDeque<ModelReply>>>,
    requests: Arc<Mutex<Vec<Value>>>,
}

/// A server and its tenant's provider.
pub struct Scene {
    /// The server.
    pub app: TestApp,
    state: ProviderState,
    url: String,
    address: String,
    _server: LoopbackServer,
}

impl Scene {
    /// Starts both, with a tenant on the plan Team and without a credential.
    pub async fn on(database: On) -> Self {
        let state = ProviderState::default();
        let server = LoopbackServer::start(Router::new().fallback(respond).with_state(state.clone())).await;
        let address = server.address.to_string();
        let app = TestApp::with(database, Plan::Team, &["--egress-allow-cidrs", &address]).await;
        Self { app, state, url: format!("http://{address}/v1"), address, _server: server }
    }

    /// Starts another server on the same database that may reach the provider.
    pub async fn beside(&self) -> TestApp {
        self.app.beside_with(&["--egress-allow-cidrs", &self.address]).await
    }

    /// Stores the tenant's credential.
    pub async fn store_credential(&self) {
        let body = json!({"api_key": "sk-test", "base_url": self.url});
        self.app.session(Role::Owner).put("/v1/provider-credentials/openai", &body).await.ok();
    }

    /// Sets the replies: each serves one request, and the last one all further requests.
    pub fn set_replies(&self, replies: impl IntoIterator<Item = ModelReply>) {
        *self.state.replies.lock().unwrap() = replies.into_iter().collect();
    }

    /// Returns the bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.state.requests.lock().unwrap().clone()
    }
}

async fn respond(State(state): State<ProviderState>, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    state.requests.lock().unwrap().push(request.clone());
    let reply = {
        let mut replies = state.replies.lock().unwrap();
        if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() }
    };
    match reply.unwrap_or(ModelReply::Text("good")) {
        ModelReply::Text(text) => {
            let message = json!({"role": "assistant", "content": text});
            let usage = json!({"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15});
            let body = json!({"id": "1", "model": request["model"], "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage});
            axum::Json(body).into_response()
        }
        ModelReply::Status(status) => {
            let body = json!({"error": {"message": "no luck", "type": "error"}});
            (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response()
        }
        ModelReply::Nothing => std::future::pending().await,
    }
}

/// Runs each test on both databases, each with a new [`Scene`].
macro_rules! with_provider {
    ($($(#[$meta:meta])* async fn $name:ident($scene:ident: Scene) $body:block)+) => {
        $(
            $(#[$meta])*
            mod $name {
                #[allow(unused_imports, reason = "a test uses only some of the imports of its file")]
                use super::*;
                use crate::provider::Scene;

                async fn test($scene: &Scene) $body

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn sqlite() {
                    let scene = Scene::on(tests::On::Sqlite).await;
                    test(&scene).await;
                    scene.app.stop().await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn postgres() {
                    let scene = Scene::on(tests::On::Postgres).await;
                    test(&scene).await;
                    scene.app.stop().await;
                }
            }
        )+
    };
}
pub(crate) use with_provider;
