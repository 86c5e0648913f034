//! Converts OTLP drafts to chunks.

use std::collections::{HashMap, HashSet};

use entities::{
    span,
    trace::{self, MissingRoot},
};
use semantics::{
    cost::{CostInput, span_cost},
    draft::{HeldSpan, SpanDraft, TraceHints},
    otlp::decoded_span_bytes,
};
use store::{
    held_input::{self, HeldFor},
    otel_span_id,
    row_text::{label, row_text, tag_label},
    text_block::Entry,
    text_hash,
    traces::{TraceChunk, bit_of},
};
use uuid::Uuid;

use super::{
    exported_spans::{self, EventRows},
    object_text::ObjectText,
    prices::PriceBook,
    text_bodies::pack_texts,
    trace_item::MAX_TAGS,
    trace_rollup::{StoredHints, roll_up},
};
use crate::ingest::external_evaluations;

/// The destination of the spans and their time of receipt.
#[derive(Clone, Copy, Debug)]
pub struct Receipt {
    /// The key's tenant.
    pub tenant_id: Uuid,
    /// The project of new traces.
    pub project_id: Uuid,
    /// Microseconds.
    pub now: i64,
}

/// Groups drafts by trace and creates one chunk of each. Duplicate spans are dropped.
///
/// # Errors
///
/// Fails when the texts cannot be compressed.
pub fn to_chunks(
    drafts: Vec<SpanDraft>,
    receipt: Receipt,
    prices: &PriceBook,
) -> std::io::Result<Vec<TraceChunk>> {
    let mut groups: Vec<Vec<SpanDraft>> = Vec::new();
    let mut group_of_trace: HashMap<[u8; 16], usize> = HashMap::new();
    for draft in drafts {
        let at = *group_of_trace.entry(draft.trace_id).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[at].push(draft);
    }
    groups.into_iter().map(|drafts| trace_chunk(drafts, receipt, prices)).collect()
}

/// Adds the spans that log records may complete to the chunks of their traces, in the form in which they are held.
///
/// # Errors
///
/// Fails when the compressor runs out of memory.
pub fn hold_spans(chunks: &mut [TraceChunk], held: &[HeldSpan], receipt: Receipt) -> std::io::Result<()> {
    if held.is_empty() {
        return Ok(());
    }
    let indexes: HashMap<Uuid, usize> = chunks.iter().enumerate().map(|(i, it)| (it.trace.id, i)).collect();
    let Receipt { tenant_id, project_id, now } = receipt;
    let held_for = HeldFor { tenant_id, project_id, now };
    for span in held {
        let trace_id = Uuid::from_bytes(span.trace_id);
        let Some(index) = indexes.get(&trace_id) else { continue };
        let (id, data) = (otel_span_id(trace_id, span.span_id), span.data());
        let row = held_input::span_row(held_for, (trace_id, id), &data, decoded_span_bytes(&data))?;
        chunks[*index].held.push(row);
    }
    Ok(())
}

fn trace_chunk(
    mut drafts: Vec<SpanDraft>,
    receipt: Receipt,
    prices: &PriceBook,
) -> std::io::Result<TraceChunk> {
    let trace_id = drafts.first().map_or(Uuid::nil(), |it| Uuid::from_bytes(it.trace_id));
    // Lists show the root's texts, so these come first in the block and are decompressed alone.
    drafts.sort_by_key(|it| it.parent_span_id.is_some());
    let (mut seen, mut ids) = (HashSet::with_capacity(drafts.len()), Vec::with_capacity(drafts.len()));
    drafts.retain(|it| {
        let id = exported_spans::id_of(it);
        let is_new = seen.insert(id);
        ids.extend(is_new.then_some(id));
        is_new
    });

    let mut trace = empty_trace(receipt, trace_id);
    let mut own_texts = None;
    let mut spans = Vec::with_capacity(drafts.len());
    let mut entries = Vec::with_capacity(drafts.len());
    let mut events = Vec::new();
    let mut event_ids = HashSet::new();
    let mut evaluations = Vec::new();
    for (mut draft, id) in drafts.into_iter().zip(ids) {
        let (owner, span_key) = ((receipt.tenant_id, receipt.project_id), (trace_id, id));
        evaluations.extend(external_evaluations::rows(&draft.evaluations, owner, span_key, receipt.now));
        let end = draft.end_us.unwrap_or(receipt.now);
        let mut rows = EventRows::of_span(receipt.tenant_id, span_key);
        for it in draft.events.drain(..) {
            let event = rows.row(it, end);
            // A record may contain a duplicate ID.
            if event_ids.insert(event.id) {
                events.push(event);
            }
        }
        let mut record = draft.record.take();
        if let Some(given) = record.as_mut().and_then(|it| it.trace.take()).filter(|_| trace.given.is_none())
        {
            own_texts = exported_spans::trace(&mut trace, given);
        }
        let (row, entry) = match record {
            Some(record) if record.carrier => continue,
            Some(record) => exported_spans::span(draft, &record, id, receipt),
            None => span_row(draft, id, trace_id, receipt, prices),
        };
        spans.push(row);
        entries.push(entry);
    }
    let bodies = pack_texts((&mut trace, own_texts.as_ref()), (&mut spans, &entries), receipt.tenant_id)?;
    roll_up(&mut trace, &mut spans, receipt.now);
    Ok(TraceChunk { spans, events, bodies, evaluations, ..TraceChunk::of(trace) })
}

