//! OTLP over gRPC: each call becomes a request to the HTTP endpoint of its signal, so that access, limits, memory and
//! errors are the same.
//!
//! In gRPC over HTTP/2, a prefix of five bytes precedes a message: the first says whether the message is compressed, the
//! others are its length. The status follows the response's message as a trailer.

mod message_body;
mod reply;

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version,
        header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, TE},
    },
    response::{IntoResponse, Response},
};
use futures::stream;
use hyper::{body::Incoming, service::Service};
use hyper_util::service::TowerToHyperService;

pub use message_body::FramingError;
use message_body::MessageBody;

use crate::app::App;

/// The methods and their HTTP endpoints.
const METHOD_ENDPOINTS: [(&str, &str); 3] = [
    ("/opentelemetry.proto.collector.trace.v1.TraceService/Export", "/v1/otlp/v1/traces"),
    ("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", "/v1/otlp/v1/metrics"),
    ("/opentelemetry.proto.collector.logs.v1.LogsService/Export", "/v1/otlp/v1/logs"),
];
/// The path of an unknown method; its error has the form of OTLP.
const UNKNOWN_METHOD_PATH: &str = "/v1/otlp/unknown-method";

/// The header with the compression of a request's message.
const ENCODING_HEADER: HeaderName = HeaderName::from_static("grpc-encoding");
/// Headers of a call that describe its transport, not its message.
const TRANSPORT_HEADERS: [HeaderName; 5] = [TE, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT];

/// Serves a call.
pub async fn serve_call(app: &App, router: Router, call: Request<Incoming>) -> Response {
    if !has_grpc_type(call.headers()) {
        // gRPC requires an HTTP status here, because the client does not speak gRPC and would not read its status.
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let request = to_http(call, Duration::from_secs(app.config.header_timeout)).await;
    let Ok(response) = TowerToHyperService::new(router).call(request).await;
    reply::to_grpc(response).await
}

/// Returns whether the content type is gRPC with messages in protobuf.
fn has_grpc_type(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let Some(rest) = value.strip_prefix(b"application/grpc") else { return false };
    let rest = rest.strip_prefix(b"+proto").unwrap_or(rest);
    matches!(rest.first(), None | Some(b';' | b' '))
}

/// Returns the request to the HTTP endpoint. Waits for the prefix of the message, at most for `timeout`.
async fn to_http(call: Request<Incoming>, timeout: Duration) -> Request<Body> {
    let (mut parts, incoming) = call.into_parts();
    let endpoint =
        METHOD_ENDPOINTS.iter().find(|it| it.0 == parts.uri.path() && parts.method == Method::POST);
    let read = tokio::time::timeout(timeout, MessageBody::begin(incoming)).await;
    let host = parts.uri.authority().and_then(|it| HeaderValue::from_str(it.as_str()).ok());
    for name in TRANSPORT_HEADERS {
        parts.headers.remove(name);
    }
    let encoding = parts.headers.remove(ENCODING_HEADER).filter(|it| it != "identity");
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    if let Some(host) = host {
        parts.headers.insert(HOST, host);
    }
    let body = match (read.unwrap_or(Err(FramingError::Late)), encoding) {
        (Ok(message), None) if message.is_compressed => failing(FramingError::UnnamedCompression),
        (Ok(message), encoding) => {
            if let Some(encoding) = encoding.filter(|_| message.is_compressed) {
                parts.headers.insert(CONTENT_ENCODING, encoding);
            }
            parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(message.remaining_bytes()));
            Body::new(message)
        }
        (Err(error), _) => failing(error),
    };
    parts.uri = Uri::from_static(endpoint.map_or(UNKNOWN_METHOD_PATH, |it| it.1));
    parts.method = Method::POST;
    parts.version = Version::HTTP_2;
    Request::from_parts(parts, body)
}

/// Returns a body whose read fails with `error`. It is read by the handler, after authentication.
fn failing(error: FramingError) -> Body {
    Body::from_stream(stream::iter([Err::<&[u8], _>(error)]))
}
