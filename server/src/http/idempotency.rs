//! `Idempotency-Key`: a repeated POST gets the response of the first one, without being executed again.
//!
//! The first request with a key claims it with a row in the database. A successful response is stored there
//! for a day and is replayed to requests with the same key and body. A failed request releases its key. A
//! request with a key runs to its end even if its client disconnects, because the client will repeat it, and even if
//! the database seems to be unavailable meanwhile, because its transaction may be committed nevertheless. If
//! the database is unavailable at the end of a request, the outcome is written as soon as it is back, so
//! that the repeated request is not refused as still running.

use std::{sync::Arc, time::Duration};

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
use store::{health::Unavailable, new_id};
use tokio::{sync::oneshot, time::Instant};

use super::{outer_layer, read};
use crate::{
    access::{Caller, Credential},
    app::App,
    error::{Error, Problem, Result, internal, problem},
    feature::{Feature, RowExpiry},
    memory::MemoryHolder,
};

/// Deletion of expired keys and responses.
pub const FEATURE: Feature = Feature {
    housekeeping: &[&RowExpiry { rows: store::idempotency::EXPIRING_KEYS, after: Duration::ZERO }],
    ..Feature::NONE
};

/// The request header.
pub const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// The request header with the name of the project of ingested traces.
pub const PROJECT_NAME_HEADER: HeaderName = HeaderName::from_static("x-project-name");
/// The header that marks a stored response.
const REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotency-replayed");

/// How long a response is stored, in microseconds.
const RESPONSE_TTL: i64 = 24 * 3_600_000_000;
/// How long a claim is valid if its process ended without releasing it. Longer than any request takes.
const CLAIM_TTL: Duration = Duration::from_secs(120);
/// Size of the largest response that is stored, in bytes. A request with a larger one is executed again.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// Timeout of one attempt to write the outcome of a request.
const OUTCOME_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two attempts.
const OUTCOME_RETRY_DELAY: Duration = Duration::from_millis(500);
/// How long a claim whose statement failed can still appear: PostgreSQL may execute it after the connection
/// is lost.
const LATE_CLAIM_PERIOD: Duration = Duration::from_secs(5);

/// Runs the request, unless one with the same key is finished or in progress.
pub async fn run_once(app: &Arc<App>, caller: &Caller, request: Request, next: Next) -> Response {
    let (request, row) = match buffer_request(app, caller, request).await {
        Ok(prepared) => prepared,
        Err(error) => return error.into_response(),
    };
    // The task goes on if the client disconnects: a claimed key needs a response or a release.
    let (sender, receiver) = oneshot::channel();
    let task = Arc::clone(app);
    app.spawn(async move {
        // The receiver is gone if the client has disconnected.
        _ = sender.send(respond(&task, request, next, row).await);
    });
    // The channel breaks only if the task panicked, and panics of the handler are caught within it.
    receiver.await.unwrap_or_else(|_| Error::from(internal()).into_response())
}

/// Returns the request with its body in memory, and the row that claims its key.
async fn buffer_request(
    app: &App,
    caller: &Caller,
    request: Request,
) -> Result<(Request, idempotency::Model)> {
    let key_hash = key_hash(caller, &request)?;
    let (mut parts, body) = request.into_parts();
    let body_in_memory = read::read_compressed(app, Some(caller.tenant_id), &parts.headers, body).await?;
    let bytes = body_in_memory.bytes.clone();
    let row = idempotency::Model {
        tenant_id: caller.tenant_id,
        key_hash,
        body_hash: body_hash(&parts, &bytes),
        holder: new_id(),
        status: None,
        content_type: None,
        answer: None,
        expires_at: app.clock.now() + i64::try_from(CLAIM_TTL.as_micros()).unwrap_or(i64::MAX),
    };
    // The memory stays reserved as long as the request exists.
    parts.extensions.insert(Arc::new(body_in_memory));
    Ok((Request::from_parts(parts, Body::from(bytes)), row))
}

/// Claims the key and executes the request, or replays the response of the request that had the key before.
async fn respond(app: &Arc<App>, request: Request, next: Next, row: idempotency::Model) -> Response {
    let health = &app.db.health;
    let claim = async { Ok(store::idempotency::claim(&app.db.write, &row, app.clock.now()).await?) };
    let is_claimed: Result<_> =
        health.while_reachable(claim).await.unwrap_or_else(|reason| Err(reason.into()));
    let existing = match is_claimed {
        Ok(existing) => existing,
        Err(error) => {
            // The row may have been inserted although the statement failed.
            write_outcome_later(app, RequestOutcome { row, is_claimed: false });
            return error.into_response();
        }
    };
    if let Some(existing) = existing {
        return respond_to_repetition(existing, &row).unwrap_or_else(IntoResponse::into_response);
    }
    // An outage does not end the handler, which may be committing: only its end decides whether the key is released.
    // The client is not kept waiting, because the middleware around this task responds to it.
    let handled = tokio::time::timeout(CLAIM_TTL, outer_layer::catch_panic(next.run(request))).await;
    let response = handled.unwrap_or_else(|_| Error::from(Unavailable::Unreachable).into_response());
    store_response(app, row, response).await
}

