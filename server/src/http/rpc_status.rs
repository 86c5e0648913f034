//! The status of a remote procedure call: the error body of OTLP over HTTP with protobuf, and the result of calls over
//! gRPC.

use std::time::Duration;

use axum::http::StatusCode;
use prost::Message;
use prost_types::Any;

/// The status codes of gRPC that this service uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum RpcCode {
    /// The call succeeded.
    Ok = 0,
    /// The request is invalid.
    InvalidArgument = 3,
    /// Nothing exists under this name.
    NotFound = 5,
    /// The request contradicts an earlier one.
    AlreadyExists = 6,
    /// The caller is authenticated but not authorized.
    PermissionDenied = 7,
    /// The request is too large, or the caller sent too many.
    ResourceExhausted = 8,
    /// The method or the compression is not supported.
    Unimplemented = 12,
    /// The server failed.
    Internal = 13,
    /// The server is busy; the same request may succeed later.
    Unavailable = 14,
    /// The caller is not authenticated.
    Unauthenticated = 16,
}

impl RpcCode {
    /// Returns the code for an HTTP status.
    pub fn of_http(status: StatusCode) -> Self {
        match status.as_u16() {
            400 | 415 | 422 => Self::InvalidArgument,
            401 => Self::Unauthenticated,
            402 | 403 => Self::PermissionDenied,
            404 | 405 => Self::NotFound,
            409 => Self::AlreadyExists,
            413 | 429 => Self::ResourceExhausted,
            503 => Self::Unavailable,
            _ => Self::Internal,
        }
    }
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub struct RpcStatus {
    /// A status code of gRPC.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// A message for people.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Messages that programs read.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

impl RpcStatus {
    /// Creates a status without details.
    pub fn new(code: RpcCode, message: impl Into<String>) -> Self {
        Self { code: code as i32, message: message.into(), details: Vec::new() }
    }
}

/// `google.rpc.RetryInfo`: after which time the same request may succeed. Without it, exporters do not retry after
/// `RESOURCE_EXHAUSTED`.
#[derive(Clone, PartialEq, Message)]
pub struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<prost_types::Duration>,
}

impl RetryInfo {
    /// Creates the detail for a delay.
    pub fn new(delay: Duration) -> Self {
        Self { retry_delay: prost_types::Duration::try_from(delay).ok() }
    }

    /// Packs the detail for [`RpcStatus::details`].
    pub fn to_any(&self) -> Any {
        Any { type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(), value: self.encode_to_vec() }
    }
}
