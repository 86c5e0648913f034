//! Table `span`: a narrow row for each span from which totals are computed. It contains the spans of traces with too many or
//! too large spans for a [`crate::span_block`], and those that earlier versions stored. Texts are in [`crate::body`].

use sea_orm::entity::prelude::*;

/// A span without its texts.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "span")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The key of the trace that it belongs to, so that rows are stored in the order of arrival.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_key: i64,
    /// The trace that it belongs to.
    pub trace_id: Uuid,
    /// Unique within the trace.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The parent span, which may be missing.
    pub parent_id: Option<Uuid>,
    /// Name of the operation.
    pub name: String,
    /// A word of [`api::SpanType`], or another word.
    pub kind: String,
    /// The model in the response, else the requested model.
    pub model: Option<String>,
    /// Microseconds.
    pub started_at: i64,
    /// Microseconds.
    pub ended_at: Option<i64>,
    /// Milliseconds.
    pub latency_ms: Option<i64>,
    /// Error message; null on success.
    pub error: Option<String>,
    /// Bit of [`api::FailureType`]; null without an error.
    pub failure: Option<i16>,
    /// Prompt tokens, as the span reports them.
    pub prompt_tokens: Option<i64>,
    /// Completion tokens, as the span reports them.
    pub completion_tokens: Option<i64>,
    /// Pico-dollars, whether counted or not.
    pub cost: Option<i64>,
    /// False while another span reports the same tokens.
    pub counted: bool,
    /// False while another span reports the same cost.
    pub cost_counted: bool,
    /// Hash of the provider's response ID.
    pub response_hash: Option<i64>,
    /// The 8 bytes of its OpenTelemetry span ID, from which `id` is derived; null for JSON ingest.
    pub otel_span_id: Option<Vec<u8>>,
    /// Trace hints (session, user, tags), as JSON; null if there are none.
    pub hints: Option<String>,
    /// The text block that contains its texts.
    pub body_id: Option<Uuid>,
    /// Index within that text block.
    pub body_index: i32,
    /// Microseconds.
    pub created_at: i64,
    /// Input tokens read from a cache, as reported.
    pub cached_input_tokens: Option<i64>,
    /// Input tokens written to a cache, as reported.
    pub cache_write_tokens: Option<i64>,
    /// Output tokens spent on reasoning, as reported.
    pub reasoning_tokens: Option<i64>,
    /// Bit set of the missing texts: 1 input, 2 output; null when the span has both.
    pub missing_texts: Option<i16>,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
