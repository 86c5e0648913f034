//! Imports spans that Loupe exported: their records are validated like all other input.
//!
//! Nothing is priced, classified or added up again; a record contains the original results.

use std::collections::HashMap;

use api::Timestamp;
use entities::{event, span, trace};
use semantics::{
    draft::{EventDraft, SpanDraft},
    otlp::export::{Record, TraceRecord, object},
};
use store::{
    derived_id, otel_span_id,
    row_text::{label, row_text, tag_label},
    text_block::Entry,
    traces::bit_of,
};
use uuid::Uuid;

use super::{
    spans::Receipt,
    trace_item::MAX_TAGS,
    trace_rollup::{StoredHints, TraceValues},
};

/// Returns the ID of a draft's span.
pub fn id_of(draft: &SpanDraft) -> Uuid {
    let named = draft.record.as_ref().and_then(|it| it.id);
    named.unwrap_or_else(|| otel_span_id(Uuid::from_bytes(draft.trace_id), draft.span_id))
}

/// Returns the row and the texts of an exported span.
pub fn span(draft: SpanDraft, record: &Record, id: Uuid, receipt: Receipt) -> (span::Model, Entry) {
    let trace_id = Uuid::from_bytes(draft.trace_id);
    let started_at = clamp(draft.start_us.unwrap_or(receipt.now));
    let row = span::Model {
        tenant_id: receipt.tenant_id,
        // Assigned when the trace is stored.
        trace_key: 0,
        trace_id,
        id,
        parent_id: record.parent.or_else(|| draft.parent_span_id.map(|it| otel_span_id(trace_id, it))),
        name: row_text(draft.name),
        kind: without_nul(draft.span_type.into()),
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
        hints: record.hints.clone().and_then(stored_hints),
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

/// Creates the rows of the events of one span.
///
/// The ID of an event is derived from its content, so that it depends neither on the order of the events nor on
/// whether they are sent with their span or as log records.
#[derive(Debug)]
pub struct EventRows {
    tenant_id: Uuid,
    trace_id: Uuid,
    span_id: Uuid,
    /// How often an ID occurred.
    repetitions: HashMap<Uuid, u32>,
}

impl EventRows {
    /// Creates the rows of a span, which is given by the IDs of its trace and its own.
    pub fn of_span(tenant_id: Uuid, (trace_id, span_id): (Uuid, Uuid)) -> Self {
        Self { tenant_id, trace_id, span_id, repetitions: HashMap::new() }
    }

    /// Returns the row of an event. An event without a time has the `fallback`.
    pub fn row(&mut self, draft: EventDraft, fallback: i64) -> event::Model {
        let id = draft.record.is_none().then(|| self.derived_id(&draft));
        let EventDraft { time_us, message, level, metadata, record } = draft;
        let has_metadata = metadata != "{}" || record.as_ref().is_some_and(|it| it.metadata.is_some());
        let (id, span_id) = match &record {
            Some(it) if it.stray => (it.id, it.span),
            Some(it) => (it.id, Some(self.span_id)),
            None => (id.unwrap_or_default(), Some(self.span_id)),
        };
        event::Model {
            tenant_id: self.tenant_id,
            trace_id: self.trace_id,
            id,
            span_id,
            message,
            level: record.map_or_else(|| level.to_owned(), |it| without_nul(it.level)),
            metadata: has_metadata.then_some(metadata),
            created_at: clamp(time_us.unwrap_or(fallback)),
        }
    }

    fn derived_id(&mut self, draft: &EventDraft) -> Uuid {
        let EventDraft { time_us, message, level, metadata, record: _ } = draft;
        let time = time_us.unwrap_or_default();
        let id =
            derived_id(self.span_id, &format!("event:{time}:{level}:{}:{message}{metadata}", message.len()));
        let repetitions = self.repetitions.entry(id).or_default();
        *repetitions += 1;
        if *repetitions == 1 { id } else { derived_id(id, &repetitions.to_string()) }
    }
}

/// Applies the values that were sent for the whole trace; returns the trace's own texts, if any.
pub fn trace(row: &mut trace::Model, record: TraceRecord) -> Option<Entry> {
    let TraceRecord { given: values, input, output, metadata } = record;
    let values: TraceValues = serde_json::from_value(values).ok()?;
    let own = values.own_texts.then(|| Entry {
        input: input.map(without_nul),
        output: output.map(without_nul),
        metadata: metadata.and_then(object),
        ..Entry::default()
    });
    let values = TraceValues {
        name: values.name.map(|it| label(&without_nul(it))),
        model: values.model.map(|it| label(&without_nul(it))),
        error: values.error.map(|it| row_text(without_nul(it))),
        session_id: values.session_id.map(|it| label(&without_nul(it))),
        user_id: values.user_id.map(|it| label(&without_nul(it))),
        external_id: values.external_id.map(|it| label(&without_nul(it))),
        latency_ms: values.latency_ms.filter(|it| *it >= 0),
        cost: values.cost.filter(|it| *it >= 0),
        started_at: values.started_at.map(clamp),
        ended_at: values.ended_at.map(clamp),
        tags: tags(values.tags),
        own_texts: values.own_texts,
        missing_texts: own.as_ref().and_then(Entry::missing),
    };
    row.given = serde_json::to_string(&values).ok();
    own
}

fn stored_hints(sent: serde_json::Value) -> Option<String> {
    let sent: StoredHints = serde_json::from_value(sent).ok()?;
    let hints = StoredHints {
        name: sent.name.map(|it| label(&without_nul(it))),
        session_id: sent.session_id.map(|it| label(&without_nul(it))),
        user_id: sent.user_id.map(|it| label(&without_nul(it))),
        external_id: sent.external_id.map(|it| label(&without_nul(it))),
        tags: tags(sent.tags),
        complete: sent.complete,
        has_remote_parent: sent.has_remote_parent,
    };
    (hints != StoredHints::default()).then(|| serde_json::to_string(&hints).unwrap_or_default())
}

type Tags = std::collections::BTreeMap<String, String>;

fn tags(sent: Tags) -> Tags {
    sent.into_iter()
        .filter(|it| !it.0.is_empty())
        .take(MAX_TAGS)
        .map(|(key, value)| (tag_label(&without_nul(key)), tag_label(&without_nul(value))))
        .collect()
}

fn clamp(micros: i64) -> i64 {
    Timestamp::from_micros(micros).micros()
}

/// Replaces NUL, which PostgreSQL cannot store in a text, by U+FFFD.
fn without_nul(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}
