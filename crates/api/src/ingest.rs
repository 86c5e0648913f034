//! Bodies of the JSON ingest and their answers.

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
    /// A UUID, or any text from which one is made.
    pub id: Option<String>,
    /// The caller's own name for it.
    pub external_id: Option<String>,
    /// Project by name, in place of the key's own.
    pub project_name: Option<String>,
    /// The conversation it belongs to.
    pub session_id: Option<String>,
    /// The end user it served.
    pub user_id: Option<String>,
    /// Name; of the root span if absent.
    pub name: Option<String>,
    /// Input; of the root span if absent, else of the first model call.
    pub input: Option<String>,
    /// Output; of the root span if absent, else of the last model call.
    pub output: Option<String>,
    /// Model; of the first `llm` span if absent.
    pub model: Option<String>,
    /// Milliseconds, not negative.
    pub latency_ms: Option<i64>,
    /// US dollars, not negative. Used when no span has a cost.
    pub cost: Option<f64>,
    /// Error message.
    pub error: Option<String>,
    /// Key to value; numbers and booleans are taken as text.
    #[cfg_attr(feature = "schema", schema(value_type = Option<BTreeMap<String, String>>))]
    #[serde(deserialize_with = "crate::object::tags")]
    pub tags: Option<BTreeMap<String, serde_json::Value>>,
    /// Free data, an object.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub metadata: Option<RawObject>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its spans, in any order.
    #[serde(deserialize_with = "crate::object::list")]
    pub spans: Option<Vec<SpanItem>>,
    /// Its events.
    #[serde(deserialize_with = "crate::object::list")]
    pub events: Option<Vec<EventItem>>,
}

/// One span of a [`TraceItem`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SpanItem {
    /// What was done. Required.
    pub name: String,
    /// Kind of work; `other` if absent.
    #[serde(rename = "type", default)]
    pub kind: Option<SpanType>,
    /// A UUID, or any text from which one is made.
    #[serde(default)]
    pub id: Option<String>,
    /// Id of the span that caused it, written as its `id` was.
    #[serde(default)]
    pub parent_span_id: Option<String>,
    /// What went in.
    #[serde(default)]
    pub input: Option<String>,
    /// What came out.
    #[serde(default)]
    pub output: Option<String>,
    /// The model called.
    #[serde(default)]
    pub model: Option<String>,
    /// Milliseconds, not negative.
    #[serde(default)]
    pub latency_ms: Option<i64>,
    /// US dollars, not negative.
    #[serde(default)]
    pub cost: Option<f64>,
    /// Error message.
    #[serde(default)]
    pub error: Option<String>,
    /// Tokens of the input, not negative.
    #[serde(default)]
    pub prompt_tokens: Option<i64>,
    /// Tokens of the output, not negative.
    #[serde(default)]
    pub completion_tokens: Option<i64>,
    /// Of these tokens, those read from a cache, written to it, or spent on reasoning; not negative.
    #[serde(default, deserialize_with = "crate::object::one", skip_serializing_if = "Option::is_none")]
    pub usage_details: Option<UsageDetails>,
    /// Free data, an object. `cost_usd` on an `llm` span is its cost.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub metadata: Option<RawObject>,
    /// When it began.
    #[serde(default)]
    pub start_time: Option<Timestamp>,
    /// When it ended.
    #[serde(default)]
    pub end_time: Option<Timestamp>,
    /// What it means, by which it is found: 1536 numbers, not all of them zero. Without it, spans
    /// are embedded in the background where an embedding provider is configured.
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
    /// What happened. Required.
    pub message: String,
    /// A UUID, or any text from which one is made.
    #[serde(default)]
    pub id: Option<String>,
    /// The span during which it happened, written as its `id` was.
    #[serde(default)]
    pub span_id: Option<String>,
    /// `info` if absent.
    #[serde(default)]
    pub level: Option<String>,
    /// Free data, an object.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub metadata: Option<RawObject>,
}

/// Answer to `POST /v1/ingest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Ingested {
    /// Id of the stored trace.
    pub id: Uuid,
    /// The caller's own name for it.
    pub external_id: Option<String>,
    /// Number of spans stored.
    pub span_count: i64,
    /// Prompt and completion tokens over all spans.
    pub total_token_count: i64,
    /// US dollars.
    pub cost: Option<f64>,
}

/// Body of `POST /v1/ingest/batch`, for clients. The server reads items one by one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Batch {
    /// Up to [`MAX_BATCH`] items.
    pub traces: Vec<TraceItem>,
}

/// Answer to `POST /v1/ingest/batch`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BatchResult {
    /// Items stored by this request.
    pub accepted: usize,
    /// Items refused.
    pub rejected: usize,
    /// One entry an item, in the order of the request.
    pub results: Vec<ItemResult>,
}

/// What became of one item of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ItemResult {
    /// Position in the request.
    pub index: usize,
    /// Id of the trace; null when the item was refused before it had one.
    pub id: Option<Uuid>,
    /// `accepted`, `duplicate` or `rejected`.
    pub status: ItemStatus,
    /// Machine-readable reason of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Sentence for people.
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
    /// A trace with this id was stored before; nothing changed.
    Duplicate,
    /// Not stored.
    Rejected,
}
