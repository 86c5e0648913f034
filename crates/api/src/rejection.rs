//! Rejections: spans and traces that ingest rejected within accepted requests.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Timestamp, enums::words};

words! {
    /// The protocol of a request with rejected items.
    RejectionSource {
        /// OTLP, in protobuf or JSON. The items are spans.
        Otlp = "otlp",
        /// Log records, over OTLP.
        OtlpLogs = "otlp_logs",
        /// A batch of Loupe's JSON ingest. The items are traces.
        Json = "json",
    }
}

/// Why an item was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RejectionReason {
    /// Position of the item in its request, from 0; null if the reason applies to several spans of an OTLP request.
    pub index: Option<u64>,
    /// The error code.
    pub code: String,
    /// A message for people, at most 300 characters.
    pub message: String,
}

/// The rejected items of an ingest request. When a tenant has very many such requests in an hour, one record counts
/// the items of several of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Rejection {
    /// Identifies the rejection.
    pub id: Uuid,
    /// The project of the request, by its header or its API key.
    pub project_id: Uuid,
    /// The protocol of the request.
    pub source: RejectionSource,
    /// The SDK that sent the first rejected item, such as `opentelemetry/python`, or else the product that the
    /// request's `User-Agent` names; null if unknown.
    pub sdk: Option<String>,
    /// Version of the SDK or product; null if unknown.
    pub sdk_version: Option<String>,
    /// Number of rejected items: spans or log records of OTLP, traces of a JSON batch.
    pub rejected: i64,
    /// Number of counted requests.
    pub requests: i64,
    /// The reasons of the first rejected items of the first request, at most 5.
    pub reasons: Vec<RejectionReason>,
    /// ID of the first request; empty for log records that were rejected after they had waited for their span.
    pub request_id: String,
    /// Time of the first request.
    pub received_at: Timestamp,
    /// Time of the last request.
    pub last_at: Timestamp,
}

/// A page of rejections, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RejectionList {
    /// The rejections.
    pub rejections: Vec<Rejection>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
