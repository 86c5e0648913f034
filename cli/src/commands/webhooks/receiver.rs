//! The HTTP server of `webhooks listen`: reads a delivery, verifies it, forwards it and responds.

use std::{io, sync::Arc, time::Duration};

use api::Timestamp;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{
    post::{PostResult, PostTarget, failure},
    signature::{EVENT_ID_HEADER, Headers, SERVICE_SIGNATURE_HEADER, STANDARD_SIGNATURE_HEADER, header},
    verify::{MAX_BODY_BYTES, SignatureCheck},
};
use crate::env::now;

/// Time that a sender has for the head of a request, and again for its body.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings and output of the receiver, shared by its connections.
pub struct WebhookReceiver {
    /// The secret of the webhook.
    pub secret: String,
    /// By how much the signed timestamp of a delivery may differ from the present time, if it is checked.
    pub tolerance: Option<Duration>,
    /// The address to which deliveries are forwarded.
    pub forward: Option<PostTarget>,
    /// Whether deliveries with an invalid signature are forwarded.
    pub forwards_invalid: bool,
    /// Failures that the receiver simulates.
    pub rehearsal: Rehearsal,
    /// Receives each delivery before its response is sent.
    pub sender: mpsc::Sender<ReceivedDelivery>,
}

/// Failures that the receiver simulates.
pub struct Rehearsal {
    /// Status for valid deliveries.
    pub status: Option<u16>,
    /// Delay before each response.
    pub delay: Duration,
    /// Whether to close the connection instead of a response.
    pub drops: bool,
}

/// A received delivery.
pub struct ReceivedDelivery {
    /// The headers, with lower-case names.
    pub headers: Headers,
    /// The exact bytes of the body.
    pub body: Vec<u8>,
    /// The result of the verification.
    pub check: SignatureCheck,
    received_at: Timestamp,
    forward: Option<PostResult>,
    /// Status of the response; none if the connection is dropped.
    status: Option<u16>,
}

impl WebhookReceiver {
    /// Serves the one request of a connection.
    pub async fn serve(self: Arc<Self>, stream: TcpStream) {
        let service = service_fn(|request| self.respond(request));
        let connection = http1::Builder::new()
            .keep_alive(false)
            .timer(TokioTimer::new())
            .header_read_timeout(READ_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service);
        // A sender that disconnects is not a failure of the receiver.
        _ = connection.await;
    }

    async fn respond(&self, request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
        if request.method() != Method::POST {
            return Ok(response(405, "deliveries are POST requests\n"));
        }
        let received_at = Timestamp::from(now().to_utc());
        let headers: Headers = request
            .headers()
            .iter()
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect();
        let body = Limited::new(request.into_body(), MAX_BODY_BYTES).collect();
        let body = match timeout(READ_TIMEOUT, body).await {
            Ok(Ok(body)) => body.to_bytes().to_vec(),
            Ok(Err(_)) => return Ok(response(413, "the body is too large, or was not sent in full\n")),
            Err(_) => return Ok(response(408, "the body did not arrive in time\n")),
        };
        let check = SignatureCheck::new(&headers, &self.secret, &body, self.tolerance);
        let accepts = check.is_valid() || self.forwards_invalid;
        let forward = match &self.forward {
            Some(target) if accepts => Some(target.post(&forwarded_headers(&headers), &body).await),
            _ => None,
        };
        let (status, text) = self.outcome(accepts, forward.as_ref());
        let status = (!self.rehearsal.drops).then_some(status);
        let delivery = ReceivedDelivery { headers, body, check, received_at, forward, status };
        // The command ends while the response is sent.
        _ = self.sender.send(delivery).await;
        sleep(self.rehearsal.delay).await;
        match status {
            Some(status) => Ok(response(status, text)),
            // The error closes the connection.
            None => Err(io::Error::other("dropped")),
        }
    }

    /// Returns status and body of the response to a delivery.
    fn outcome(&self, accepts: bool, forward: Option<&PostResult>) -> (u16, String) {
        match (self.rehearsal.status, forward) {
            _ if !accepts => (401, "the signature or the timestamp is not valid\n".to_owned()),
            (Some(status), _) => (status, String::new()),
            (None, Some(PostResult { status: 0, error, .. })) => (502, failure(0, error.as_deref()) + "\n"),
            (None, Some(forward)) => (forward.status, forward.body.clone()),
            (None, None) => (200, String::new()),
        }
    }
}

/// Returns the headers of a delivery that are forwarded: those of the service and of Standard Webhooks.
fn forwarded_headers(headers: &Headers) -> Headers {
    let is_forwarded = |name: &str| name.starts_with("x-service-") || name.starts_with("webhook-");
    headers.iter().filter(|(name, _)| is_forwarded(name)).cloned().collect()
}

fn response(status: u16, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    response
}

impl ReceivedDelivery {
    /// Returns the delivery as a row of the output.
    pub fn row(&self) -> Value {
        let signature = match self.check.header {
            Some(_) if self.check.is_stale => "stale",
            Some(SERVICE_SIGNATURE_HEADER) => "ok",
            Some(STANDARD_SIGNATURE_HEADER) => "standard",
            Some(_) => "previous",
            None if self.check.received.is_none() => "missing",
            None => "BAD",
        };
        let forward = self.forward.as_ref().map(|it| {
            json!({ "status": it.status, "latency_ms": it.latency_ms, "error": it.error, "success": it.is_success() })
        });
        json!({
            "received_at": self.received_at,
            "valid": self.check.is_valid(),
            "signature": signature,
            "header": self.check.header,
            "event": header(&self.headers, "x-service-event"),
            "event_id": header(&self.headers, EVENT_ID_HEADER),
            "delivery_id": header(&self.headers, "x-service-delivery"),
            "bytes": self.body.len(),
            "status": self.status,
            "forward": forward,
            "received": self.check.received,
            "computed": self.check.computed,
            "cause": self.check.cause,
        })
    }
}
