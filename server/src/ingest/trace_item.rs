//! Converts an item of JSON ingest to a chunk.
//!
//! An item is accepted unchanged or rejected as a whole, with the invalid field; nothing is truncated
//! or guessed.

use std::collections::{BTreeMap, HashSet};

use api::{
    ErrorCode, SpanType,
    ingest::{EventItem, SpanItem, TraceItem},
};
use entities::{event, span};
use semantics::{
    cost::{CostInput, span_cost},
    failure, money,
    usage::Usage,
};
use sha2::{Digest, Sha256};
use store::{
    derived_id, new_id,
    row_text::{MAX_TAG_BYTES, row_text},
    text_block::Entry,
    traces::{TraceChunk, bit_of},
    vectors::VectorRow,
};
use uuid::Uuid;

use super::{
    object_text::ObjectText,
    prices::PriceBook,
    redaction::ProjectRedactor,
    spans::{Receipt, empty_trace, metadata_cost},
    text_bodies::pack_texts,
    trace_rollup::{TraceValues, roll_up},
    validation::{validate_label, validate_object, validate_row_text, validate_vector, without_nul},
};
use crate::error::Problem;

/// Maximum number of tags of a trace; over OTLP, further ones are dropped.
pub const MAX_TAGS: usize = 100;

/// Converts an item to a chunk, redacted. `raw` is the item's JSON text as sent, whose digest identifies a repetition.
///
/// # Errors
///
/// Fails with a [`Problem`] that names the field: status 400 for a wrong type, 422 for an invalid value.
pub fn to_chunk(
    mut item: TraceItem,
    raw: &[u8],
    receipt: Receipt,
    prices: &PriceBook,
    redactor: Option<&ProjectRedactor>,
) -> Result<TraceChunk, Problem> {
    let (id, derived_external_id) = trace_id(item.id.as_deref(), receipt.project_id);
    // The explicit external ID takes precedence, also if it is redacted later.
    let is_derived = item.external_id.is_none();
    item.external_id = item.external_id.or(derived_external_id);
    if let Some(redactor) = redactor {
        redactor.item(&mut item);
    }
    if is_derived {
        // Cut after redaction, so that no half of a value remains.
        item.external_id = item.external_id.as_deref().map(store::row_text::label);
    }
    let values = TraceValues {
        name: validate_label("name", item.name)?,
        model: validate_label("model", item.model)?,
        error: item.error.map(|it| row_text(without_nul(it))),
        session_id: validate_label("session_id", item.session_id)?,
        user_id: validate_label("user_id", item.user_id)?,
        external_id: validate_label("external_id", item.external_id)?,
        latency_ms: validate_not_negative("latency_ms", item.latency_ms)?,
        cost: validate_money("cost", item.cost)?,
        started_at: item.started_at.map(|it| it.micros()),
        ended_at: item.ended_at.map(|it| it.micros()),
        tags: validate_tags(item.tags)?,
        own_texts: false,
        missing_texts: None,
    };
    if let (Some(start), Some(end)) = (values.started_at, values.ended_at)
        && end < start
    {
        return Err(Problem::field("ended_at", "must not be before started_at"));
    }
    let metadata = validate_object("metadata", item.metadata)?;
    let texts = Entry {
        input: item.input.map(without_nul),
        output: item.output.map(without_nul),
        metadata,
        ..Entry::default()
    };
    let context = ItemContext { trace_id: id, receipt, prices, base: base_time(&values, receipt.now) };
    let SpanRows { mut spans, entries, vectors } = context.spans(item.spans.unwrap_or_default())?;
    let events = context.events(item.events.unwrap_or_default())?;

    let mut trace = empty_trace(receipt, id);
    let texts = Some(texts).filter(|it| !it.is_empty());
    let (own_texts, missing_texts) = (texts.is_some(), texts.as_ref().and_then(Entry::missing));
    trace.digest = Some(Sha256::digest(raw).to_vec());
    trace.given = serde_json::to_string(&TraceValues { own_texts, missing_texts, ..values }).ok();
    let bodies = pack_texts((&mut trace, texts.as_ref()), (&mut spans, &entries), receipt.tenant_id)
        .map_err(|_| crate::error::internal())?;
    roll_up(&mut trace, &mut spans, receipt.now);
    Ok(TraceChunk { spans, events, bodies, vectors, ..TraceChunk::of(trace) })
}

/// The spans of an item, their texts, and the vectors sent with some of them.
struct SpanRows {
    spans: Vec<span::Model>,
    entries: Vec<Entry>,
    vectors: Vec<VectorRow>,
}

