//! Reading traces.

use std::sync::Arc;

use api::{
    ErrorCode, FailureType, SpanType, Timestamp,
    trace::{Event, RawObject, Span, SpanList, Trace, TraceList},
};
use axum::{
    Json,
    extract::{Path, State},
};
use entities::{event, span, trace};
use semantics::money;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::query::{Query, invalid, path_id};
use crate::{
    access::Caller,
    app::App,
    error::{Result, not_found, problem},
    ingest::{part::failure_of, spans::splice},
    store::traces::{self as store, Filter, SpanTexts, Tag, Texts},
};

/// Spans that the detail carries at most; the rest is paged.
const DETAIL_SPANS: usize = 2_000;
/// Events that the detail carries at most.
const DETAIL_EVENTS: u64 = 2_000;
/// Tags that a list can be narrowed by at once.
const MAX_TAG_FILTERS: usize = 20;
/// Bytes of text after which a page of spans ends early.
const SPAN_BYTES: usize = 16 * 1024 * 1024;
/// Spans whose texts are read at once.
const SPAN_BLOCK: usize = 250;
/// Characters that a preview keeps of a text.
const PREVIEW: usize = 2_048;

/// List traces, newest first.
///
/// All filters must match. A page may end early, with `has_more`, when its texts are large or
/// when words are looked for.
#[utoipa::path(get, path = "/v1/traces", tag = "Traces", params(
    ("project_id" = Option<Uuid>, Query, description = "of this project"),
    ("model" = Option<String>, Query, description = "of this model, exactly"),
    ("error" = Option<bool>, Query, description = "ended in an error, or did not"),
    ("failure_type" = Option<String>, Query, description = "a span failed so: timeout, rate_limit, invalid_response, context_length"),
    ("from" = Option<Timestamp>, Query, description = "started then or later"),
    ("to" = Option<Timestamp>, Query, description = "started then or earlier"),
    ("latency_min" = Option<u64>, Query, description = "milliseconds, inclusive"),
    ("latency_max" = Option<u64>, Query, description = "milliseconds, inclusive"),
    ("token_count_min" = Option<u64>, Query, description = "tokens, inclusive"),
    ("token_count_max" = Option<u64>, Query, description = "tokens, inclusive"),
    ("min_cost" = Option<f64>, Query, description = "US dollars, inclusive"),
    ("max_cost" = Option<f64>, Query, description = "US dollars, inclusive"),
    ("tag_key" = Option<String>, Query, description = "with this tag; needs tag_value"),
    ("tag_value" = Option<String>, Query, description = "and this value; needs tag_key"),
    ("tag" = Option<Vec<String>>, Query, description = "`key` or `key:value`; repeated, all must match"),
    ("session_id" = Option<String>, Query, description = "of this conversation"),
    ("user_id" = Option<String>, Query, description = "of this end user"),
    ("name" = Option<String>, Query, description = "of this name, exactly"),
    ("external_id" = Option<String>, Query, description = "the caller's own name for it"),
    ("q" = Option<String>, Query, description = "words in name, error, input or output, whatever the case; looks through the newest 2,000 in range a page"),
    ("preview" = Option<bool>, Query, description = "cut texts at 2,048 characters"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = TraceList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<TraceList>> {
    let filter = filter(&query)?;
    let limit = query.limit()?;
    let preview = query.boolean("preview")?.unwrap_or(false);
    let scope = scope(&filter);
    let after = query.get("cursor").map(|it| app.cursors.open(caller.tenant_id, &scope, it)).transpose()?;
    let page = store::page(&app.db, caller.tenant_id, &filter, after, limit).await?;
    let next_cursor = page.next.map(|it| app.cursors.seal(caller.tenant_id, &scope, it));
    Ok(Json(TraceList {
        traces: page.rows.into_iter().map(|(row, texts)| wire(row, texts, preview)).collect(),
        has_more: next_cursor.is_some(),
        next_cursor,
    }))
}

/// Show one trace with its spans and events.
///
/// The id may be the 32 hexadecimal digits of an OpenTelemetry trace id. Beyond 2,000 spans
/// the answer carries the first 2,000 and `spans_next_cursor`.
#[utoipa::path(get, path = "/v1/traces/{id}", tag = "Traces", params(("id" = String, Path, description = "id of the trace")),
    responses((status = 200, body = Trace)))]
