//! A model provider that speaks both protocols, with configurable replies; it records its requests. Requests for
//! [`JUDGE_MODEL`] are those of judges.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tests::loopback::{LoopbackServer, endless_body};
use tokio::sync::Notify;

/// The judge's model.
pub const JUDGE_MODEL: &str = "judge-1";
/// The output of a repeated request.
pub const BETTER_OUTPUT: &str = "Your parcel arrives on Monday.";
/// Prompt tokens of each reply.
pub const PROMPT_TOKENS: i64 = 1_000;
/// Completion tokens of each reply.
pub const COMPLETION_TOKENS: i64 = 100;

/// The response to a request.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Replies with this text.
    Replies(&'static str),
    /// Calls the tool `lookup`.
    CallsTool,
    /// Responds with this status, this `Retry-After`, and this message.
    Status(u16, Option<&'static str>, &'static str),
    /// Responds with this body and the status 200.
    Body(&'static str),
    /// Sends an endless response.
    SendsEndlessly,
    /// Closes the connection when the test drops the provider.
    Stalls,
    /// Replies after this time.
    Late(Duration),
    /// Replies once the test has notified it.
    Waits(Arc<Notify>),
}

/// A recorded request.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedRequest {
    /// The path of the request.
    pub path: String,
    /// The token, from either header.
    pub key: String,
    /// The body of the request.
    pub body: Value,
}

#[derive(Clone, Default)]
struct ProviderState {
    behaviours: Arc<Mutex<VecDeque<Behaviour>>>,
    scores: Arc<Mutex<VecDeque<f64>>>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// A running provider.
pub struct Provider {
    /// The address of the provider.
    pub address: SocketAddr,
    state: ProviderState,
    _server: LoopbackServer,
}

impl Provider {
    /// Starts a provider that replies with [`BETTER_OUTPUT`], and whose judge gives the score 0.5.
    pub async fn start() -> Self {
        let state = ProviderState::default();
        let server = LoopbackServer::start(Router::new().fallback(respond).with_state(state.clone())).await;
        Self { address: server.address, state, _server: server }
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Sets the behaviours: each serves one request, and the last one all further requests.
    pub fn set_behaviours(&self, behaviours: impl IntoIterator<Item = Behaviour>) {
        *self.state.behaviours.lock().unwrap() = behaviours.into_iter().collect();
    }

    /// Sets the scores of the judge: each serves one evaluation, and the last one all further evaluations.
    pub fn set_scores(&self, scores: impl IntoIterator<Item = f64>) {
        *self.state.scores.lock().unwrap() = scores.into_iter().collect();
    }

    /// Takes the requests recorded so far, without those of judges.
    pub fn take_requests(&self) -> Vec<ReceivedRequest> {
        let requests = std::mem::take(&mut *self.state.requests.lock().unwrap());
        requests.into_iter().filter(|it| it.body["model"] != JUDGE_MODEL).collect()
    }

    /// Returns the number of requests so far, without those of judges.
    pub fn request_count(&self) -> usize {
        let requests = self.state.requests.lock().unwrap();
        requests.iter().filter(|it| it.body["model"] != JUDGE_MODEL).count()
    }
}

/// Takes the first value, and keeps the last one.
fn next<T: Clone>(values: &Mutex<VecDeque<T>>) -> Option<T> {
    let mut values = values.lock().unwrap();
    if values.len() > 1 { values.pop_front() } else { values.front().cloned() }
}

async fn respond(State(state): State<ProviderState>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let header = |name: &str| headers.get(name).map_or("", |it| it.to_str().unwrap()).to_owned();
    let key = match header("x-api-key") {
        key if key.is_empty() => header("authorization").replace("Bearer ", ""),
        key => key,
    };
    let request = ReceivedRequest { path: uri.path().to_owned(), key, body };
    state.requests.lock().unwrap().push(request.clone());
    if request.body["model"] == JUDGE_MODEL {
        let score = next(&state.scores).unwrap_or(0.5);
        return reply(&request, &json!({"reasoning": "Because.", "score": score}).to_string());
    }
    match next(&state.behaviours).unwrap_or(Behaviour::Replies(BETTER_OUTPUT)) {
        Behaviour::Replies(text) => reply(&request, text),
        Behaviour::CallsTool => {
            let call =
                json!({"id": "c9", "type": "function", "function": {"name": "lookup", "arguments": "{}"}});
            choice(&request, &json!({"content": null, "tool_calls": [call]}))
        }
        Behaviour::Status(status, retry_after, message) => {
            let pairs = retry_after.iter().map(|it| ("retry-after".parse().unwrap(), it.parse().unwrap()));
            let headers: HeaderMap = pairs.collect();
            // Some providers repeat the key in their errors.
            let message = format!("{message} (key {})", request.key);
            let body = json!({"error": {"message": message}}).to_string();
            (StatusCode::from_u16(status).unwrap(), headers, body).into_response()
        }
        Behaviour::Body(body) => body.into_response(),
        Behaviour::SendsEndlessly => endless_body().into_response(),
        Behaviour::Stalls => std::future::pending().await,
        Behaviour::Late(time) => {
            tokio::time::sleep(time).await;
            reply(&request, BETTER_OUTPUT)
        }
        Behaviour::Waits(told) => {
            told.notified().await;
            reply(&request, BETTER_OUTPUT)
        }
    }
}

fn reply(request: &ReceivedRequest, text: &str) -> Response {
    if !request.path.ends_with("/messages") {
        return choice(request, &json!({"content": text}));
    }
    let usage = json!({"input_tokens": PROMPT_TOKENS, "output_tokens": COMPLETION_TOKENS});
    let content = json!([{"type": "text", "text": text}]);
    let model = &request.body["model"];
    json!({"type": "message", "model": model, "content": content, "stop_reason": "end_turn", "usage": usage})
        .to_string()
        .into_response()
}

fn choice(request: &ReceivedRequest, message: &Value) -> Response {
    let choices = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
    let usage = json!({"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS});
    json!({"object": "chat.completion", "model": request.body["model"], "choices": choices, "usage": usage})
        .to_string()
        .into_response()
}
