//! An embedding provider with a configurable behaviour, which records its requests.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tests::loopback::{LoopbackServer, endless_body};

/// The behaviour of a provider.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Responds correctly, in base64.
    Succeeds,
    /// Responds correctly, with numbers.
    SendsNumbers,
    /// Responds with this status and this `Retry-After`.
    Status(u16, Option<&'static str>),
    /// Responds with this body.
    Body(Value),
    /// Sends no response.
    Stalls,
    /// Sends an endless response.
    SendsEndlessly,
    /// Rejects requests with texts that contain this.
    RejectsWord(&'static str),
    /// Rejects texts of more characters than this.
    LimitsTextLength(usize),
    /// Rejects requests with more texts than this.
    LimitsBatch(usize),
}

/// A recorded request.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedRequest {
    /// The token of the request.
    pub key: String,
    /// The requested model.
    pub model: String,
    /// The texts of the request.
    pub texts: Vec<String>,
}

#[derive(Clone)]
struct ProviderState {
    behaviour: Arc<Mutex<Behaviour>>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// A provider on a loopback address.
pub struct Provider {
    /// The address of the provider.
    pub address: SocketAddr,
    state: ProviderState,
    _server: LoopbackServer,
}

impl Provider {
    /// Starts a provider that responds correctly.
    pub async fn start() -> Self {
        let state =
            ProviderState { behaviour: Arc::new(Mutex::new(Behaviour::Succeeds)), requests: Arc::default() };
        let router = Router::new().route("/v1/embeddings", post(respond)).with_state(state.clone());
        let server = LoopbackServer::start(router).await;
        Self { address: server.address, state, _server: server }
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Changes the behaviour.
    pub fn set_behaviour(&self, behaviour: Behaviour) {
        *self.state.behaviour.lock().unwrap() = behaviour;
    }

    /// Takes the requests recorded so far.
    pub fn take_requests(&self) -> Vec<ReceivedRequest> {
        std::mem::take(&mut self.state.requests.lock().unwrap())
    }
}

async fn respond(State(state): State<ProviderState>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let texts: Vec<String> = serde_json::from_value(body["input"].clone()).unwrap();
    let key = headers.get("authorization").map_or("", |it| it.to_str().unwrap());
    let key = key.strip_prefix("Bearer ").unwrap_or(key).to_owned();
    let model = body["model"].as_str().unwrap().to_owned();
    state.requests.lock().unwrap().push(ReceivedRequest { key: key.clone(), model, texts: texts.clone() });
    let behaviour = state.behaviour.lock().unwrap().clone();
    let refuse = |refused: bool| match refused {
        true => (StatusCode::BAD_REQUEST, r#"{"error":{"message":"a text is refused"}}"#).into_response(),
        false => vectors(&texts, true),
    };
    match behaviour {
        Behaviour::Succeeds => vectors(&texts, true),
        Behaviour::SendsNumbers => vectors(&texts, false),
        Behaviour::Status(status, retry_after) => {
            let headers: HeaderMap =
                retry_after.iter().map(|it| ("retry-after".parse().unwrap(), it.parse().unwrap())).collect();
            // Some providers repeat the key in their errors.
            let body = json!({"error": {"message": format!("not with {key}")}}).to_string();
            (StatusCode::from_u16(status).unwrap(), headers, body).into_response()
        }
        Behaviour::Body(body) => body.to_string().into_response(),
        Behaviour::Stalls => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            StatusCode::OK.into_response()
        }
        Behaviour::SendsEndlessly => endless_body().into_response(),
        Behaviour::RejectsWord(word) => refuse(texts.iter().any(|it| it.contains(word))),
        Behaviour::LimitsTextLength(longest) => refuse(texts.iter().any(|it| it.chars().count() > longest)),
        Behaviour::LimitsBatch(most) => refuse(texts.len() > most),
    }
}

/// Returns vectors of three numbers that depend on the texts' lengths, the last text first.
fn vectors(texts: &[String], in_base64: bool) -> Response {
    let data = texts.iter().enumerate().rev().map(|(index, text)| {
        let vector = [1.0, f32::from(u16::try_from(text.len() % 1_000).unwrap()), -0.5];
        let embedding = match in_base64 {
            true => json!(STANDARD.encode(vector.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>())),
            false => json!(vector),
        };
        json!({"object": "embedding", "index": index, "embedding": embedding})
    });
    let data: Vec<Value> = data.collect();
    json!({"object": "list", "data": data, "model": "m", "usage": {"total_tokens": 1}})
        .to_string()
        .into_response()
}
