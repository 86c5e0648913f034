//! Selects the spans that log records may complete, and holds them as they were received.
//!
//! Instrumentations send all messages of a call in the same way. So a span that has an input or an output, and has not failed,
//! is not held: its own texts take precedence.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use opentelemetry_proto::tonic::{common::v1::InstrumentationScope, resource::v1::Resource, trace::v1::Span};
use prost::Message;

use super::{convert::STATUS_ERROR, logs::SpanToJoin, weight};
use crate::draft::{HeldSpan, SpanDraft};

/// Maximum size in bytes of an encoded span that is held. Larger ones have most of their texts.
const MAX_SPAN_BYTES: usize = 256 * 1024;
/// Maximum size in bytes of an encoded resource and scope. They are stored with each span.
const MAX_SCOPE_BYTES: usize = 16 * 1024;
/// Attributes by which spans of model calls, tools and agents are recognized.
const GENAI_ATTRIBUTES: &[&str] = &[
    "gen_ai.operation.name",
    "gen_ai.system",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "openinference.span.kind",
    "traceloop.span.kind",
    "llm.request.type",
    "ai.operationId",
];

/// Beginnings of the names of attributes with messages. A span with one of them is neither encoded nor held, unless it failed.
const TEXT_ATTRIBUTES: &[&str] = &[
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.prompt.",
    "gen_ai.completion.",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
    "input.value",
    "output.value",
    "llm.input_messages",
    "llm.output_messages",
    "traceloop.entity.input",
    "traceloop.entity.output",
    "ai.prompt",
    "ai.response.text",
    "langfuse.observation.input",
    "langfuse.observation.output",
];

/// Holds the spans of one scope.
pub(super) struct ScopeHolder {
    /// The encoded resource and scope; `None` if they are too large.
    shared: Option<Arc<[u8]>>,
}

impl ScopeHolder {
    pub(super) fn new(resource: Option<&Resource>, scope: Option<&InstrumentationScope>) -> Self {
        let size = resource.map_or(0, Message::encoded_len) + scope.map_or(0, Message::encoded_len);
        let encode = || SpanToJoin::scope_of(resource, scope).encode_to_vec().into();
        Self { shared: (size <= MAX_SCOPE_BYTES).then(encode) }
    }

    /// Returns the encoded span if it may have to be held, before it is converted.
    pub(super) fn candidate(&self, span: &Span) -> Option<Vec<u8>> {
        let has_failed = span.status.as_ref().is_some_and(|it| it.code == STATUS_ERROR);
        let concerns_model = || span.attributes.iter().any(|it| GENAI_ATTRIBUTES.contains(&it.key.as_str()));
        let is_text = |key: &str| TEXT_ATTRIBUTES.iter().any(|it| key.starts_with(it));
        let has_texts = || span.attributes.iter().any(|it| is_text(&it.key));
        let is_candidate = self.shared.is_some()
            && (has_failed || concerns_model() && !has_texts())
            && span.encoded_len() <= MAX_SPAN_BYTES;
        is_candidate.then(|| span.encode_to_vec())
    }

    /// Returns a candidate to hold if the converted span has no texts, or if an exception may explain its error.
    pub(super) fn hold(&self, candidate: Option<Vec<u8>>, draft: &SpanDraft) -> Option<HeldSpan> {
        let has_texts = draft.input.is_some() || draft.output.is_some();
        if (has_texts && draft.error.is_none()) || draft.record.is_some() {
            return None;
        }
        let (trace_id, span_id) = (draft.trace_id, draft.span_id);
        Some(HeldSpan { trace_id, span_id, shared: Arc::clone(self.shared.as_ref()?), span: candidate? })
    }
}

/// Keeps one held span of each ID. Of spans with one ID, the first one is stored. If they differ, it may be another one than
/// the held one, so none is kept.
pub(super) fn retain_unique(held: &mut Vec<HeldSpan>, spans: &[SpanDraft]) {
    if held.is_empty() {
        return;
    }
    let mut copies: HashMap<([u8; 16], [u8; 8]), usize> = HashMap::with_capacity(held.len());
    for span in spans {
        *copies.entry((span.trace_id, span.span_id)).or_default() += 1;
    }
    // The first held span of each ID, and the number of held spans that are equal to it.
    let mut firsts: HashMap<([u8; 16], [u8; 8]), (HeldSpan, usize)> = HashMap::with_capacity(held.len());
    let mut ids = Vec::with_capacity(held.len());
    for span in held.drain(..) {
        let id = (span.trace_id, span.span_id);
        match firsts.entry(id) {
            Entry::Vacant(entry) => {
                ids.push(id);
                entry.insert((span, 1));
            }
            Entry::Occupied(mut entry) => {
                let (first, equal) = entry.get_mut();
                *equal += usize::from(*first == span);
            }
        }
    }
    for id in ids {
        if let Some((span, equal)) = firsts.remove(&id)
            && copies.get(&id) == Some(&equal)
        {
            held.push(span);
        }
    }
}

impl HeldSpan {
    /// Returns the span with its resource and scope, in the form that [`super::LogJoin`] reads.
    pub fn data(&self) -> Vec<u8> {
        // Encoded messages of one type merge when they are concatenated.
        let mut data = self.shared.to_vec();
        SpanToJoin::of_span(self.span.clone()).encode_raw(&mut data);
        data
    }
}

/// Returns the memory in bytes of decoded data of [`HeldSpan::data`], without texts.
pub fn decoded_span_bytes(data: &[u8]) -> usize {
    weight::decoded_bytes_of_held_span(data)
}
