//! The demo's model provider: an OpenAI-compatible endpoint in this process, on a port of the loopback
//! address. Its embedder, its judge and its chat model follow fixed rules, so that the demo needs no network and no key.

use std::sync::Arc;

use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request, Response, StatusCode, body::Bytes, body::Incoming, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::{chat_model::ChatModel, embedder, judge, loopback::LoopbackSocket};
use crate::{
    app::App,
    config::{EmbeddingSettings, JudgeSettings},
};

/// Name of the embedding model, which shows that the demo provides it.
const EMBEDDING_MODEL: &str = "demo-embedder";
/// Name of the judge model.
const JUDGE_MODEL: &str = "demo-judge";
/// Maximum size of a request in bytes, which is the largest that the server sends.
const MAX_REQUEST_BYTES: usize = 8 * 1024 * 1024;

/// The model provider.
#[derive(Debug)]
pub(super) struct DemoProvider {
    socket: LoopbackSocket,
    chat_model: Arc<ChatModel>,
}

impl DemoProvider {
    /// Opens the socket.
    pub(super) fn open() -> anyhow::Result<Self> {
        Ok(Self { socket: LoopbackSocket::open()?, chat_model: Arc::default() })
    }

    /// Configures this provider as the installation's.
    pub(super) fn settings(&self) -> (EmbeddingSettings, JudgeSettings) {
        let url = Some(format!("http://{}/v1", self.socket.address));
        let embedding = EmbeddingSettings {
            embedding_base_url: url.clone(),
            embedding_model: Some(EMBEDDING_MODEL.to_owned()),
            ..EmbeddingSettings::default()
        };
        let judge = JudgeSettings {
            judge_openai_base_url: url,
            judge_openai_cheap_model: Some(JUDGE_MODEL.to_owned()),
            judge_openai_premium_model: Some(JUDGE_MODEL.to_owned()),
            ..JudgeSettings::default()
        };
        (embedding, judge)
    }

    /// Answers requests until the app stops.
    pub(super) fn serve(&self, app: &Arc<App>) -> anyhow::Result<()> {
        let chat_model = Arc::clone(&self.chat_model);
        self.socket.serve(app, None, move |request| {
            let chat_model = Arc::clone(&chat_model);
            async move { respond(request, &chat_model).await }
        })
    }
}

async fn respond(request: Request<Incoming>, chat_model: &ChatModel) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    let body = Limited::new(request.into_body(), MAX_REQUEST_BYTES).collect().await;
    let body: Option<Value> = body.ok().and_then(|it| serde_json::from_slice(&it.to_bytes()).ok());
    let reply = body.and_then(|body| match path.as_str() {
        "/v1/embeddings" => embeddings(&body),
        "/v1/chat/completions" if requested_model(&body) == JUDGE_MODEL => verdict(&body),
        "/v1/chat/completions" => chat(&body, chat_model),
        _ => None,
    });
    let (status, reply) = match reply {
        Some(reply) => (StatusCode::OK, reply),
        None => (StatusCode::BAD_REQUEST, json!({"error": {"message": "the demo does not answer this"}})),
    };
    let mut response = Response::new(Full::new(Bytes::from(reply.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    response
}

fn embeddings(body: &Value) -> Option<Value> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let texts: Vec<&str> = match body.get("input")? {
        Value::String(text) => vec![text],
        Value::Array(texts) => texts.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    let in_base64 = body.get("encoding_format").and_then(Value::as_str) == Some("base64");
    let data = texts.iter().enumerate().map(|(index, text)| {
        let vector = embedder::embed(text);
        let embedding = if in_base64 {
            let bytes: Vec<u8> = vector.iter().flat_map(|it| it.to_le_bytes()).collect();
            json!(STANDARD.encode(bytes))
        } else {
            json!(vector)
        };
        json!({"object": "embedding", "index": index, "embedding": embedding})
    });
    Some(json!({"object": "list", "model": EMBEDDING_MODEL, "data": data.collect::<Vec<_>>()}))
}

fn requested_model(body: &Value) -> &str {
    body.get("model").and_then(Value::as_str).unwrap_or_default()
}

fn verdict(body: &Value) -> Option<Value> {
    let messages = body.get("messages")?.as_array()?;
    let message_of = |role: &str| {
        let mut of_role = messages.iter().filter(|it| it.get("role").and_then(Value::as_str) == Some(role));
        of_role.next()?.get("content")?.as_str()
    };
    let schema = body.pointer("/response_format/json_schema/schema").unwrap_or(&Value::Null);
    let (system, user) = (message_of("system")?, message_of("user")?);
    let verdict = judge::verdict(system, user, schema).to_string();
    Some(completion(JUDGE_MODEL, token_count(system) + token_count(user), &verdict))
}

/// Returns the reply to a request that the server repeats, under the name of the requested model.
fn chat(body: &Value, chat_model: &ChatModel) -> Option<Value> {
    let (model, messages) = (requested_model(body), body.get("messages")?.as_array()?);
    let reply = chat_model.reply(model, messages);
    Some(completion(model, token_count(&Value::from(messages.as_slice()).to_string()), &reply))
}

/// Returns a reply in OpenAI's protocol.
fn completion(model: &str, prompt_tokens: usize, content: &str) -> Value {
    let completion_tokens = token_count(content);
    json!({
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    })
}

/// Returns the number of tokens of a text: a token has about four characters.
fn token_count(text: &str) -> usize {
    text.len() / 4 + 1
}