/// Values that all spans and events of an item share.
struct ItemContext<'a> {
    trace_id: Uuid,
    receipt: Receipt,
    prices: &'a PriceBook,
    /// The start of spans without a time.
    base: i64,
}

impl ItemContext<'_> {
    fn spans(&self, items: Vec<SpanItem>) -> Result<SpanRows, Problem> {
        let mut spans = Vec::with_capacity(items.len());
        let mut entries = Vec::with_capacity(items.len());
        let mut ids = HashSet::with_capacity(items.len());
        let mut vectors = Vec::new();
        for (i, mut item) in items.into_iter().enumerate() {
            let embedding = item.embedding.take();
            let (row, entry) = self.span(i, item)?;
            if !ids.insert(row.id) {
                return Err(Problem::field(
                    format!("spans[{i}].id"),
                    "is the id of an earlier span of this trace",
                ));
            }
            if let Some(numbers) = embedding {
                let vector = validate_vector(&format!("spans[{i}].embedding"), &numbers)?;
                vectors.push(VectorRow::of(&row, self.receipt.project_id, "", &vector));
            }
            spans.push(row);
            entries.push(entry);
        }
        Ok(SpanRows { spans, entries, vectors })
    }

    fn span(&self, i: usize, item: SpanItem) -> Result<(span::Model, Entry), Problem> {
        let at = |field: &str| format!("spans[{i}].{field}");
        let latency = validate_not_negative(&at("latency_ms"), item.latency_ms)?;
        let details = item.usage_details.unwrap_or_default();
        let usage = Usage {
            prompt: validate_not_negative(&at("prompt_tokens"), item.prompt_tokens)?,
            completion: validate_not_negative(&at("completion_tokens"), item.completion_tokens)?,
            cached: validate_not_negative(
                &at("usage_details.cached_input_tokens"),
                details.cached_input_tokens,
            )?,
            cache_write: validate_not_negative(
                &at("usage_details.cache_write_tokens"),
                details.cache_write_tokens,
            )?,
            reasoning: validate_not_negative(
                &at("usage_details.reasoning_tokens"),
                details.reasoning_tokens,
            )?,
            // The details should be parts of the counts. If they are not, both are kept and treated as
            // separate.
            cached_in_prompt: true,
        };
        validate_money(&at("cost"), item.cost)?;
        let span_micros = latency.unwrap_or(0).saturating_mul(1_000);
        let end = item.end_time.map(|it| it.micros());
        let start = item.start_time.map(|it| it.micros());
        if let (Some(start), Some(end)) = (start, end)
            && end < start
        {
            return Err(Problem::field(at("end_time"), "must not be before start_time"));
        }
        let clamp = |micros: i64| api::Timestamp::from_micros(micros).micros();
        let started_at =
            start.or_else(|| end.map(|it| clamp(it.saturating_sub(span_micros)))).unwrap_or(self.base);
        let ended_at = end.or_else(|| latency.map(|_| clamp(started_at.saturating_add(span_micros))));
        let model = validate_label(&at("model"), item.model)?;
        let kind = item.kind.unwrap_or_default();
        let mut metadata = validate_object(&at("metadata"), item.metadata)?;
        let priced = span_cost(
            &CostInput {
                is_llm: kind == SpanType::Llm,
                metadata_cost_usd: metadata.as_deref().and_then(metadata_cost),
                own_cost: item.cost,
                model: model.as_deref(),
                request_model: None,
                usage: &usage,
            },
            |model| self.prices.find(model),
        );
        if let Some(cost) = &priced {
            metadata = Some(ObjectText::with(metadata, "cost_details", &cost.details));
        }
        let error = item.error.map(|it| row_text(without_nul(it)));
        let name = row_text(without_nul(item.name));
        let row = span::Model {
            tenant_id: self.receipt.tenant_id,
            // Assigned when the trace is stored.
            trace_key: 0,
            trace_id: self.trace_id,
            id: item.id.map_or_else(new_id, |it| self.child_id(&it)),
            parent_id: item.parent_span_id.filter(|it| !it.is_empty()).map(|it| self.child_id(&it)),
            name,
            kind: validate_row_text(&at("type"), kind.into())?,
            model,
            started_at,
            ended_at,
            latency_ms: latency.or_else(|| ended_at.map(|it| (it - started_at) / 1_000)),
            failure: error.as_deref().map(|it| bit_of(failure::classify_message(it))),
            error,
            prompt_tokens: usage.prompt,
            completion_tokens: usage.completion,
            cost: priced.map(|it| it.pico),
            counted: true,
            cost_counted: true,
            response_hash: None,
            otel_span_id: None,
            hints: None,
            body_id: None,
            body_index: 0,
            created_at: self.receipt.now,
            cached_input_tokens: usage.cached,
            cache_write_tokens: usage.cache_write,
            reasoning_tokens: usage.reasoning,
            missing_texts: None,
        };
        let entry = Entry {
            input: item.input.map(without_nul),
            output: item.output.map(without_nul),
            metadata,
            ..Entry::default()
        };
        Ok((row, entry))
    }

    fn events(&self, items: Vec<EventItem>) -> Result<Vec<event::Model>, Problem> {
        let mut ids = HashSet::with_capacity(items.len());
        let mut events = Vec::with_capacity(items.len());
        for (i, item) in items.into_iter().enumerate() {
            let id = item.id.map_or_else(new_id, |it| self.child_id(&it));
            if !ids.insert(id) {
                return Err(Problem::field(
                    format!("events[{i}].id"),
                    "is the id of an earlier event of this trace",
                ));
            }
            events.push(event::Model {
                tenant_id: self.receipt.tenant_id,
                trace_id: self.trace_id,
                id,
                span_id: item.span_id.map(|it| self.child_id(&it)),
                message: without_nul(item.message),
                level: validate_row_text(
                    &format!("events[{i}].level"),
                    item.level.unwrap_or_else(|| "info".to_owned()),
                )?,
                metadata: validate_object(&format!("events[{i}].metadata"), item.metadata)?,
                created_at: self.base,
            });
        }
        Ok(events)
    }

    fn child_id(&self, text: &str) -> Uuid {
        Uuid::parse_str(text).unwrap_or_else(|_| derived_id(self.trace_id, text))
    }
}

