//! Request and response bodies of JSON ingest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{SpanType, Timestamp, UsageDetails, trace::RawObject};

/// Largest number of items in one batch.
pub const MAX_BATCH: usize = 1_000;

/// One trace to store. Every field is optional.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct TraceItem {
    /// A UUID, or any text; other text is hashed to a UUID.
    pub id: Option<String>,
    /// The sender's own identifier of the trace.
    pub external_id: Option<String>,
    /// Name of the project; default: the project of the API key.
    pub project_name: Option<String>,
    /// The conversation that it belongs to.
    pub session_id: Option<String>,
    /// The end user of the application.
    pub user_id: Option<String>,
    /// Name; default: name of the root span.
    pub name: Option<String>,
    /// Input; default: input of the root span, else of the first model call.
    pub input: Option<String>,
    /// Output; default: output of the root span, else of the last model call.
    pub output: Option<String>,
    /// Model; default: model of the first `llm` span.
    pub model: Option<String>,
    /// Latency in milliseconds, not negative.
    pub latency_ms: Option<i64>,
    /// Cost in US dollars, not negative. Used when no span has a cost.
    pub cost: Option<f64>,
    /// Error message.
    pub error: Option<String>,
    /// Keys and values; numbers and booleans are stored as text.
    #[cfg_attr(feature = "schema", schema(value_type = Option<BTreeMap<String, String>>))]
    #[serde(deserialize_with = "crate::object::tags")]
    pub tags: Option<BTreeMap<String, serde_json::Value>>,
    /// Additional data, an object.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub metadata: Option<RawObject>,
    /// Start time.
    pub started_at: Option<Timestamp>,
    /// End time.
    pub ended_at: Option<Timestamp>,
    /// The trace's spans, in any order.
    #[serde(deserialize_with = "crate::object::list")]
    pub spans: Option<Vec<SpanItem>>,
    /// The events.
    #[serde(deserialize_with = "crate::object::list")]
    pub events: Option<Vec<EventItem>>,
}

/// One span of a [`TraceItem`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SpanItem {
    /// Name of the operation. Required.
    pub name: String,
    /// Type; default `other`.
    #[serde(rename = "type", default)]
    pub kind: Option<SpanType>,
    /// A UUID, or any text; other text is hashed to a UUID.
    #[serde(default)]
    pub id: Option<String>,
    /// ID of the parent span, in the form of that span's `id`.
    #[serde(default)]
    pub parent_span_id: Option<String>,
    /// Input.
    #[serde(default)]
    pub input: Option<String>,
    /// Output.
    #[serde(default)]
    pub output: Option<String>,
    /// Model.
    #[serde(default)]
    pub model: Option<String>,
    /// Latency in milliseconds, not negative.
    #[serde(default)]
    pub latency_ms: Option<i64>,
    /// Cost in US dollars, not negative.
    #[serde(default)]
    pub cost: Option<f64>,
    /// Error message.
    #[serde(default)]
    pub error: Option<String>,
    /// Prompt tokens, not negative.
    #[serde(default)]
    pub prompt_tokens: Option<i64>,
    /// Completion tokens, not negative.
    #[serde(default)]
    pub completion_tokens: Option<i64>,
    /// The prompt and completion tokens that were cached, written to a cache or spent on reasoning; not
    /// negative.
    #[serde(default, deserialize_with = "crate::object::one", skip_serializing_if = "Option::is_none")]
    pub usage_details: Option<UsageDetails>,
    /// Additional data, an object. `cost_usd` on an `llm` span is its cost.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub metadata: Option<RawObject>,
    /// Start time.
    #[serde(default)]
    pub start_time: Option<Timestamp>,
    /// End time.
    #[serde(default)]
    pub end_time: Option<Timestamp>,
    /// Embedding of the span: 1536 numbers, not all zero. Spans without one are embedded in the
    /// background if an embedding provider is configured.
    #[serde(
        default,
        deserialize_with = "crate::search::maybe_numbers",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(min_items = 1536, max_items = 1536))]
    pub embedding: Option<Vec<f32>>,
}

/// One event of a [`TraceItem`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventItem {
    /// The message. Required.
    pub message: String,
    /// A UUID, or any text; other text is hashed to a UUID.
    #[serde(default)]
    pub id: Option<String>,
    /// The span that the event belongs to, in the form of that span's `id`.
    #[serde(default)]
    pub span_id: Option<String>,
    /// Level; default `info`.
    #[serde(default)]
    pub level: Option<String>,
    /// Additional data, an object.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub metadata: Option<RawObject>,
}

/// Response of `POST /v1/ingest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Ingested {
    /// ID of the stored trace.
    pub id: Uuid,
    /// The sender's own identifier of the trace.
    pub external_id: Option<String>,
    /// Number of spans stored.
    pub span_count: i64,
    /// Prompt and completion tokens over all spans.
    pub total_token_count: i64,
    /// Cost in US dollars.
    pub cost: Option<f64>,
}

/// Body of `POST /v1/ingest/batch`, for clients. The server decodes the items one by one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Batch {
    /// Up to [`MAX_BATCH`] items.
    pub traces: Vec<TraceItem>,
}

/// Response of `POST /v1/ingest/batch`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BatchResult {
    /// Items stored by this request.
    pub accepted: usize,
    /// Items rejected.
    pub rejected: usize,
    /// One entry per item, in the order of the request.
    pub results: Vec<ItemResult>,
}

/// Result of one item of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ItemResult {
    /// Position in the request.
    pub index: usize,
    /// ID of the trace; null when the item was rejected before an ID was assigned.
    pub id: Option<Uuid>,
    /// `accepted`, `duplicate` or `rejected`.
    pub status: ItemStatus,
    /// Machine-readable reason of a rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Error message for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Outcome of one item of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ItemStatus {
    /// Stored.
    Accepted,
    /// A trace with this ID was stored before; nothing changed.
    Duplicate,
    /// Not stored.
    Rejected,
}
