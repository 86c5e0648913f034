//! `Idempotency-Key`: a repeated POST gets the response of the first one.
//!
//! The first request with a key holds a row while it runs. A successful response is stored for a day
//! and returned to later requests with the same key and content. The request runs to its end even if
//! the client disconnects, because the client will probably repeat it.

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
use tokio::sync::oneshot;

use super::{outer, project_of, read};
use crate::{
    access::{Caller, Credential},
    app::App,
    clock::new_id,
    error::{Error, Problem, Result, internal, problem},
    store,
};

/// The request header.
pub const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header that marks a stored response.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Retention of a stored response in microseconds.
const KEPT: i64 = 24 * 3_600_000_000;
/// Time in microseconds after which a request in progress counts as abandoned by a crashed process;
/// longer than any request takes.
const GIVEN_UP: i64 = 120_000_000;
/// Maximum size of a stored response in bytes. Larger ones are not stored: a repeated request is
/// executed again.
const MAX_ANSWER: usize = 1024 * 1024;

/// Runs the request, unless one with the same key is finished or in progress.
pub async fn once(app: &Arc<App>, caller: &Caller, request: Request, next: Next) -> Response {
    let (request, row) = match prepare(app, caller, request).await {
        Ok(prepared) => prepared,
        Err(error) => return error.into_response(),
    };
    // The rest runs in a task of its own, even if the client disconnects: a claimed key must be
    // completed or released.
    let (answer, answered) = oneshot::channel();
    let task = Arc::clone(app);
    app.spawn(async move {
        // A client that has disconnected will repeat the request.
        _ = answer.send(answer_once(&task, request, next, row).await);
    });
    // The channel closes only if the task panics, and panics of the handler are caught within it.
    answered.await.unwrap_or_else(|_| Error::from(internal()).into_response())
}

/// Buffers the request's body and creates the row of its key.
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
    // The memory stays reserved as long as the request exists.
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

/// Claims the key; returns the stored response if the request is finished.
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
            "a request with this Idempotency-Key is in progress; try again shortly",
        )),
    }
}

/// Returns the hash of the content that identifies a request: the body, and the query and headers that
/// determine its meaning.
fn body_hash(parts: &Parts, body: &[u8]) -> Vec<u8> {
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let project = parts.headers.get(project_of::HEADER).map(HeaderValue::as_bytes).unwrap_or_default();
    let mut digest = Sha256::new();
    for part in [query, project] {
        digest.update(part);
        // Neither part can contain a NUL.
        digest.update([0]);
    }
    digest.update(body);
    digest.finalize().to_vec()
}

/// Returns the hash under which a key is stored: keys of other credentials and paths are different.
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

/// Stores a successful response, else releases the key.
async fn keep(app: &App, mut row: idempotency::Model, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    if body.size_hint().upper().is_none_or(|it| it > MAX_ANSWER as u64) {
        // The response is too large to be stored or buffered as a whole.
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
        tracing::warn!(%error, "a response could not be stored for its Idempotency-Key");
    }
    Response::from_parts(parts, Body::from(bytes))
}

/// Removes the secret, which is shown only once.
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
