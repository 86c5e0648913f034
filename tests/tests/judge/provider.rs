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
pub const VERDICT: &str = r#"{"reasoning": "It answers the question.", "score": 0.75}"#;

/// The behaviour of a provider.
#[derive(Clone, Debug)]
pub enum Mood {
    /// Responds with a verdict in the requested mode.
    Well,
    /// Responds with this text in any mode.
    Says(String),
    /// Responds with a verdict that is cut off at the token limit.
    Cut,
    /// Responds with this status, this `Retry-After`, and this message and code.
    Status(u16, Option<&'static str>, &'static str, &'static str),
    /// Responds with this body and the status 200.
    Body(String),
    /// Rejects requests with one of these fields, and names the field.
    Without(&'static [&'static str]),
    /// Rejects requests with one of these fields without naming it.
    Mutely(&'static [&'static str]),
    /// Behaves like this after the notification.
    Held(Arc<Notify>, Box<Mood>),
    /// Sends no response.
    Stalls,
    /// Sends an endless response.
    Endless,
    /// Sends single bytes slowly.
    Drips,
}

/// A recorded request.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The path of the request.
    pub path: String,
    /// The token, from either header.
    pub key: String,
    /// The body of the request.
    pub body: Value,
}

impl Asked {
    /// Returns the structured-output mode of the request.
    pub fn rung(&self) -> &'static str {
        match &self.body {
            it if it["response_format"]["type"] == "json_schema" => "schema",
            it if it["output_config"]["format"]["type"] == "json_schema" => "schema",
            it if it.get("tools").is_some() => "tool",
            it if it["response_format"]["type"] == "json_object" => "json",
            _ => "text",
        }
    }

    /// Returns the texts of the messages.
    pub fn said(&self) -> Vec<&str> {
        let messages = self.body["messages"].as_array().unwrap();
        messages.iter().map(|it| it["content"].as_str().unwrap()).collect()
    }
}

#[derive(Clone, Default)]
struct Inside {
    moods: Arc<Mutex<VecDeque<Mood>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A provider on a loopback address that speaks both protocols.
pub struct Provider {
    /// The address of the provider.
    pub address: SocketAddr,
    inside: Inside,
    _server: LoopbackServer,
}

impl Provider {
    /// Starts a provider that responds correctly.
    pub async fn start() -> Self {
        let inside = Inside::default();
        let server = LoopbackServer::start(Router::new().fallback(answer).with_state(inside.clone())).await;
        Self { address: server.address, inside, _server: server }
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Changes the behaviour: each mood serves one request, and the last one all further requests.
    pub fn turn(&self, moods: impl IntoIterator<Item = Mood>) {
        *self.inside.moods.lock().unwrap() = moods.into_iter().collect();
    }

    /// Takes the requests recorded so far.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.inside.asked.lock().unwrap())
    }

    /// Takes the structured-output modes of the requests so far.
    pub fn rungs(&self) -> Vec<&'static str> {
        self.asked().iter().map(Asked::rung).collect()
    }

    /// Returns the number of requests so far.
    pub fn count(&self) -> usize {
        self.inside.asked.lock().unwrap().len()
    }
}

async fn answer(State(inside): State<Inside>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let header = |name: &str| headers.get(name).map_or("", |it| it.to_str().unwrap()).to_owned();
    let key = match header("x-api-key") {
        key if key.is_empty() => header("authorization").replace("Bearer ", ""),
        key => key,
    };
    let asked = Asked { path: uri.path().to_owned(), key: key.clone(), body };
    inside.asked.lock().unwrap().push(asked.clone());
    let mood = {
        let mut moods = inside.moods.lock().unwrap();
        let only = moods.front().cloned();
        if moods.len() > 1 { moods.pop_front() } else { only }
    };
    let mood = match mood.unwrap_or(Mood::Well) {
        Mood::Held(told, then) => {
            told.notified().await;
            *then
        }
        mood => mood,
    };
    behave(&asked, &key, mood).await
}

async fn behave(asked: &Asked, key: &str, mood: Mood) -> Response {
    let refused = |names: &[&'static str]| names.iter().find(|it| asked.body.get(**it).is_some()).copied();
    match mood {
        Mood::Well => well(asked),
        Mood::Says(text) => says(asked, &text, false),
        Mood::Cut => says(asked, &VERDICT[..20], true),
        Mood::Status(status, retry_after, message, code) => {
            // Some providers repeat the key in their errors.
            failure(status, retry_after, &format!("{message} (key {key})"), code)
        }
        Mood::Body(body) => body.into_response(),
        Mood::Without(names) => match refused(names) {
            Some(name) => failure(400, None, &format!("Unsupported parameter: '{name}'"), "unsupported"),
            None => well(asked),
        },
        Mood::Mutely(names) => match refused(names) {
            Some(_) => failure(400, None, "Bad request", "invalid"),
            None => well(asked),
        },
        Mood::Held(..) | Mood::Stalls => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            StatusCode::OK.into_response()
        }
        Mood::Endless => endless_body().into_response(),
        Mood::Drips => {
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
fn well(asked: &Asked) -> Response {
    let verdict: Value = serde_json::from_str(VERDICT).unwrap();
    if asked.rung() != "tool" {
        return says(asked, VERDICT, false);
    }
    if asked.path.ends_with("/messages") {
        let call = json!({"type": "tool_use", "id": "t", "name": "verdict", "input": verdict});
        return message(&json!([call]), "tool_use");
    }
    let function = json!({"name": "verdict", "arguments": VERDICT});
    choice(&json!({"content": null, "tool_calls": [{"type": "function", "function": function}]}), "stop")
}

fn says(asked: &Asked, text: &str, is_cut: bool) -> Response {
    match asked.path.ends_with("/messages") {
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
