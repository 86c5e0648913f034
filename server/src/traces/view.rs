//! Converts rows and texts of traces, spans and events to wire types.

use api::{
    SpanType, Timestamp, TraceState, UsageDetails,
    trace::{Event, RawObject, Span, Trace},
};
use entities::{
    event, span,
    trace::{self, MissingRoot},
};
use semantics::money;
use serde_json::value::RawValue;
use store::traces::{SpanTexts, Texts, failure_of};

use crate::ingest::{object_text::ObjectText, trace_rollup::usage_details};

/// Maximum length of a text in a preview, in characters.
const PREVIEW_CHARS: usize = 2_048;

/// Returns a trace as in list responses.
pub fn trace(row: trace::Model, texts: Texts, preview: bool) -> Trace {
    let trace::Model {
        tenant_id: _,
        key: _,
        id,
        project_id,
        external_id,
        session_id,
        user_id,
        name,
        model,
        error,
        failure_types: _,
        started_at,
        ended_at,
        latency_ms,
        latency_class: _,
        prompt_tokens,
        completion_tokens,
        total_tokens,
        token_class: _,
        cost,
        cost_class: _,
        tags,
        span_count,
        ready_at,
        ready,
        given: _,
        digest: _,
        body_id: _,
        body_index: _,
        created_at: _,
        updated_at,
        measured: _,
        tokens_measured: _,
        feedback: _,
        cached_input_tokens,
        cache_write_tokens,
        reasoning_tokens,
        input_body_id: _,
        input_body_index: _,
        output_body_id: _,
        output_body_index: _,
        missing_root,
    } = row;
    let tag_map: std::collections::BTreeMap<String, String> =
        tags.as_deref().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let mut tags: Vec<String> = tag_map
        .iter()
        .map(|(key, value)| if value.is_empty() { key.clone() } else { format!("{key}:{value}") })
        .collect();
    tags.sort_unstable();
    // The readiness job sets the flag a moment later.
    let ready = ready || ready_at <= updated_at;
    let cut = |text: Option<String>| if preview { text.map(first_characters) } else { text };
    Trace {
        id,
        project_id,
        external_id,
        session_id,
        user_id,
        name,
        input: cut(texts.input),
        output: cut(texts.output),
        error,
        model,
        started_at: Timestamp::from_micros(started_at),
        ended_at: ended_at.map(Timestamp::from_micros),
        latency_ms,
        cost: cost.map(money::to_usd),
        total_token_count: total_tokens,
        prompt_tokens_total: prompt_tokens,
        completion_tokens_total: completion_tokens,
        usage_details: UsageDetails { cached_input_tokens, cache_write_tokens, reasoning_tokens }.reported(),
        tags,
        tag_map,
        metadata: raw(texts.metadata.unwrap_or_else(no_members)),
        span_count: i64::from(span_count),
        state: match (MissingRoot::of_code(missing_root), ready) {
            (MissingRoot::None, _) | (MissingRoot::Remote, true) => TraceState::Complete,
            (MissingRoot::Local | MissingRoot::Remote, false) => TraceState::Running,
            (MissingRoot::Local, true) => TraceState::Interrupted,
        },
        ready,
        control_loop_depth: None,
        spans: None,
        spans_next_cursor: None,
        events: None,
    }
}

/// Returns a span of the trace detail.
pub fn span(row: span::Model, texts: SpanTexts) -> Span {
    let details = usage_details(&row);
    let span::Model {
        tenant_id,
        trace_key: _,
        trace_id,
        id,
        parent_id,
        name,
        kind,
        model,
        started_at,
        ended_at,
        latency_ms,
        error,
        failure,
        prompt_tokens,
        completion_tokens,
        cost,
        counted,
        cost_counted,
        response_hash: _,
        otel_span_id,
        hints: _,
        body_id: _,
        body_index: _,
        created_at,
        cached_input_tokens: _,
        cache_write_tokens: _,
        reasoning_tokens: _,
        missing_texts: _,
    } = row;
    let mut metadata = texts.metadata;
    // Usage that another span reports already is kept in the metadata, where it is not added up.
    let has_tokens = prompt_tokens.is_some() || completion_tokens.is_some() || details.reported().is_some();
    let repeated_tokens = !counted && has_tokens;
    let repeated_cost = !cost_counted && cost.is_some();
    if repeated_tokens || repeated_cost {
        let mut usage = serde_json::Map::new();
        if repeated_tokens {
            usage.extend(prompt_tokens.map(|it| ("prompt_tokens".to_owned(), it.into())));
            usage.extend(completion_tokens.map(|it| ("completion_tokens".to_owned(), it.into())));
            let details = details.counts().into_iter();
            usage.extend(details.filter_map(|(name, count)| Some((name.to_owned(), count?.into()))));
        }
        if repeated_cost {
            usage.extend(cost.map(|it| ("cost".to_owned(), money::to_usd(it).into())));
        }
        metadata = Some(ObjectText::with(metadata, "usage", &usage));
    }
    // A span sent as JSON has ended when it is received; a span of OpenTelemetry may still be running.
    let received = otel_span_id.is_none().then(|| created_at.max(started_at));
    let otel_span_id = otel_span_id.map(|it| it.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    Span {
        id,
        trace_id,
        tenant_id,
        created_at: Timestamp::from_micros(created_at),
        name,
        kind: SpanType::from(kind),
        parent_span_id: parent_id,
        input: texts.input,
        output: texts.output,
        model,
        latency_ms,
        cost: cost.filter(|_| cost_counted).map(money::to_usd),
        error,
        failure_type: failure.and_then(failure_of).map(|it| it.as_str().to_owned()),
        prompt_tokens: prompt_tokens.filter(|_| counted),
        completion_tokens: completion_tokens.filter(|_| counted),
        usage_details: details.reported().filter(|_| counted),
        metadata: metadata.and_then(raw),
        start_time: Timestamp::from_micros(started_at),
        end_time: ended_at.or(received).map(Timestamp::from_micros),
        otel_trace_id: otel_span_id.is_some().then(|| trace_id.simple().to_string()),
        otel_span_id,
    }
}

/// Returns an event of the trace detail.
pub fn event(row: event::Model) -> Event {
    let event::Model { tenant_id: _, trace_id: _, id, span_id, message, level, metadata, created_at } = row;
    Event {
        id,
        span_id,
        message,
        level,
        metadata: metadata.and_then(raw),
        created_at: Timestamp::from_micros(created_at),
    }
}

fn no_members() -> String {
    "{}".to_owned()
}

fn raw(json: String) -> Option<RawObject> {
    RawValue::from_string(json).ok()
}

fn first_characters(text: String) -> String {
    match text.char_indices().nth(PREVIEW_CHARS) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}
