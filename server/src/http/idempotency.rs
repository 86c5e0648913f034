//! `Idempotency-Key`: a POST that is sent again is answered again, and not done again.
//!
//! The first request with a key holds a row while it runs; its answer, if it is a success, is
//! kept for a day and given to whoever sends the same request with the same key. It runs to
//! its end also when its caller goes away, because that is when the caller will ask again.

use std::sync::Arc;

use api::ErrorCode;
use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use entities::idempotency;
use http_body_util::{BodyExt, Collected};
use serde_json::Value;
use sha2::{Digest, Sha256};
use store::new_id;
use tokio::sync::oneshot;

use super::{outer, project_of, read};
use crate::{
    access::{Caller, Credential},
    app::App,
    error::{Error, Problem, Result, internal, problem},
};

/// The header that a caller sends.
pub const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header of an answer that is given again.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// How long an answer is kept, microseconds.
const KEPT: i64 = 24 * 3_600_000_000;
/// When a request counts as given up by a process that is gone, microseconds: longer than any takes.
const GIVEN_UP: i64 = 120_000_000;
/// Largest answer that is kept, in bytes. A larger one is not repeated: the request is done again.
const MAX_ANSWER: usize = 1024 * 1024;

/// Runs the request, unless one with the same key was answered or is running.
pub async fn once(app: &Arc<App>, caller: &Caller, request: Request, next: Next) -> Response {
    let (request, row) = match prepare(app, caller, request).await {
        Ok(prepared) => prepared,
        Err(error) => return error.into_response(),
    };
    // From here on to the end, whether or not the caller waits: a key that is taken needs
    // somebody who answers or lets it go.
    let (answer, answered) = oneshot::channel();
    let task = Arc::clone(app);
    app.spawn(async move {
        // Who no longer waits will ask again.
        _ = answer.send(answer_once(&task, request, next, row).await);
    });
    // The channel breaks only if the task panicked, which the handler within it can't make it do.
    answered.await.unwrap_or_else(|_| Error::from(internal()).into_response())
}

/// The request with its body in memory, and the row that will stand for it.
async fn prepare(app: &App, caller: &Caller, request: Request) -> Result<(Request, idempotency::Model)> {
    let key_hash = key_hash(caller, &request)?;
    let (mut parts, body) = request.into_parts();
    let held = read::packed(app, Some(caller.tenant_id), &parts.headers, body).await?;
    let bytes = held.bytes.clone();
    let row = idempotency::Model {
        tenant_id: caller.tenant_id,
        key_hash,
        body_hash: body_hash(&parts, &bytes),
        holder: new_id(),
        status: None,
        content_type: None,
        answer: None,
        expires_at: app.clock.now() + GIVEN_UP,
    };
    // Counted as long as the request has it.
    parts.extensions.insert(Arc::new(held));
    Ok((Request::from_parts(parts, Body::from(bytes)), row))
}

async fn answer_once(app: &App, request: Request, next: Next, row: idempotency::Model) -> Response {
    match claim(app, &row).await {
        Ok(None) => keep(app, row, outer::caught(next.run(request)).await).await,
        Ok(Some(answered)) => answered,
        Err(error) => error.into_response(),
    }
}

/// Takes the key; the answer if the request was answered before.
async fn claim(app: &App, row: &idempotency::Model) -> Result<Option<Response>> {
    match store::idempotency::claim(&app.db.write, row, app.clock.now()).await? {
        None => Ok(None),
        Some(other) if other.body_hash != row.body_hash => Err(problem(
            ErrorCode::IdempotencyKeyReused,
            "this Idempotency-Key was used with another body; use a new one for a new request",
        )),
        Some(idempotency::Model { status: Some(status), content_type, answer, .. }) => {
            Ok(Some(replay(status, content_type, answer)))
        }
        Some(_) => Err(problem(
            ErrorCode::IdempotencyInFlight,
            "a request with this Idempotency-Key is being worked on; try again shortly",
        )),
    }
}

/// What has to be the same for a request to be the same: the body, and what else says what it is
/// about.
fn body_hash(parts: &Parts, body: &[u8]) -> Vec<u8> {
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let project = parts.headers.get(project_of::HEADER).map(HeaderValue::as_bytes).unwrap_or_default();
    let mut digest = Sha256::new();
    for part in [query, project] {
        digest.update(part);
        // Neither of them can have a NUL in it.
        digest.update([0]);
    }
    digest.update(body);
    digest.finalize().to_vec()
}

/// What a key is remembered by: a key means nothing to another credential or on another path.
fn key_hash(caller: &Caller, request: &Request) -> Result<Vec<u8>> {
    let mut values = request.headers().get_all(KEY).iter();
    let (Some(key), None) = (values.next(), values.next()) else {
        return Err(Problem::field("Idempotency-Key", "must be sent once").into());
    };
    let key = key.as_bytes();
    if !(1..=255).contains(&key.len()) || !key.iter().all(u8::is_ascii_graphic) {
        return Err(Problem::field("Idempotency-Key", "must have 1 to 255 visible ASCII characters").into());
    }
    let mut digest = Sha256::new();
    match &caller.credential {
        Credential::Key { id, .. } => digest.update(id.as_bytes()),
        Credential::Session { subject, .. } => digest.update(subject.as_bytes()),
    }
    for part in [request.uri().path().as_bytes(), key] {
        digest.update([0]);
        digest.update(part);
    }
    Ok(digest.finalize().to_vec())
}

/// Keeps an answer if it is a success, else lets the key go.
async fn keep(app: &App, mut row: idempotency::Model, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    if body.size_hint().upper().is_none_or(|it| it > MAX_ANSWER as u64) {
        // The response is too large to be kept or to be buffered as a whole.
        if let Err(error) = store::idempotency::release(&app.db.write, &row).await {
            tracing::warn!(%error, "an Idempotency-Key could not be released");
        }
        return Response::from_parts(parts, body);
    }
    let Ok(bytes) = body.collect().await.map(Collected::to_bytes) else {
        return Error::from(internal()).into_response();
    };
    let stored = if parts.status.is_success() && bytes.len() <= MAX_ANSWER {
        row.status = i16::try_from(parts.status.as_u16()).ok();
        row.content_type =
            parts.headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()).map(str::to_owned);
        row.answer = Some(without_secret(&bytes));
        row.expires_at = app.clock.now() + KEPT;
        store::idempotency::answer(&app.db.write, row).await
    } else {
        store::idempotency::release(&app.db.write, &row).await
    };
    if let Err(error) = stored {
        tracing::warn!(%error, "an answer could not be kept for its Idempotency-Key");
    }
    Response::from_parts(parts, Body::from(bytes))
}

/// What is shown once is not stored.
fn without_secret(bytes: &Bytes) -> Vec<u8> {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(mut object)) if object.contains_key("secret") => {
            object.remove("secret");
            Value::Object(object).to_string().into_bytes()
        }
        _ => bytes.to_vec(),
    }
}

fn replay(status: i16, content_type: Option<String>, answer: Option<Vec<u8>>) -> Response {
    let status = u16::try_from(status).ok().and_then(|it| StatusCode::from_u16(it).ok()).unwrap_or_default();
    let mut response = (status, answer.unwrap_or_default()).into_response();
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    match content_type.and_then(|it| HeaderValue::try_from(it).ok()) {
        Some(value) => response.headers_mut().insert(header::CONTENT_TYPE, value),
        None => response.headers_mut().remove(header::CONTENT_TYPE),
    };
    response
}
