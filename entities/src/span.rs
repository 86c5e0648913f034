//! Table `span`: the narrow row that totals are computed from. Texts are in [`crate::body`].

use sea_orm::entity::prelude::*;

/// One span, without its texts.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "span")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The trace it is part of.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_id: Uuid,
    /// Unique within the trace.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The span that caused it; it may never arrive.
    pub parent_id: Option<Uuid>,
    /// What was done.
    pub name: String,
    /// A word of [`api::SpanType`], or as given.
    pub kind: String,
    /// The model that answered, else the one asked.
    pub model: Option<String>,
    /// Microseconds.
    pub started_at: i64,
    /// Microseconds.
    pub ended_at: Option<i64>,
    /// Milliseconds.
    pub latency_ms: Option<i64>,
    /// Error message; null when it ended well.
    pub error: Option<String>,
    /// Bit of [`api::FailureType`]; null without an error.
    pub failure: Option<i16>,
    /// As reported.
    pub prompt_tokens: Option<i64>,
    /// As reported.
    pub completion_tokens: Option<i64>,
    /// Pico-dollars, whether counted or not.
    pub cost: Option<i64>,
    /// False while another span reports the same tokens.
    pub counted: bool,
    /// False while another span reports the same cost.
    pub cost_counted: bool,
    /// Hash of the provider's response id.
    pub response_hash: Option<i64>,
    /// The 8 bytes of its OpenTelemetry id; null for JSON ingest.
    pub otel_span_id: Option<Vec<u8>>,
    /// What it says about its trace (session, user, tags), as JSON; null if nothing.
    pub hints: Option<String>,
    /// The body that holds its texts.
    pub body_id: Option<Uuid>,
    /// Entry of that body.
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

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