/// Returns the response to a request whose key was claimed before by the request of `existing`.
fn respond_to_repetition(existing: idempotency::Model, row: &idempotency::Model) -> Result<Response> {
    if existing.body_hash != row.body_hash {
        return Err(problem(
            ErrorCode::IdempotencyKeyReused,
            "this Idempotency-Key was used with another body; use a new one for a new request",
        ));
    }
    match existing.status {
        Some(status) => Ok(replay(status, existing.content_type, existing.answer)),
        None => Err(problem(
            ErrorCode::IdempotencyInFlight,
            "a request with this Idempotency-Key is in progress; try again shortly",
        )),
    }
}

/// Returns the hash of the content that identifies a request: the body, and the query and headers that
/// determine its meaning.
fn body_hash(parts: &Parts, body: &[u8]) -> Vec<u8> {
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let project = parts.headers.get(PROJECT_NAME_HEADER).map(HeaderValue::as_bytes).unwrap_or_default();
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
    let mut values = request.headers().get_all(KEY_HEADER).iter();
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

/// Stores a successful response, or releases the key.
async fn store_response(app: &Arc<App>, mut row: idempotency::Model, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    if body.size_hint().upper().is_none_or(|it| it > MAX_RESPONSE_BYTES as u64) {
        // The response is too large to be stored or to be buffered as a whole.
        write_outcome(app, RequestOutcome { row, is_claimed: true }).await;
        return Response::from_parts(parts, body);
    }
    let Ok(bytes) = body.collect().await.map(Collected::to_bytes) else {
        write_outcome(app, RequestOutcome { row, is_claimed: true }).await;
        return Error::from(internal()).into_response();
    };
    if parts.status.is_success() && bytes.len() <= MAX_RESPONSE_BYTES {
        row.status = i16::try_from(parts.status.as_u16()).ok();
        row.content_type =
            parts.headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()).map(str::to_owned);
        row.answer = Some(without_secret(&bytes));
        row.expires_at = app.clock.now() + RESPONSE_TTL;
    }
    write_outcome(app, RequestOutcome { row, is_claimed: true }).await;
    Response::from_parts(parts, Body::from(bytes))
}

/// The outcome of a request with a key, to be written to the database.
struct RequestOutcome {
    /// The claim; with a status if it has a response to be stored, else the key is to be released.
    row: idempotency::Model,
    /// Whether the claim is known to be in the database.
    is_claimed: bool,
}

impl RequestOutcome {
    /// Writes the outcome. Returns whether the claim was found.
    async fn write(&self, app: &App) -> Result<bool> {
        let (db, row) = (&app.db.write, &self.row);
        let written = app.db.health.while_reachable(async {
            match row.status {
                Some(_) => store::idempotency::answer(db, row.clone()).await,
                None => store::idempotency::release(db, row).await,
            }
        });
        match tokio::time::timeout(OUTCOME_TIMEOUT, written).await {
            Ok(written) => Ok(written??),
            Err(_) => Err(problem(ErrorCode::Overloaded, "the database did not answer in time")),
        }
    }
}

/// Writes the outcome now, or in the background if the database fails.
async fn write_outcome(app: &Arc<App>, outcome: RequestOutcome) {
    if let Err(error) = outcome.write(app).await {
        tracing::warn!(%error, "the outcome of a request with an Idempotency-Key is written later");
        write_outcome_later(app, outcome);
    }
}

/// Writes the outcome in the background, until it succeeds or the claim has expired.
fn write_outcome_later(app: &Arc<App>, mut outcome: RequestOutcome) {
    let mut memory = app.memory.reservation(MemoryHolder::Tenant(outcome.row.tenant_id));
    let response = outcome.row.answer.as_ref().map_or(0, Vec::len);
    if memory.try_grow(response).is_err() {
        // Without memory for the response, the key is released.
        (outcome.row.status, outcome.row.answer) = (None, None);
    }
    let task = Arc::clone(app);
    app.spawn(async move {
        let stopping = task.stopping();
        tokio::select! {
            () = write_repeatedly(&task, &outcome) => {}
            () = stopping.cancelled() => {}
        }
        drop(memory);
    });
}

async fn write_repeatedly(app: &App, outcome: &RequestOutcome) {
    let expiry = Instant::now() + CLAIM_TTL;
    // When the database answered for the first time.
    let mut first_answer_at: Option<Instant> = None;
    while Instant::now() < expiry {
        tokio::time::sleep(OUTCOME_RETRY_DELAY).await;
        match outcome.write(app).await {
            Ok(true) => return,
            Ok(false) if outcome.is_claimed => return,
            Ok(false) if first_answer_at.is_some_and(|it| it.elapsed() >= LATE_CLAIM_PERIOD) => return,
            Ok(false) => _ = first_answer_at.get_or_insert_with(Instant::now),
            Err(error) => tracing::debug!(%error, "the outcome can't be written yet"),
        }
    }
}

/// Removes a secret, which only the first response shows.
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
    response.headers_mut().insert(REPLAYED_HEADER, HeaderValue::from_static("true"));
    match content_type.and_then(|it| HeaderValue::try_from(it).ok()) {
        Some(value) => response.headers_mut().insert(header::CONTENT_TYPE, value),
        None => response.headers_mut().remove(header::CONTENT_TYPE),
    };
    response
}
