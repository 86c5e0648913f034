//! Selects the spans that log records may complete, and keeps them as they were received.
//!
//! A span with input and output needs no log records: its own texts take precedence.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::{common::v1::InstrumentationScope, resource::v1::Resource, trace::v1::Span};
use prost::Message;

use super::{convert::STATUS_ERROR, logs::KeptSpans};
use crate::draft::{KeptTrace, SpanDraft};

/// Maximum size in bytes of an encoded span that is kept. A larger one has texts of its own.
const MAX_KEPT_SPAN_BYTES: usize = 64 * 1024;
/// Attributes by which spans of model calls, tools and agents are recognized.
const GENAI_ATTRIBUTES: &[&str] =
    &["gen_ai.operation.name", "gen_ai.system", "gen_ai.provider.name", "gen_ai.request.model"];

/// The spans of one scope that are kept.
#[derive(Default)]
pub(super) struct ScopeSpansToKeep {
    traces: BTreeMap<[u8; 16], Vec<Vec<u8>>>,
}

impl ScopeSpansToKeep {
    /// Returns the encoded span if it may have to be kept, before it is converted.
    pub(super) fn candidate(&self, span: &Span) -> Option<Vec<u8>> {
        let has_failed = span.status.as_ref().is_some_and(|it| it.code == STATUS_ERROR);
        let concerns_model = || span.attributes.iter().any(|it| GENAI_ATTRIBUTES.contains(&it.key.as_str()));
        (has_failed || concerns_model())
            .then(|| span.encode_to_vec())
            .filter(|it| it.len() <= MAX_KEPT_SPAN_BYTES)
    }

    /// Keeps a candidate if the converted span lacks a text, or if an exception may explain its error.
    pub(super) fn keep(&mut self, candidate: Option<Vec<u8>>, draft: &SpanDraft) {
        let Some(span) = candidate else { return };
        let is_complete = draft.input.is_some() && draft.output.is_some() && draft.error.is_none();
        if is_complete || draft.record.is_some() {
            return;
        }
        self.traces.entry(draft.trace_id).or_default().push(span);
    }

    /// Returns the kept spans of each trace.
    pub(super) fn into_traces(
        self,
        resource: Option<&Resource>,
        scope: Option<InstrumentationScope>,
    ) -> impl Iterator<Item = KeptTrace> {
        self.traces.into_iter().map(move |(trace_id, spans)| {
            let count = spans.len();
            let kept = KeptSpans { resource: resource.cloned(), scope: scope.clone(), spans };
            KeptTrace { trace_id, spans: count, data: kept.encode_to_vec() }
        })
    }
}
