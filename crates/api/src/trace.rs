//! Traces, spans and events as the server answers them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{SpanType, Timestamp, UsageDetails};

/// A JSON object that is passed on as text, without being parsed.
pub type RawObject = Box<RawValue>;

/// One trace. The list leaves out `spans`, `events` and `control_loop_depth`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Trace {
    /// Unique within the tenant. The 16 bytes of an OpenTelemetry trace id are this id.
    pub id: Uuid,
    /// The project it first arrived in.
    pub project_id: Uuid,
    /// The caller's own name for it.
    pub external_id: Option<String>,
    /// The conversation it belongs to.
    pub session_id: Option<String>,
    /// The end user it served.
    pub user_id: Option<String>,
    /// Name of the root span unless given.
    pub name: Option<String>,
    /// Input of the root span unless given; without one, that of the first model call.
    pub input: Option<String>,
    /// Output of the root span unless given; without one, that of the last model call.
    pub output: Option<String>,
    /// Error message; null on success.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error: Option<String>,
    /// Model of the first `llm` span unless given.
    pub model: Option<String>,
    /// Start of the root span, else of the first one.
    pub started_at: Timestamp,
    /// End of the root span, else of the last one.
    pub ended_at: Option<Timestamp>,
    /// Wall-clock milliseconds.
    pub latency_ms: Option<i64>,
    /// US dollars: the sum over spans.
    pub cost: Option<f64>,
    /// Prompt and completion tokens over all spans.
    pub total_token_count: i64,
    /// Prompt tokens over all spans; null when none reports any.
    pub prompt_tokens_total: Option<i64>,
    /// Completion tokens over all spans; null when none reports any.
    pub completion_tokens_total: Option<i64>,
    /// Cached, cache-write and reasoning tokens over all spans; left out when none reports any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_details: Option<UsageDetails>,
    /// `key:value` of every tag, sorted; `key` alone when the value is empty.
    #[cfg_attr(feature = "schema", schema(required = true))]
    #[serde(default)]
    pub tags: Vec<String>,
    /// The tags as a map; left out without tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tag_map: BTreeMap<String, String>,
    /// Free data of the caller; an empty object when there is none.
    #[cfg_attr(feature = "schema", schema(value_type = Object, required = true))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject>,
    /// Number of spans stored.
    pub span_count: i64,
    /// Whether the trace is complete: at once when it was sent as JSON, else when its root has ended
    /// and no span came for 5 seconds. Late spans still correct it.
    #[serde(default)]
    pub ready: bool,
    /// Executed retries of the control loop; only in the detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_loop_depth: Option<i64>,
    /// The spans by start time; only in the detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Vec<Span>>,
    /// Where `GET /v1/traces/{id}/spans` reads on, in the detail of a trace with more spans than it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans_next_cursor: Option<String>,
    /// The events by time; only in the detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Event>>,
}

/// One operation within a trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Span {
    /// Unique within the trace.
    pub id: Uuid,
    /// The trace it is part of.
    pub trace_id: Uuid,
    /// The tenant it belongs to.
    pub tenant_id: Uuid,
    /// When it was stored.
    pub created_at: Timestamp,
    /// What was done.
    pub name: String,
    /// Kind of work.
    #[serde(rename = "type")]
    pub kind: SpanType,
    /// The span that caused it; it may never have arrived.
    pub parent_span_id: Option<Uuid>,
    /// What went in.
    pub input: Option<String>,
    /// What came out.
    pub output: Option<String>,
    /// The model that answered, else the one asked.
    pub model: Option<String>,
    /// Wall-clock milliseconds.
    pub latency_ms: Option<i64>,
    /// US dollars.
    pub cost: Option<f64>,
    /// Error message; null when it ended well.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub failure_type: Option<String>,
    /// Tokens of the input, unless another span already reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = i64))]
    pub prompt_tokens: Option<i64>,
    /// Tokens of the output, unless another span already reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = i64))]
    pub completion_tokens: Option<i64>,
    /// Cached, cache-write and reasoning tokens as reported, unless another span already reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_details: Option<UsageDetails>,
    /// Free data: unmapped attributes, `cost_details`, `usage`, `request_model`, `response_id`.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject>,
    /// When it began.
    pub start_time: Timestamp,
    /// When it ended: as sent, else its start and its latency together, else when it was received.
    /// Left out while a span that came over OpenTelemetry has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Timestamp))]
    pub end_time: Option<Timestamp>,
    /// 32 hexadecimal digits, on spans that came over OpenTelemetry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub otel_trace_id: Option<String>,
    /// 16 hexadecimal digits, on spans that came over OpenTelemetry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub otel_span_id: Option<String>,
}

/// Something noted during a trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Event {
    /// Unique within the trace.
    pub id: Uuid,
    /// The span during which it happened.
    pub span_id: Option<Uuid>,
    /// What happened.
    pub message: String,
    /// `debug`, `info`, `warning`, `error`, or as given.
    pub level: String,
    /// Free data.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject>,
    /// When it happened, else when it was stored.
    pub created_at: Timestamp,
}

/// A page of traces, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TraceList {
    /// The traces, without spans.
    pub traces: Vec<Trace>,
    /// More rows exist beyond this page.
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
    /// More rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
