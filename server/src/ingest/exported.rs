//! Imports spans that Loupe exported: their records are validated like all other input.
//!
//! Nothing is priced, classified or added up again; a record contains the original results.

use api::Timestamp;
use entities::{event, span, trace};
use semantics::{
    draft::{EventDraft, SpanDraft},
    otlp::export::{Record, TraceRecord, object},
};
use store::{
    derived_id,
    row_text::{label, row_text, tag_label},
    text_block::Entry,
    traces::bit_of,
};
use uuid::Uuid;

use super::{
    item::MAX_TAGS,
    part::{Hints, TraceValues},
    spans::{Receipt, span_id},
};

/// Returns the ID of a draft's span.
pub fn id_of(draft: &SpanDraft) -> Uuid {
    let named = draft.record.as_ref().and_then(|it| it.id);
    named.unwrap_or_else(|| span_id(Uuid::from_bytes(draft.trace_id), draft.span_id))
}

/// Returns the row and the texts of an exported span.
pub fn span(draft: SpanDraft, record: &Record, id: Uuid, receipt: Receipt) -> (span::Model, Entry) {
    let trace_id = Uuid::from_bytes(draft.trace_id);
    let started_at = clamp(draft.start_us.unwrap_or(receipt.now));
    let row = span::Model {
        tenant_id: receipt.tenant_id,
        trace_id,
        id,
        parent_id: record.parent.or_else(|| draft.parent_span_id.map(|it| span_id(trace_id, it))),
        name: row_text(draft.name),
        kind: clean(draft.span_type.into()),
        model: draft.model,
        started_at,
        ended_at: draft.end_us.map(clamp),
        latency_ms: record.latency_ms.filter(|it| *it >= 0),
        error: draft.error.map(row_text),
        failure: draft.failure.map(bit_of),
        prompt_tokens: draft.usage.prompt,
        completion_tokens: draft.usage.completion,
        cost: record.cost.filter(|it| *it >= 0),
        counted: true,
        cost_counted: true,
        response_hash: record.response,
        // A span with an ID of its own was not received over OpenTelemetry originally.
        otel_span_id: record.id.is_none().then(|| draft.span_id.to_vec()),
        hints: record.hints.clone().and_then(hints),
        body_id: None,
        body_index: 0,
        created_at: receipt.now,
        cached_input_tokens: draft.usage.cached,
        cache_write_tokens: draft.usage.cache_write,
        reasoning_tokens: draft.usage.reasoning,
        missing_texts: None,
    };
    let entry = Entry {
        input: draft.input,
        output: draft.output,
        metadata: (draft.metadata != "{}" || record.empty_metadata).then_some(draft.metadata),
        trace_input: draft.trace_input,
        trace_output: draft.trace_output,
    };
    (row, entry)
}

/// Returns the row of an event of the span `span`, the `i`th in the order sent.
pub fn event(
    draft: EventDraft,
    i: usize,
    trace_id: Uuid,
    span: Uuid,
    fallback: i64,
    tenant_id: Uuid,
) -> event::Model {
    let record = draft.record;
    let has_metadata = draft.metadata != "{}" || record.as_ref().is_some_and(|it| it.metadata.is_some());
    let (id, span_id) = match &record {
        Some(it) if it.stray => (it.id, it.span),
        Some(it) => (it.id, Some(span)),
        None => (derived_id(span, &format!("event:{i}")), Some(span)),
    };
    event::Model {
        tenant_id,
        trace_id,
        id,
        span_id,
        message: draft.message,
        level: record.map_or_else(|| draft.level.to_owned(), |it| clean(it.level)),
        metadata: has_metadata.then_some(draft.metadata),
        created_at: clamp(draft.time_us.unwrap_or(fallback)),
    }
}

/// Applies the values that were sent for the whole trace; returns the trace's own texts, if any.
pub fn trace(row: &mut trace::Model, record: TraceRecord) -> Option<Entry> {
    let TraceRecord { given, input, output, metadata } = record;
    let given: TraceValues = serde_json::from_value(given).ok()?;
    let own = given.own_texts.then(|| Entry {
        input: input.map(clean),
        output: output.map(clean),
        metadata: metadata.and_then(object),
        ..Entry::default()
    });
    let given = TraceValues {
        name: given.name.map(|it| label(&clean(it))),
        model: given.model.map(|it| label(&clean(it))),
        error: given.error.map(|it| row_text(clean(it))),
        session_id: given.session_id.map(|it| label(&clean(it))),
        user_id: given.user_id.map(|it| label(&clean(it))),
        external_id: given.external_id.map(|it| label(&clean(it))),
        latency_ms: given.latency_ms.filter(|it| *it >= 0),
        cost: given.cost.filter(|it| *it >= 0),
        started_at: given.started_at.map(clamp),
        ended_at: given.ended_at.map(clamp),
        tags: tags(given.tags),
        own_texts: given.own_texts,
        missing_texts: own.as_ref().and_then(Entry::missing),
    };
    row.given = serde_json::to_string(&given).ok();
    own
}

fn hints(sent: serde_json::Value) -> Option<String> {
    let sent: Hints = serde_json::from_value(sent).ok()?;
    let hints = Hints {
        name: sent.name.map(|it| label(&clean(it))),
        session_id: sent.session_id.map(|it| label(&clean(it))),
        user_id: sent.user_id.map(|it| label(&clean(it))),
        external_id: sent.external_id.map(|it| label(&clean(it))),
        tags: tags(sent.tags),
        complete: sent.complete,
    };
    (hints != Hints::default()).then(|| serde_json::to_string(&hints).unwrap_or_default())
}

type Tags = std::collections::BTreeMap<String, String>;

fn tags(sent: Tags) -> Tags {
    sent.into_iter()
        .filter(|it| !it.0.is_empty())
        .take(MAX_TAGS)
        .map(|(key, value)| (tag_label(&clean(key)), tag_label(&clean(value))))
        .collect()
}

fn clamp(micros: i64) -> i64 {
    Timestamp::from_micros(micros).micros()
}

/// Replaces NUL, which PostgreSQL can't store in a text, by U+FFFD.
fn clean(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}