/// Returns an empty row of a trace.
pub fn empty_trace(receipt: Receipt, id: Uuid) -> trace::Model {
    trace::Model {
        tenant_id: receipt.tenant_id,
        // The transaction that stores the trace assigns it.
        key: 0,
        id,
        project_id: receipt.project_id,
        external_id: None,
        session_id: None,
        user_id: None,
        name: None,
        model: None,
        error: None,
        failure_types: 0,
        started_at: receipt.now,
        ended_at: None,
        latency_ms: None,
        latency_class: None,
        prompt_tokens: None,
        completion_tokens: None,
        total_tokens: 0,
        token_class: 0,
        cost: None,
        cost_class: None,
        tags: None,
        span_count: 0,
        ready_at: receipt.now,
        ready: false,
        given: None,
        digest: None,
        body_id: None,
        body_index: 0,
        created_at: receipt.now,
        updated_at: receipt.now,
        measured: true,
        tokens_measured: true,
        feedback: None,
        cached_input_tokens: None,
        cache_write_tokens: None,
        reasoning_tokens: None,
        input_body_id: None,
        input_body_index: None,
        output_body_id: None,
        output_body_index: None,
        missing_root: MissingRoot::None.code(),
    }
}

fn span_row(
    draft: SpanDraft,
    id: Uuid,
    trace_id: Uuid,
    receipt: Receipt,
    prices: &PriceBook,
) -> (span::Model, Entry) {
    let started_at = draft.start_us.or(draft.end_us).unwrap_or(receipt.now);
    let mut metadata = ObjectText::from(draft.metadata);
    let cost = span_cost(
        &CostInput {
            is_llm: draft.span_type == api::SpanType::Llm,
            metadata_cost_usd: metadata_cost(metadata.as_str()),
            own_cost: draft.sent_cost,
            model: draft.model.as_deref(),
            request_model: draft.request_model.as_deref(),
            usage: &draft.usage,
        },
        |model| prices.find(model),
    );
    if let Some(cost) = &cost {
        metadata.set("cost_details", &cost.details);
    }
    let row = span::Model {
        tenant_id: receipt.tenant_id,
        // Assigned when the trace is stored.
        trace_key: 0,
        trace_id,
        id,
        parent_id: draft.parent_span_id.map(|it| otel_span_id(trace_id, it)),
        name: row_text(draft.name),
        kind: draft.span_type.into(),
        model: draft.model,
        started_at,
        ended_at: draft.end_us,
        latency_ms: draft.end_us.map(|end| (end.saturating_sub(started_at) / 1_000).max(0)),
        error: draft.error.map(row_text),
        failure: draft.failure.map(bit_of),
        prompt_tokens: draft.usage.prompt,
        completion_tokens: draft.usage.completion,
        cost: cost.map(|it| it.pico),
        counted: true,
        cost_counted: true,
        response_hash: draft.response_id.as_deref().map(text_hash),
        otel_span_id: Some(draft.span_id.to_vec()),
        hints: hints(draft.hints),
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
        metadata: metadata.into_nonempty(),
        trace_input: draft.trace_input,
        trace_output: draft.trace_output,
    };
    (row, entry)
}

fn hints(sent: TraceHints) -> Option<String> {
    let hints = StoredHints {
        name: sent.name.as_deref().map(label),
        session_id: sent.session_id.as_deref().map(label),
        user_id: sent.user_id.as_deref().map(label),
        external_id: sent.external_id.as_deref().map(label),
        tags: sent
            .tags
            .iter()
            .take(MAX_TAGS)
            .map(|(key, value)| (tag_label(key), tag_label(value)))
            .collect(),
        complete: sent.complete,
        has_remote_parent: sent.has_remote_parent,
    };
    (hints != StoredHints::default()).then(|| serde_json::to_string(&hints).unwrap_or_default())
}

/// Returns `cost_usd` of a metadata object, which is parsed only if it may contain it.
pub fn metadata_cost(metadata: &str) -> Option<f64> {
    #[derive(serde::Deserialize)]
    struct Priced {
        cost_usd: Option<serde_json::Value>,
    }
    if !metadata.contains("\"cost_usd\"") {
        return None;
    }
    match serde_json::from_str::<Priced>(metadata).ok()?.cost_usd? {
        serde_json::Value::Number(number) => number.as_f64(),
        serde_json::Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
