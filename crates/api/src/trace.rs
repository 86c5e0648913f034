//! Traces, spans and events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{SpanType, Timestamp, TraceState, UsageDetails};

/// A JSON object that is passed on as text without being parsed.
pub type RawObject = Box<RawValue>;

/// One trace. List responses omit `spans`, `events` and `control_loop_depth`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Trace {
    /// Unique within the tenant; equal to the 16 bytes of an OpenTelemetry trace ID.
    pub id: Uuid,
    /// The project that received it first.
    pub project_id: Uuid,
    /// The sender's own identifier of the trace.
    pub external_id: Option<String>,
    /// The conversation that it belongs to.
    pub session_id: Option<String>,
    /// The end user of the application.
    pub user_id: Option<String>,
    /// Name as sent, else the name of the root span.
    pub name: Option<String>,
    /// Input as sent, else of the root span, else of the first model call.
    pub input: Option<String>,
    /// Output as sent, else of the root span, else of the last model call.
    pub output: Option<String>,
    /// Error message; null on success.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error: Option<String>,
    /// Model as sent, else of the first `llm` span.
    pub model: Option<String>,
    /// Start of the root span, else of the earliest span.
    pub started_at: Timestamp,
    /// End of the root span, else of the latest span.
    pub ended_at: Option<Timestamp>,
    /// Wall-clock latency in milliseconds.
    pub latency_ms: Option<i64>,
    /// Cost in US dollars: the sum over all spans.
    pub cost: Option<f64>,
    /// Prompt and completion tokens over all spans.
    pub total_token_count: i64,
    /// Prompt tokens over all spans; null when no span reports any.
    pub prompt_tokens_total: Option<i64>,
    /// Completion tokens over all spans; null when no span reports any.
    pub completion_tokens_total: Option<i64>,
    /// Cached, cache-write and reasoning tokens over all spans; omitted when no span reports any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_details: Option<UsageDetails>,
    /// All tags as `key:value`, sorted; as `key` when the value is empty.
    #[cfg_attr(feature = "schema", schema(required = true))]
    #[serde(default)]
    pub tags: Vec<String>,
    /// The tags as a map; omitted when there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tag_map: BTreeMap<String, String>,
    /// Additional data from the sender; an empty object when there is none.
    #[cfg_attr(feature = "schema", schema(value_type = Object, required = true))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject>,
    /// Number of spans stored.
    pub span_count: i64,
    /// Whether the trace has ended, as far as its root span shows.
    #[serde(default = "complete")]
    pub state: TraceState,
    /// Whether the trace is complete. JSON traces are complete when stored; OpenTelemetry traces when
    /// the root span has ended and no span has arrived for 5 seconds. Late spans are still merged.
    #[serde(default)]
    pub ready: bool,
    /// Number of executed retries of the control loop; only in the trace detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_loop_depth: Option<i64>,
    /// The spans by start time; only in the trace detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Vec<Span>>,
    /// Cursor for `GET /v1/traces/{id}/spans`, when the trace has more spans than the detail contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans_next_cursor: Option<String>,
    /// The events by time; only in the trace detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Event>>,
}

/// Returns the state of traces of servers that send none.
fn complete() -> TraceState {
    TraceState::Complete
}

/// One operation within a trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Span {
    /// Unique within the trace.
    pub id: Uuid,
    /// The trace that it belongs to.
    pub trace_id: Uuid,
    /// The tenant that it belongs to.
    pub tenant_id: Uuid,
    /// Time of storage.
    pub created_at: Timestamp,
    /// Name of the operation.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub kind: SpanType,
    /// The parent span, which may be missing.
    pub parent_span_id: Option<Uuid>,
    /// Input.
    pub input: Option<String>,
    /// Output.
    pub output: Option<String>,
    /// The model in the response, else the requested model.
    pub model: Option<String>,
    /// Wall-clock latency in milliseconds.
    pub latency_ms: Option<i64>,
    /// Cost in US dollars.
    pub cost: Option<f64>,
    /// Error message; null on success.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error: Option<String>,
    /// Class of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub failure_type: Option<String>,
    /// Prompt tokens, unless another span reports the same tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = i64))]
    pub prompt_tokens: Option<i64>,
    /// Completion tokens, unless another span reports the same tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = i64))]
    pub completion_tokens: Option<i64>,
    /// Cached, cache-write and reasoning tokens, unless another span reports the same tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_details: Option<UsageDetails>,
    /// Additional data: unmapped attributes, `cost_details`, `usage`, `request_model`, `response_id`.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject>,
    /// Start time.
    pub start_time: Timestamp,
    /// End time: as sent, else start time plus latency, else the time of receipt. Omitted for an
    /// OpenTelemetry span that has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Timestamp))]
    pub end_time: Option<Timestamp>,
    /// 32 hexadecimal digits; only for OpenTelemetry spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub otel_trace_id: Option<String>,
    /// 16 hexadecimal digits; only for OpenTelemetry spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub otel_span_id: Option<String>,
}

/// A message within a trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Event {
    /// Unique within the trace.
    pub id: Uuid,
    /// The span that it belongs to.
    pub span_id: Option<Uuid>,
    /// The message.
    pub message: String,
    /// `debug`, `info`, `warning`, `error`, or another word.
    pub level: String,
    /// Additional data.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject>,
    /// Time of the event, else the time of storage.
    pub created_at: Timestamp,
}

/// A page of traces, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TraceList {
    /// The traces, without spans.
    pub traces: Vec<Trace>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// A page of a trace's spans, by start time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SpanList {
    /// The spans.
    pub spans: Vec<Span>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
