//! Table `trace`: the narrow row that lists filter, sort and show. Texts are in [`crate::body`].

use sea_orm::entity::prelude::*;

/// One trace, without its texts.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "trace")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The project it first arrived in.
    pub project_id: Uuid,
    /// The caller's own name for it.
    pub external_id: Option<String>,
    /// The conversation it belongs to.
    pub session_id: Option<String>,
    /// The end user it served.
    pub user_id: Option<String>,
    /// What was done.
    pub name: Option<String>,
    /// Model of the first `llm` span unless given.
    pub model: Option<String>,
    /// Error message; null on success.
    pub error: Option<String>,
    /// Bit set over [`api::FailureType`] of its spans.
    pub failure_types: i16,
    /// Microseconds.
    pub started_at: i64,
    /// Microseconds.
    pub ended_at: Option<i64>,
    /// Milliseconds.
    pub latency_ms: Option<i64>,
    /// Logarithmic class of `latency_ms`; null as it is.
    pub latency_class: Option<i16>,
    /// Sum over counted spans; null when none reports any.
    pub prompt_tokens: Option<i64>,
    /// Sum over counted spans; null when none reports any.
    pub completion_tokens: Option<i64>,
    /// Sum of both.
    pub total_tokens: i64,
    /// Logarithmic class of `total_tokens`.
    pub token_class: i16,
    /// Pico-dollars.
    pub cost: Option<i64>,
    /// Logarithmic class of `cost`; null as it is.
    pub cost_class: Option<i16>,
    /// JSON object of the tags; null without.
    pub tags: Option<String>,
    /// Spans stored.
    pub span_count: i32,
    /// When it is ready if nothing more comes, microseconds.
    pub ready_at: i64,
    /// Set by the job that found it ready; cleared by late spans.
    pub ready: bool,
    /// What the caller of the JSON ingest gave for the whole trace, as JSON; null for OTLP.
    pub given: Option<String>,
    /// SHA-256 of the JSON item, to tell an identical repetition; null for OTLP.
    pub digest: Option<Vec<u8>>,
    /// The body that holds its input, output and metadata.
    pub body_id: Option<Uuid>,
    /// Entry of that body.
    pub body_index: i32,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds; what the stream resumes by.
    pub updated_at: i64,
    /// The metrics count it. False only for rows from before there were metrics.
    pub measured: bool,
    /// Label of its newest feedback: 0 neutral, 1 good, 2 bad; null without feedback.
    pub feedback: Option<i16>,
    /// Input tokens read from a cache: the sum over counted spans; null when none reports any.
    pub cached_input_tokens: Option<i64>,
    /// Input tokens written to a cache, in the same way.
    pub cache_write_tokens: Option<i64>,
    /// Output tokens spent on reasoning, in the same way.
    pub reasoning_tokens: Option<i64>,
    /// The body with its input, if that is not the input of `body_id`.
    pub input_body_id: Option<Uuid>,
    /// The entry within that body.
    pub input_body_index: Option<i32>,
    /// The body with its output, if that is not the output of `body_id`.
    pub output_body_id: Option<Uuid>,
    /// The entry within that body.
    pub output_body_index: Option<i32>,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
