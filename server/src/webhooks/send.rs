//! Sends one signed request to a webhook.

use std::time::Duration;

use api::webhook::EventType;
use outbound::{AddressOwner, Bytes, HeaderMap, Method, OutboundRequest, StatusCode, header::RETRY_AFTER};
use uuid::Uuid;

use super::{
    headers::{SignedMessage, signed_headers},
    schedule,
    target::WebhookTarget,
};
use crate::app::App;

/// Maximum time of an attempt, from the resolution of the name to the end of the response.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of bytes of a response that are read and stored.
const MAX_RESPONSE_BYTES: usize = 4 * 1024;

/// The contents of a request to a webhook.
pub struct WebhookMessage {
    /// The event's ID.
    pub event: Uuid,
    /// What happened.
    pub event_type: EventType,
    /// The delivery's ID.
    pub delivery: Uuid,
    /// The body.
    pub payload: Bytes,
}

/// The result of a request.
#[derive(Clone, Debug)]
pub struct SendResult {
    /// HTTP status of the response; 0 without a complete response.
    pub status: u16,
    /// The first bytes of the response body; none without a response.
    pub body: Option<String>,
    /// Why the request failed: the receiver did not return a status from 200 to 299.
    pub error: Option<String>,
    /// Time of the request, microseconds.
    pub started_at: i64,
    /// Duration in milliseconds.
    pub latency_ms: i64,
    /// The delay that the receiver demands, in microseconds.
    pub retry_after: Option<i64>,
}

/// Sends a message to a webhook.
pub async fn send(app: &App, target: &WebhookTarget, message: WebhookMessage) -> SendResult {
    let started_at = app.clock.now();
    let signed = SignedMessage {
        id: message.event,
        event: message.event_type.as_str(),
        delivery: message.delivery,
        body: message.payload.as_ref(),
    };
    let previous = target.previous_secret.as_deref();
    let request = OutboundRequest {
        method: Method::POST,
        url: target.url.clone(),
        set_by: AddressOwner::Tenant,
        headers: signed_headers(&target.secret, previous, &signed, started_at),
        body: message.payload,
        timeout: ATTEMPT_TIMEOUT,
        max_body: MAX_RESPONSE_BYTES,
    };
    let sent = app.outbound.send(request).await;
    let latency_ms = (app.clock.now() - started_at) / 1_000;
    match sent {
        Ok(response) => SendResult {
            status: response.status.as_u16(),
            body: Some(text(&response.body, response.is_truncated)),
            error: failure(response.status),
            started_at,
            latency_ms,
            retry_after: retry_after(response.status, &response.headers, started_at),
        },
        Err(error) => SendResult {
            status: 0,
            body: None,
            error: Some(error.to_string()),
            started_at,
            latency_ms,
            retry_after: None,
        },
    }
}

/// Returns why a status is a failure.
fn failure(status: StatusCode) -> Option<String> {
    let code = status.as_u16();
    match code {
        200..=299 => None,
        300..=399 => Some(format!("the receiver returned status {code}; redirects are not followed")),
        410 => Some("the receiver returned status 410: it no longer accepts deliveries".to_owned()),
        _ => Some(format!("the receiver returned status {code}")),
    }
}

/// Returns the delay that a receiver without capacity demands.
fn retry_after(status: StatusCode, headers: &HeaderMap, now: i64) -> Option<i64> {
    let is_busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let value = headers.get(RETRY_AFTER).filter(|_| is_busy)?;
    schedule::retry_after(value.to_str().ok()?, now)
}

/// Returns a body as text that both databases can store. A character that the limit has cut is dropped.
fn text(body: &[u8], is_truncated: bool) -> String {
    let whole = match std::str::from_utf8(body) {
        Err(error) if is_truncated && error.error_len().is_none() => &body[..error.valid_up_to()],
        _ => body,
    };
    String::from_utf8_lossy(whole).replace('\0', "\u{fffd}")
}
