//! A provider that does as it is told, and remembers what it was asked.

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
use tokio::{net::TcpListener, task::JoinHandle};

/// How a provider behaves.
#[derive(Clone, Debug)]
pub enum Mood {
    /// It answers as it should, with base64.
    Well,
    /// The same with numbers.
    WithNumbers,
    /// It answers this, with this in `Retry-After`.
    Status(u16, Option<&'static str>),
    /// It answers this body.
    Body(Value),
    /// It answers nothing.
    Stalls,
    /// It answers without end.
    Endless,
    /// It refuses requests with texts that contain this.
    Refusing(&'static str),
    /// It refuses texts that are longer than so many characters.
    Short(usize),
    /// It refuses requests with more texts than that.
    Few(usize),
}

/// What it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The token.
    pub key: String,
    /// The model.
    pub model: String,
    /// The texts.
    pub texts: Vec<String>,
}

#[derive(Clone)]
struct Inside {
    mood: Arc<Mutex<Mood>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A provider on a loopback address.
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
        let inside = Inside { mood: Arc::new(Mutex::new(Mood::Well)), asked: Arc::default() };
        let router = Router::new().route("/v1/embeddings", post(answer)).with_state(inside.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, inside, serving }
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// From now on it behaves like that.
    pub fn turn(&self, mood: Mood) {
        *self.inside.mood.lock().unwrap() = mood;
    }

    /// Takes what it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.inside.asked.lock().unwrap())
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(inside): State<Inside>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let texts: Vec<String> = serde_json::from_value(body["input"].clone()).unwrap();
    let key = headers.get("authorization").map_or("", |it| it.to_str().unwrap());
    let key = key.strip_prefix("Bearer ").unwrap_or(key).to_owned();
    let model = body["model"].as_str().unwrap().to_owned();
    inside.asked.lock().unwrap().push(Asked { key: key.clone(), model, texts: texts.clone() });
    let mood = inside.mood.lock().unwrap().clone();
    let refuse = |refused: bool| match refused {
        true => (StatusCode::BAD_REQUEST, r#"{"error":{"message":"a text is refused"}}"#).into_response(),
        false => vectors(&texts, true),
    };
    match mood {
        Mood::Well => vectors(&texts, true),
        Mood::WithNumbers => vectors(&texts, false),
        Mood::Status(status, retry_after) => {
            let headers: HeaderMap =
                retry_after.iter().map(|it| ("retry-after".parse().unwrap(), it.parse().unwrap())).collect();
            // Some repeat the key that they were given.
            let body = json!({"error": {"message": format!("not with {key}")}}).to_string();
            (StatusCode::from_u16(status).unwrap(), headers, body).into_response()
        }
        Mood::Body(body) => body.to_string().into_response(),
        Mood::Stalls => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            StatusCode::OK.into_response()
        }
        Mood::Endless => {
            let pieces = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 64 * 1024]));
            axum::body::Body::from_stream(pieces).into_response()
        }
        Mood::Refusing(word) => refuse(texts.iter().any(|it| it.contains(word))),
        Mood::Short(longest) => refuse(texts.iter().any(|it| it.chars().count() > longest)),
        Mood::Few(most) => refuse(texts.len() > most),
    }
}

/// Vectors of three numbers that follow from the texts' lengths, the last text first.
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
