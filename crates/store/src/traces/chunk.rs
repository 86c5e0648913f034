//! The rows of one chunk, and the encoding of values in them.

use std::collections::BTreeMap;

use api::FailureType;
use entities::{body, evaluation, event, span, trace, trace_tag};
use semantics::rollup::FailureSet;

use crate::vectors::VectorRow;

/// The rows of a chunk.
#[derive(Debug)]
pub struct TraceChunk {
    /// The trace's row as it is stored if the trace is new.
    pub trace: trace::Model,
    /// The spans, with unique IDs.
    pub spans: Vec<span::Model>,
    /// The events, with unique IDs.
    pub events: Vec<event::Model>,
    /// The text blocks of the spans.
    pub bodies: Vec<body::Model>,
    /// Vectors sent with the spans.
    pub vectors: Vec<VectorRow>,
    /// External evaluations sent with the spans.
    pub evaluations: Vec<evaluation::Model>,
}

impl TraceChunk {
    /// Returns whether the chunk came through JSON ingest, where a known trace is refused and not merged.
    pub fn is_item(&self) -> bool {
        self.trace.digest.is_some()
    }
}

/// Returns the rows of the trace's tags.
pub fn tag_rows(trace: &trace::Model) -> Vec<trace_tag::Model> {
    let tags: BTreeMap<String, String> =
        trace.tags.as_deref().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    tags.into_iter()
        .map(|(key, value)| trace_tag::Model {
            tenant_id: trace.tenant_id,
            key,
            value,
            started_at: trace.started_at,
            trace_id: trace.id,
        })
        .collect()
}

/// Returns the failure type of a stored bit.
pub fn failure_of(bit: i16) -> Option<FailureType> {
    FailureType::ALL.iter().copied().find(|it| bit_of(*it) == bit)
}

/// Returns the bit that stands for a failure type in rows.
pub fn bit_of(failure: FailureType) -> i16 {
    i16::from(FailureSet::from(failure).bits())
}