pub async fn detail(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Trace>> {
    let (tenant, id) = (caller.tenant_id, path_id(&id)?);
    let row = store::get(&app.db, tenant, id).await?.ok_or_else(|| not_found("trace"))?;
    let (spans, next) = span_page(&app, tenant, id, None, DETAIL_SPANS).await?;
    let events = store::events(&app.db, tenant, id, DETAIL_EVENTS).await?;
    let texts =
        store::trace_texts(&app.db, tenant, std::slice::from_ref(&row)).await?.pop().unwrap_or_default();
    let mut trace = wire(row, texts, false);
    // No remediation has been executed on any trace: actions arrive with the control loop.
    trace.control_loop_depth = Some(0);
    trace.spans = Some(spans);
    trace.spans_next_cursor = next;
    trace.events = Some(events.into_iter().map(wire_event).collect());
    Ok(Json(trace))
}

/// Page through the spans of a trace, by start time.
#[utoipa::path(get, path = "/v1/traces/{id}/spans", tag = "Traces", params(
    ("id" = String, Path, description = "id of the trace"),
    ("cursor" = Option<String>, Query, description = "from `spans_next_cursor` or a previous `next_cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = SpanList)))]
pub async fn spans(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
) -> Result<Json<SpanList>> {
    let (tenant, id) = (caller.tenant_id, path_id(&id)?);
    let limit = query.limit()?;
    let after = query.get("cursor").map(|it| app.cursors.open(tenant, &span_scope(id), it)).transpose()?;
    store::get(&app.db, tenant, id).await?.ok_or_else(|| not_found("trace"))?;
    let (spans, next_cursor) = span_page(&app, tenant, id, after, limit).await?;
    Ok(Json(SpanList { spans, has_more: next_cursor.is_some(), next_cursor }))
}

async fn span_page(
    app: &App,
    tenant: Uuid,
    trace: Uuid,
    after: Option<store::Position>,
    limit: usize,
) -> Result<(Vec<Span>, Option<String>)> {
    let more = u64::try_from(limit + 1).unwrap_or(u64::MAX);
    let mut rows = store::spans(&app.db, tenant, trace, after, more).await?;
    let scope = span_scope(trace);
    let mut next = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.started_at, it.id));
    let count = rows.len();
    let mut spans: Vec<Span> = Vec::with_capacity(count);
    let mut bytes = 0;
    let mut rows = rows.into_iter();
    while spans.len() < count && bytes <= SPAN_BYTES {
        let block: Vec<span::Model> = rows.by_ref().take(SPAN_BLOCK).collect();
        let texts = store::span_texts(&app.db, tenant, &block).await?;
        for (row, texts) in block.into_iter().zip(texts) {
            bytes += texts.bytes();
            let position = (row.started_at, row.id);
            spans.push(wire_span(row, texts));
            if bytes > SPAN_BYTES && spans.len() < count {
                next = Some(app.cursors.seal(tenant, &scope, position));
                break;
            }
        }
    }
    Ok((spans, next))
}

