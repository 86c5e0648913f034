//! Table `trace`: the narrow row that lists filter, sort and show. Texts are in [`crate::body`].

use sea_orm::entity::prelude::*;

/// A trace without its texts.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "trace")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Increases with arrival, so that rows are appended. The whole primary key on SQLite; unique within the tenant on
    /// PostgreSQL. Not part of API responses.
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: i64,
    /// Unique within the tenant.
    pub id: Uuid,
    /// The project that received it first.
    pub project_id: Uuid,
    /// The sender's own identifier of the trace.
    pub external_id: Option<String>,
    /// The conversation that it belongs to.
    pub session_id: Option<String>,
    /// The end user of the application.
    pub user_id: Option<String>,
    /// Name of the operation.
    pub name: Option<String>,
    /// Model as sent, else of the first `llm` span.
    pub model: Option<String>,
    /// Error message; null on success.
    pub error: Option<String>,
    /// Bit set of the [`api::FailureType`]s of its spans.
    pub failure_types: i16,
    /// Microseconds.
    pub started_at: i64,
    /// Microseconds.
    pub ended_at: Option<i64>,
    /// Milliseconds.
    pub latency_ms: Option<i64>,
    /// Logarithmic class of `latency_ms`; null if that is null.
    pub latency_class: Option<i16>,
    /// Sum over counted spans; null when no span reports any.
    pub prompt_tokens: Option<i64>,
    /// Sum over counted spans; null when no span reports any.
    pub completion_tokens: Option<i64>,
    /// Sum of both.
    pub total_tokens: i64,
    /// Logarithmic class of `total_tokens`.
    pub token_class: i16,
    /// Pico-dollars.
    pub cost: Option<i64>,
    /// Logarithmic class of `cost`; null if that is null.
    pub cost_class: Option<i16>,
    /// JSON object of the tags; null if there are none.
    pub tags: Option<String>,
    /// Number of spans stored.
    pub span_count: i32,
    /// Time at which the trace becomes ready if no more spans arrive, microseconds.
    pub ready_at: i64,
    /// Set by the job that finds the trace ready; cleared by late spans.
    pub ready: bool,
    /// Values that JSON ingest sent for the whole trace, as JSON; null for OTLP.
    pub given: Option<String>,
    /// SHA-256 of the JSON item, to recognize an identical repetition; null for OTLP.
    pub digest: Option<Vec<u8>>,
    /// The text block that contains its input, output and metadata.
    pub body_id: Option<Uuid>,
    /// Index within that text block.
    pub body_index: i32,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds; the position from which the stream resumes.
    pub updated_at: i64,
    /// Whether the metrics count it. False only for traces stored before metrics existed.
    pub measured: bool,
    /// Whether the metrics count its tokens too. False for traces that an earlier version counted, and for uncounted ones.
    pub tokens_measured: bool,
    /// Label of its newest feedback: 0 neutral, 1 good, 2 bad; null without feedback.
    pub feedback: Option<i16>,
    /// Input tokens read from a cache: the sum over counted spans; null when none reports any.
    pub cached_input_tokens: Option<i64>,
    /// Input tokens written to a cache: the sum over counted spans; null when none reports any.
    pub cache_write_tokens: Option<i64>,
    /// Output tokens spent on reasoning: the sum over counted spans; null when none reports any.
    pub reasoning_tokens: Option<i64>,
    /// The text block with its input, if different from `body_id`.
    pub input_body_id: Option<Uuid>,
    /// Index within that text block.
    pub input_body_index: Option<i32>,
    /// The text block with its output, if different from `body_id`.
    pub output_body_id: Option<Uuid>,
    /// Index within that text block.
    pub output_body_index: Option<i32>,
    /// The code of a [`MissingRoot`].
    pub missing_root: i16,
}

/// Why a trace has no ended root span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingRoot {
    /// The root is not missing: it has ended, or the sender declares the trace complete.
    None,
    /// The root, or the parent of a stored span, has not ended or was not sent.
    Local,
    /// The only missing parents are in other processes, whose spans may be sent to another server or not at all.
    Remote,
}

impl MissingRoot {
    /// Returns the code in the database.
    pub const fn code(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Local => 1,
            Self::Remote => 2,
        }
    }

    /// Returns the value of a code.
    pub const fn of_code(code: i16) -> Self {
        match code {
            1 => Self::Local,
            2 => Self::Remote,
            _ => Self::None,
        }
    }
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
