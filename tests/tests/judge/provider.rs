//! A judge provider with a configurable behaviour, which records its requests.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tests::loopback::{LoopbackServer, endless_body};
use tokio::sync::Notify;

/// A valid verdict.
pub const VERDICT_JSON: &str = r#"{"reasoning": "It answers the question.", "score": 0.75}"#;

/// The behaviour of a provider.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Responds with a verdict in the requested mode.
    Succeeds,
    /// Responds with this text in any mode.
    RepliesWith(String),
    /// Responds with a verdict truncated at the token limit.
    TruncatesReply,
    /// Responds with this status, this `Retry-After`, and this message and code.
    Status(u16, Option<&'static str>, &'static str, &'static str),
    /// Responds with this body and the status 200.
    Body(String),
    /// Rejects requests with one of these fields, and names the field.
    RejectsFields(&'static [&'static str]),
    /// Rejects requests with one of these fields without naming it.
    RejectsFieldsUnnamed(&'static [&'static str]),
    /// Waits for a notification of the test, and then has the given behaviour.
    Waits(Arc<Notify>, Box<Behaviour>),
    /// Sends no response.
    Stalls,
    /// Sends an endless response.
    SendsEndlessly,
    /// Sends single bytes slowly.
    SendsSlowly,
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

impl ReceivedRequest {
    /// Returns the structured-output mode of the request.
    pub fn output_mode(&self) -> &'static str {
        match &self.body {
            it if it["response_format"]["type"] == "json_schema" => "schema",
            it if it["output_config"]["format"]["type"] == "json_schema" => "schema",
            it if it.get("tools").is_some() => "tool",
            it if it["response_format"]["type"] == "json_object" => "json",
            _ => "text",
        }
    }

    /// Returns the texts of the messages.
    pub fn message_texts(&self) -> Vec<&str> {
        let messages = self.body["messages"].as_array().unwrap();
        messages.iter().map(|it| it["content"].as_str().unwrap()).collect()
    }
}

#[derive(Clone, Default)]
struct ProviderState {
    behaviours: Arc<Mutex<VecDeque<Behaviour>>>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// A provider on a loopback address that speaks both protocols.
pub struct Provider {
    /// The address of the provider.
    pub address: SocketAddr,
    state: ProviderState,
    _server: LoopbackServer,
}

impl Provider {
    /// Starts a provider that responds correctly.
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

    /// Takes the requests recorded so far.
    pub fn take_requests(&self) -> Vec<ReceivedRequest> {
        std::mem::take(&mut self.state.requests.lock().unwrap())
    }

    /// Takes the structured-output modes of the requests so far.
    pub fn take_output_modes(&self) -> Vec<&'static str> {
        self.take_requests().iter().map(ReceivedRequest::output_mode).collect()
    }

    /// Returns the number of requests so far.
    pub fn request_count(&self) -> usize {
        self.state.requests.lock().unwrap().len()
    }
}

async fn respond(State(state): State<ProviderState>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let header = |name: &str| headers.get(name).map_or("", |it| it.to_str().unwrap()).to_owned();
    let key = match header("x-api-key") {
        key if key.is_empty() => header("authorization").replace("Bearer ", ""),
        key => key,
    };
    let request = ReceivedRequest { path: uri.path().to_owned(), key: key.clone(), body };
    state.requests.lock().unwrap().push(request.clone());
    let behaviour = {
        let mut behaviours = state.behaviours.lock().unwrap();
        let only = behaviours.front().cloned();
        if behaviours.len() > 1 { behaviours.pop_front() } else { only }
    };
    let behaviour = match behaviour.unwrap_or(Behaviour::Succeeds) {
        Behaviour::Waits(told, then) => {
            told.notified().await;
            *then
        }
        behaviour => behaviour,
    };
    behave(&request, &key, behaviour).await
}

async fn behave(request: &ReceivedRequest, key: &str, behaviour: Behaviour) -> Response {
    let refused = |names: &[&'static str]| names.iter().find(|it| request.body.get(**it).is_some()).copied();
    match behaviour {
        Behaviour::Succeeds => verdict_reply(request),
        Behaviour::RepliesWith(text) => reply(request, &text, false),
        Behaviour::TruncatesReply => reply(request, &VERDICT_JSON[..20], true),
        Behaviour::Status(status, retry_after, message, code) => {
            // Some providers repeat the key in their errors.
            failure(status, retry_after, &format!("{message} (key {key})"), code)
        }
        Behaviour::Body(body) => body.into_response(),
        Behaviour::RejectsFields(names) => match refused(names) {
            Some(name) => failure(400, None, &format!("Unsupported parameter: '{name}'"), "unsupported"),
            None => verdict_reply(request),
        },
        Behaviour::RejectsFieldsUnnamed(names) => match refused(names) {
            Some(_) => failure(400, None, "Bad request", "invalid"),
            None => verdict_reply(request),
        },
        Behaviour::Waits(..) | Behaviour::Stalls => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            StatusCode::OK.into_response()
        }
        Behaviour::SendsEndlessly => endless_body().into_response(),
        Behaviour::SendsSlowly => {
            let pieces = futures::stream::unfold((), |()| async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Some((Ok::<_, std::io::Error>(vec![b' ']), ()))
            });
            Body::from_stream(pieces).into_response()
        }
    }
}

fn failure(status: u16, retry_after: Option<&str>, message: &str, code: &str) -> Response {
    let headers: HeaderMap =
        retry_after.iter().map(|it| ("retry-after".parse().unwrap(), it.parse().unwrap())).collect();
    let body = json!({"error": {"message": message, "code": code}}).to_string();
    (StatusCode::from_u16(status).unwrap(), headers, body).into_response()
}

/// Builds a response with a verdict in the requested mode.
fn verdict_reply(request: &ReceivedRequest) -> Response {
    let verdict: Value = serde_json::from_str(VERDICT_JSON).unwrap();
    if request.output_mode() != "tool" {
        return reply(request, VERDICT_JSON, false);
    }
    if request.path.ends_with("/messages") {
        let call = json!({"type": "tool_use", "id": "t", "name": "verdict", "input": verdict});
        return message(&json!([call]), "tool_use");
    }
    let function = json!({"name": "verdict", "arguments": VERDICT_JSON});
    choice(&json!({"content": null, "tool_calls": [{"type": "function", "function": function}]}), "stop")
}

fn reply(request: &ReceivedRequest, text: &str, is_cut: bool) -> Response {
    match request.path.ends_with("/messages") {
        true => {
            message(&json!([{"type": "text", "text": text}]), if is_cut { "max_tokens" } else { "end_turn" })
        }
        false => choice(&json!({"content": text}), if is_cut { "length" } else { "stop" }),
    }
}

fn choice(message: &Value, reason: &str) -> Response {
    let choices = json!([{"index": 0, "message": message, "finish_reason": reason}]);
    let usage = json!({"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100});
    json!({"object": "chat.completion", "choices": choices, "usage": usage}).to_string().into_response()
}

fn message(content: &Value, reason: &str) -> Response {
    let usage = json!({"input_tokens": 1_000, "output_tokens": 100});
    json!({"type": "message", "content": content, "stop_reason": reason, "usage": usage})
        .to_string()
        .into_response()
}