/// Returns a trace's ID, as sent or derived from the text, and the text if it is not a UUID.
fn trace_id(values: Option<&str>, project_id: Uuid) -> (Uuid, Option<String>) {
    match values {
        None | Some("") => (new_id(), None),
        Some(text) => match Uuid::parse_str(text) {
            Ok(id) => (id, None),
            Err(_) => (derived_id(project_id, text), Some(text.replace('\0', "\u{fffd}"))),
        },
    }
}

/// Returns the start of spans without a time.
fn base_time(values: &TraceValues, now: i64) -> i64 {
    let latency = values.latency_ms.unwrap_or(0).saturating_mul(1_000);
    let start = values.started_at.unwrap_or_else(|| values.ended_at.unwrap_or(now).saturating_sub(latency));
    api::Timestamp::from_micros(start).micros()
}

fn validate_not_negative(field: &str, number: Option<i64>) -> Result<Option<i64>, Problem> {
    match number {
        Some(n) if n < 0 => Err(Problem::field(field, "must not be negative")),
        ok => Ok(ok),
    }
}

fn validate_money(field: &str, usd: Option<f64>) -> Result<Option<i64>, Problem> {
    let Some(usd) = usd else { return Ok(None) };
    match money::from_usd(usd) {
        Some(pico) => Ok(Some(pico)),
        None => Err(Problem::field(field, "must be between 0 and 1,000,000 US dollars")),
    }
}

fn validate_tags(
    values: Option<BTreeMap<String, serde_json::Value>>,
) -> Result<BTreeMap<String, String>, Problem> {
    use serde_json::Value;
    let values = values.unwrap_or_default();
    if values.len() > MAX_TAGS {
        return Err(Problem::field("tags", format!("has more than {MAX_TAGS} entries")));
    }
    let mut tags = BTreeMap::new();
    for (key, value) in values {
        let field = format!("tags.{}", store::row_text::label(&key));
        let value = match value {
            Value::Null => continue,
            Value::String(text) => text,
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Array(_) | Value::Object(_) => {
                return Err(Problem::new(ErrorCode::InvalidBody, format!("{field}: must be a string")));
            }
        };
        if key.is_empty() {
            return Err(Problem::field("tags", "has an empty key"));
        }
        if key.len().max(value.len()) > MAX_TAG_BYTES {
            return Err(Problem::field(
                field,
                format!("has a key or value of more than {MAX_TAG_BYTES} bytes"),
            ));
        }
        let key = validate_label(&field, Some(key))?.unwrap_or_default();
        tags.insert(key, validate_label(&field, Some(value))?.unwrap_or_default());
    }
    Ok(tags)
}
