//! Responses of calls.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
    },
    response::Response,
};
use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use http_body_util::{BodyExt, Full, Limited};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use prost::Message;

use super::message_body::PREFIX_LEN;
use crate::http::rpc_status::{RetryInfo, RpcCode, RpcStatus};

/// The header that names the supported compressions.
const ACCEPT_ENCODING_HEADER: HeaderName = HeaderName::from_static("grpc-accept-encoding");
/// The supported compressions of messages.
const ACCEPTED_ENCODINGS: &str = "identity,gzip,zstd";
/// The trailer with the code of a status.
const STATUS_HEADER: HeaderName = HeaderName::from_static("grpc-status");
/// The trailer with the message of a status, percent-encoded.
const MESSAGE_HEADER: HeaderName = HeaderName::from_static("grpc-message");
/// The trailer with the status and its details, in base64.
const DETAILS_HEADER: HeaderName = HeaderName::from_static("grpc-status-details-bin");
/// The trailer from which exporters in Python read the delay before a retry.
const RETRY_INFO_HEADER: HeaderName = HeaderName::from_static("google.rpc.retryinfo-bin");

/// Maximum size in bytes of a response's message.
const MAX_REPLY_BYTES: usize = 64 * 1024;
/// Maximum number of characters of a status's message: clients accept 8 KiB of trailers.
const MAX_MESSAGE_CHARS: usize = 400;
/// The characters of a status's message that must be encoded, besides all outside ASCII.
const ENCODED_CHARS: &AsciiSet = &CONTROLS.add(b'%');

/// Converts the response of the HTTP endpoint.
pub async fn to_grpc(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(body) = Limited::new(body, MAX_REPLY_BYTES).collect().await else {
        return failed(
            &RpcStatus::new(RpcCode::Internal, "internal: the response can't be read"),
            HeaderMap::new(),
        );
    };
    let body = body.to_bytes();
    parts.headers.remove(CONTENT_LENGTH);
    if parts.status == StatusCode::OK {
        return succeeded(&body, parts.headers);
    }
    let code = match parts.status {
        // The codes of gRPC for an unknown method and an unknown compression.
        StatusCode::NOT_FOUND | StatusCode::UNSUPPORTED_MEDIA_TYPE => RpcCode::Unimplemented,
        status => RpcCode::of_http(status),
    };
    let message = RpcStatus::decode(body).map_or_else(|_| "the call failed".to_owned(), |it| it.message);
    let mut status = RpcStatus::new(code, message);
    let retry_after = parts.headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
    if let Some(seconds) = retry_after {
        let info = RetryInfo::new(Duration::from_secs(seconds));
        status.details.push(info.to_any());
        insert_binary(&mut parts.headers, RETRY_INFO_HEADER, &info.encode_to_vec());
    }
    failed(&status, parts.headers)
}

/// Returns the response of a call with this message.
fn succeeded(message: &[u8], headers: HeaderMap) -> Response {
    let mut framed = Vec::with_capacity(PREFIX_LEN + message.len());
    framed.push(0);
    framed.extend(u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    framed.extend_from_slice(message);
    let trailers =
        async { Some(Ok(HeaderMap::from_iter([(STATUS_HEADER, HeaderValue::from(RpcCode::Ok as i32))]))) };
    respond(headers, Body::new(Full::new(Bytes::from(framed)).with_trailers(trailers)))
}

/// Returns the response of a call that failed: its status is in the headers, without a message.
fn failed(status: &RpcStatus, mut headers: HeaderMap) -> Response {
    let message: String = status.message.chars().take(MAX_MESSAGE_CHARS).collect();
    let status = RpcStatus { message, ..status.clone() };
    headers.insert(STATUS_HEADER, HeaderValue::from(status.code));
    let message = utf8_percent_encode(&status.message, ENCODED_CHARS).to_string();
    if let Ok(message) = HeaderValue::from_str(&message) {
        headers.insert(MESSAGE_HEADER, message);
    }
    insert_binary(&mut headers, DETAILS_HEADER, &status.encode_to_vec());
    respond(headers, Body::empty())
}

/// Adds a header with binary content.
fn insert_binary(headers: &mut HeaderMap, name: HeaderName, content: &[u8]) {
    if let Ok(value) = HeaderValue::from_str(&BASE64_STANDARD_NO_PAD.encode(content)) {
        headers.insert(name, value);
    }
}

fn respond(headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response.headers_mut().insert(ACCEPT_ENCODING_HEADER, HeaderValue::from_static(ACCEPTED_ENCODINGS));
    response
}