/// The filters of a query string.
pub fn filter(query: &Query) -> Result<Filter> {
    let mut tags = Vec::new();
    // An empty value is a value here: a tag may be only a word.
    match (query.get("tag_key"), query.all("tag_value").last()) {
        (Some(key), Some(value)) => tags.push(Tag::Pair(key.to_owned(), value.to_owned())),
        (None, None) => {}
        _ => {
            return Err(problem(
                ErrorCode::TagsFilterIncomplete,
                "tag_key and tag_value must be given together",
            ));
        }
    }
    tags.extend(query.all("tag").filter(|it| !it.is_empty()).map(|it| match it.split_once(':') {
        Some((key, value)) => Tag::Pair(key.to_owned(), value.to_owned()),
        None => Tag::Key(it.to_owned()),
    }));
    // Nothing has more, and each is a condition of the statement, whose size is bounded.
    if tags.len() > MAX_TAG_FILTERS {
        return Err(invalid("tag", &format!("must not be repeated more than {MAX_TAG_FILTERS} times")));
    }
    let failure_type = match query.get("failure_type") {
        None => None,
        Some(word) => match word.parse() {
            Ok(FailureType::Other) | Err(_) => {
                return Err(invalid(
                    "failure_type",
                    "must be timeout, rate_limit, invalid_response or context_length",
                ));
            }
            Ok(known) => Some(known),
        },
    };
    let (from, to) = Query::ordered(("from", "to"), (query.time("from")?, query.time("to")?))?;
    let natural = |min: &'static str, max: &'static str| {
        Query::ordered((min, max), (query.natural(min)?, query.natural(max)?))
    };
    Ok(Filter {
        project_id: query.uuid("project_id")?,
        model: query.text("model"),
        error: query.boolean("error")?,
        failure_type,
        from,
        to,
        latency: natural("latency_min", "latency_max")?,
        tokens: natural("token_count_min", "token_count_max")?,
        cost: Query::ordered(("min_cost", "max_cost"), (query.money("min_cost")?, query.money("max_cost")?))?,
        tags,
        session_id: query.text("session_id"),
        user_id: query.text("user_id"),
        name: query.text("name"),
        external_id: query.text("external_id"),
        words: query.get("q").unwrap_or_default().split_whitespace().map(str::to_lowercase).collect(),
    })
}

/// What a cursor of the list is bound to.
fn scope(filter: &Filter) -> String {
    format!("traces {filter:?}")
}

fn span_scope(trace: Uuid) -> String {
    format!("spans {trace}")
}

/// A trace as the list shows it.
pub fn wire(row: trace::Model, texts: Texts, preview: bool) -> Trace {
    let trace::Model {
        tenant_id: _,
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
        ready_at: _,
        ready,
        given: _,
        digest: _,
        body_id: _,
        body_index: _,
        created_at: _,
        updated_at: _,
    } = row;
    let tag_map: std::collections::BTreeMap<String, String> =
        tags.as_deref().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let mut tags: Vec<String> = tag_map
        .iter()
        .map(|(key, value)| if value.is_empty() { key.clone() } else { format!("{key}:{value}") })
        .collect();
    tags.sort_unstable();
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
        tags,
        tag_map,
        metadata: texts.metadata.and_then(raw),
        span_count: i64::from(span_count),
        ready,
        control_loop_depth: None,
        spans: None,
        spans_next_cursor: None,
        events: None,
    }
}

fn wire_span(row: span::Model, texts: SpanTexts) -> Span {
    let span::Model {
        tenant_id,
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
    } = row;
    let mut metadata = texts.metadata;
    // What another span reports already is kept where no one adds it up.
    let repeated_tokens = !counted && (prompt_tokens.is_some() || completion_tokens.is_some());
    let repeated_cost = !cost_counted && cost.is_some();
    if repeated_tokens || repeated_cost {
        let mut usage = serde_json::Map::new();
        if repeated_tokens {
            usage.extend(prompt_tokens.map(|it| ("prompt_tokens".to_owned(), it.into())));
            usage.extend(completion_tokens.map(|it| ("completion_tokens".to_owned(), it.into())));
        }
        if repeated_cost {
            usage.extend(cost.map(|it| ("cost".to_owned(), money::to_usd(it).into())));
        }
        let usage = serde_json::Value::Object(usage).to_string();
        splice(metadata.get_or_insert_with(|| "{}".to_owned()), "usage", &usage);
    }
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
        metadata: metadata.and_then(raw),
        start_time: Timestamp::from_micros(started_at),
        end_time: ended_at.map(Timestamp::from_micros),
        otel_trace_id: otel_span_id.is_some().then(|| trace_id.simple().to_string()),
        otel_span_id,
    }
}

fn wire_event(row: event::Model) -> Event {
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

fn raw(json: String) -> Option<RawObject> {
    RawValue::from_string(json).ok()
}

fn first_characters(text: String) -> String {
    match text.char_indices().nth(PREVIEW) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}
