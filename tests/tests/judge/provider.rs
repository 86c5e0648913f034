//! A judge provider that does as it is told, and remembers what it was asked.

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
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};

/// A verdict in the form that was asked for.
pub const VERDICT: &str = r#"{"reasoning": "It answers the question.", "score": 0.75}"#;

/// How a provider behaves.
#[derive(Clone, Debug)]
pub enum Mood {
    /// It answers a verdict in whichever form is asked for.
    Well,
    /// It answers this text, whatever form was asked for.
    Says(String),
    /// It answers the beginning of a verdict, cut off where the tokens end.
    Cut,
    /// It answers this, with this in `Retry-After`, and this message and code.
    Status(u16, Option<&'static str>, &'static str, &'static str),
    /// It answers this body with the status 200.
    Body(String),
    /// It refuses requests that have one of these members, naming it.
    Without(&'static [&'static str]),
    /// The same without saying what is wrong.
    Mutely(&'static [&'static str]),
    /// It behaves like this once it is told to.
    Held(Arc<Notify>, Box<Mood>),
    /// It answers nothing.
    Stalls,
    /// It answers without end.
    Endless,
    /// It answers a byte now and then.
    Drips,
}

/// What it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Where.
    pub path: String,
    /// The token, by whichever header.
    pub key: String,
    /// The body.
    pub body: Value,
}

impl Asked {
    /// Which form was asked for.
    pub fn rung(&self) -> &'static str {
        match &self.body {
            it if it["response_format"]["type"] == "json_schema" => "schema",
            it if it["output_config"]["format"]["type"] == "json_schema" => "schema",
            it if it.get("tools").is_some() => "tool",
            it if it["response_format"]["type"] == "json_object" => "json",
            _ => "text",
        }
    }

    /// What was said to it, message by message.
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
    /// Where.
    pub address: SocketAddr,
    inside: Inside,
    serving: JoinHandle<()>,
}

impl Provider {
    /// One that answers as it should.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inside = Inside::default();
        let router = Router::new().fallback(answer).with_state(inside.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, inside, serving }
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// From now on it behaves like these, one request after the other, and then like the last.
    pub fn turn(&self, moods: impl IntoIterator<Item = Mood>) {
        *self.inside.moods.lock().unwrap() = moods.into_iter().collect();
    }

    /// Takes what it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.inside.asked.lock().unwrap())
    }

    /// Takes the forms that it was asked for so far.
    pub fn rungs(&self) -> Vec<&'static str> {
        self.asked().iter().map(Asked::rung).collect()
    }

    /// How often it was asked so far.
    pub fn count(&self) -> usize {
        self.inside.asked.lock().unwrap().len()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
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
            // Some repeat the key that they were given.
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
        Mood::Endless => {
            let pieces = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 64 * 1024]));
            Body::from_stream(pieces).into_response()
        }
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

/// A verdict where it was asked for.
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
