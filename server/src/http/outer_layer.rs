//! The outermost layer: request IDs, error bodies, panics.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc};

use api::ErrorCode;
use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use prost::Message;
use store::new_id;

use super::{
    body_memory, compression, request_head,
    route::Route,
    rpc_status::{RpcCode, RpcStatus},
};
use crate::{
    app::App,
    error::{Error, Problem, internal},
    http::error::{InternalErrorCause, UnwrittenProblem},
};

/// The header with the request ID, in requests and responses.
const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The header with the error code, on responses of the OTLP endpoints.
const ERROR_CODE_HEADER: HeaderName = HeaderName::from_static("x-error-code");

/// Beginnings of paths whose errors have the form of OTLP even if no route exists, for exporters with a slightly
/// wrong address.
const OTLP_PREFIXES: [&str; 2] = ["/v1/otlp/", "/api/public/otel/"];

/// The ID of a request, an extension of every request.
#[derive(Clone, Debug, Default)]
pub struct RequestId(pub Arc<str>);

/// The encoding of error bodies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ErrorEncoding {
    Json,
    /// JSON, with the code also in a header.
    OtlpJson,
    /// A `google.rpc.Status`.
    OtlpProtobuf,
}

/// Gives every response a request ID and every error a body.
pub async fn handle(
    State((app, routes)): State<(Arc<App>, &'static [Route])>,
    mut request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let request_metrics = app.telemetry.http.start_request(request.method().as_str(), route);
    let has_otlp_errors = |path: &str| {
        routes.iter().any(|it| it.has_otlp_errors && it.path == path && it.method == request.method())
    };
    let encoding = encoding(&request, route.is_some_and(has_otlp_errors));
    compression::accept_identity(request.headers_mut());
    let id: Arc<str> = request_id(request.headers()).into();
    request.extensions_mut().insert(RequestId(Arc::clone(&id)));
    let line = format!("{} {}", request.method(), request.uri().path());
    let mut response = match request_head::check_host(&request) {
        Ok(()) => catch_panic(next.run(request)).await,
        Err(error) => error.into_response(),
    };
    response = body_memory::attach(response);
    if let Some(InternalErrorCause(cause)) = response.extensions_mut().remove() {
        tracing::error!(request.id = &*id, request.line = line, fault = cause, "{line} failed");
    }
    let unwritten = response.extensions_mut().remove::<UnwrittenProblem>().map(|it| it.0);
    let problem = unwritten.or_else(|| router_error(&response));
    request_metrics.finish(response.status().as_u16(), problem.as_ref().map(|it| it.code.as_str()));
    if let Some(problem) = problem {
        write_error(problem, &id, encoding, &mut response);
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID_HEADER, value);
    }
    response
}

/// Runs a handler and converts a panic to an error response.
pub async fn catch_panic(handler: impl Future<Output = Response>) -> Response {
    let caught = AssertUnwindSafe(handler).catch_unwind().await;
    caught.unwrap_or_else(|_| Error::Internal(anyhow::anyhow!("a handler panicked")).into_response())
}

/// Returns the client's own ID if it is 1 to 128 visible ASCII characters, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    headers
        .get(REQUEST_ID_HEADER)
        .and_then(|it| it.to_str().ok())
        .filter(|it| (1..=128).contains(&it.len()) && it.bytes().all(|b| b.is_ascii_graphic()))
        .map_or_else(|| new_id().to_string(), str::to_owned)
}

/// Returns the encoding of error responses to a request; `is_otlp` says that its route is one of OTLP.
fn encoding(request: &Request, is_otlp: bool) -> ErrorEncoding {
    let path = request.uri().path();
    let is_otlp = is_otlp || OTLP_PREFIXES.iter().any(|prefix| path.starts_with(prefix));
    let protobuf = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|it| it.to_str().ok())
        .is_some_and(|it| it.trim_start().to_ascii_lowercase().starts_with("application/x-protobuf"));
    match (is_otlp, protobuf) {
        (false, _) => ErrorEncoding::Json,
        (true, false) => ErrorEncoding::OtlpJson,
        (true, true) => ErrorEncoding::OtlpProtobuf,
    }
}

/// Returns the error that the router responded with, without a body.
fn router_error(response: &Response) -> Option<Problem> {
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) {
        return None;
    }
    Some(match status {
        // Path parameters whose percent-encoding is not valid UTF-8.
        StatusCode::BAD_REQUEST => Problem::new(ErrorCode::InvalidQuery, "the path is not valid UTF-8"),
        StatusCode::NOT_FOUND => Problem::new(ErrorCode::NotFound, "this path does not exist"),
        StatusCode::METHOD_NOT_ALLOWED => {
            Problem::new(ErrorCode::MethodNotAllowed, "this path does not support this method")
        }
        _ => internal(),
    })
}

/// Gives an error its body. Existing headers are kept: Allow, Retry-After, those of CORS.
fn write_error(problem: Problem, id: &str, encoding: ErrorEncoding, response: &mut Response) {
    let status = StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let code = problem.code.as_str();
    let (media_type, body) = match encoding {
        ErrorEncoding::OtlpProtobuf => {
            let status = RpcStatus::new(RpcCode::of_http(status), format!("{code}: {problem}"));
            ("application/x-protobuf", status.encode_to_vec())
        }
        // Serializing texts and numbers never fails.
        ErrorEncoding::Json | ErrorEncoding::OtlpJson => {
            ("application/json", serde_json::to_vec(&problem.body(id)).unwrap_or_default())
        }
    };
    *response.status_mut() = status;
    *response.body_mut() = Body::from(body);
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    if encoding != ErrorEncoding::Json {
        headers.insert(ERROR_CODE_HEADER, HeaderValue::from_static(code));
    }
}
