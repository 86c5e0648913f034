//! Computes a trace's row from its spans.
//!
//! A [`store::traces::TraceChunk`] carries finished rows, so that the writer has little left to do. Its trace row
//! is computed as if the chunk contained the whole trace. If the trace is stored already, the transaction calls
//! [`roll_up`] again with all spans. Both ways go through the same function, so any split of the same spans over
//! requests ends in the same row.

use std::collections::{BTreeMap, HashSet};

use api::UsageDetails;
use entities::{
    span,
    trace::{self, MissingRoot},
};
use semantics::rollup::{Rollup, SpanFacts, rollup};
use serde::{Deserialize, Serialize};
use store::{
    row_text::label,
    text_block::{MISSING_INPUT, MISSING_OUTPUT, has_text},
    traces::{bit_of, class, failure_of},
};
use uuid::Uuid;

/// Time in microseconds without a new span after which a trace with an ended root is ready.
const READY_AFTER_MICROS: i64 = 5_000_000;
/// Time in microseconds without a new span after which a trace without a root is ready.
const READY_AFTER_WITHOUT_ROOT_MICROS: i64 = 600_000_000;

/// Values that JSON ingest sent for the whole trace; they take precedence over the spans.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceValues {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Error message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Session ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// End user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The sender's own ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Latency in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<i64>,
    /// Cost in pico-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<i64>,
    /// Start, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
    /// End, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// Tags.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Whether the trace has texts of its own in a text block.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own_texts: bool,
    /// The missing texts, encoded as in the column `missing_texts`; null when it has both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_texts: Option<i16>,
}

/// The trace hints of an OTLP span, as stored in its row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredHints {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Session ID.
    #[serde(skip_serializing_if = "Option::is_none", rename = "session")]
    pub session_id: Option<String>,
    /// End user.
    #[serde(skip_serializing_if = "Option::is_none", rename = "user")]
    pub user_id: Option<String>,
    /// The sender's own ID.
    #[serde(skip_serializing_if = "Option::is_none", rename = "external")]
    pub external_id: Option<String>,
    /// Tags.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The sender declares the trace complete.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
    /// The span's parent is in another process.
    #[serde(skip_serializing_if = "std::ops::Not::not", rename = "remote")]
    pub has_remote_parent: bool,
}

/// Computes the trace's row from all its spans, and decides which spans count.
///
/// `trace` provides values that do not follow from spans: IDs, project, `given`, the location of its
/// own texts, and the times of receipt. `now` is the time of receipt of the newest span.
pub fn roll_up(trace: &mut trace::Model, spans: &mut [span::Model], now: i64) {
    let given: TraceValues =
        trace.given.as_deref().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let is_item = trace.digest.is_some();
    let facts: Vec<SpanFacts<'_>> = spans.iter().map(span_facts).collect();
    let rollup_values = rollup(&facts);
    let hints = merge_hints(spans, rollup_values.root);
    let root = rollup_values.root.map(|it| &spans[it]);

    trace.name = given.name.or(hints.name).or_else(|| root.map(|it| label(&it.name)));
    trace.model =
        given.model.or_else(|| rollup_values.model.and_then(|it| spans[it].model.as_deref().map(label)));
    trace.error = given.error.or_else(|| rollup_values.error.and_then(|it| spans[it].error.clone()));
    trace.session_id = given.session_id.or(hints.session_id);
    trace.user_id = given.user_id.or(hints.user_id);
    trace.external_id = given.external_id.or(hints.external_id);
    let tags = if given.tags.is_empty() { hints.tags } else { given.tags };
    trace.tags = (!tags.is_empty()).then(|| serde_json::to_string(&tags).unwrap_or_default());

    set_times(trace, &rollup_values, given.started_at, given.ended_at, given.latency_ms, spans.is_empty());
    trace.prompt_tokens = rollup_values.prompt_tokens;
    trace.completion_tokens = rollup_values.completion_tokens;
    trace.total_tokens = rollup_values.total_tokens;
    let UsageDetails { cached_input_tokens, cache_write_tokens, reasoning_tokens } =
        rollup_values.usage_details;
    trace.cached_input_tokens = cached_input_tokens;
    trace.cache_write_tokens = cache_write_tokens;
    trace.reasoning_tokens = reasoning_tokens;
    trace.cost = rollup_values.cost_pico.or(given.cost);
    trace.failure_types =
        failure_bits(&rollup_values, trace.error.is_some() && spans.is_empty(), trace.error.as_deref());
    trace.span_count = i32::try_from(spans.len()).unwrap_or(i32::MAX);
    trace.latency_class = trace.latency_ms.map(class);
    trace.token_class = class(trace.total_tokens);
    trace.cost_class = trace.cost.map(class);

    set_texts(trace, given.own_texts, given.missing_texts, &rollup_values, spans);
    let ended = root.is_some_and(|it| it.ended_at.is_some());
    let is_complete = is_item || hints.complete;
    // Only traces of JSON ingest have `given`, also after an import. They are complete when stored.
    let has_end = is_complete || ended || trace.given.is_some();
    trace.missing_root = if has_end { MissingRoot::None } else { missing_root(spans) }.code();
    trace.ready = false;
    trace.ready_at = match (is_complete, ended) {
        (true, _) => now,
        (false, true) => now.saturating_add(READY_AFTER_MICROS),
        (false, false) => now.saturating_add(READY_AFTER_WITHOUT_ROOT_MICROS),
    };
    for (i, span) in spans.iter_mut().enumerate() {
        span.counted = rollup_values.counted[i];
        span.cost_counted = rollup_values.cost_counted[i];
    }
}

/// Returns why a trace has no ended root span: its topmost spans show whether their parents are in other processes.
fn missing_root(spans: &[span::Model]) -> MissingRoot {
    let ids: HashSet<Uuid> = spans.iter().map(|it| it.id).collect();
    let mut topmost = spans.iter().filter(|it| it.parent_id.is_none_or(|parent| !ids.contains(&parent)));
    let is_below_remote = |span: &span::Model| {
        let hints = span.hints.as_deref().and_then(|it| serde_json::from_str::<StoredHints>(it).ok());
        span.ended_at.is_some() && hints.is_some_and(|it| it.has_remote_parent)
    };
    if topmost.all(is_below_remote) { MissingRoot::Remote } else { MissingRoot::Local }
}

/// Sets the location of the trace's texts: its own texts if it has some (which may be incomplete,
/// `own_missing`), else those of its root or first span. Missing texts are taken from the next source
/// that has them: the root, then the first model call's input and the last one's output.
fn set_texts(
    trace: &mut trace::Model,
    has_own: bool,
    own_missing: Option<i16>,
    rollup_values: &Rollup,
    spans: &[span::Model],
) {
    let source = rollup_values.root.or(rollup_values.first).map(|it| &spans[it]);
    if !has_own {
        trace.body_id = source.and_then(|it| it.body_id);
        trace.body_index = source.map_or(0, |it| it.body_index);
    }
    let missing = if has_own { own_missing } else { source.and_then(|it| it.missing_texts) };
    let other_source = |text: i16, call: Option<usize>| {
        if has_text(missing, text) {
            return (None, None);
        }
        let span = source
            .filter(|it| has_own && has_text(it.missing_texts, text))
            .or_else(|| call.map(|it| &spans[it]));
        span.and_then(|it| Some((it.body_id?, it.body_index))).unzip()
    };
    (trace.input_body_id, trace.input_body_index) = other_source(MISSING_INPUT, rollup_values.first_call);
    (trace.output_body_id, trace.output_body_index) = other_source(MISSING_OUTPUT, rollup_values.last_call);
}

fn span_facts(span: &span::Model) -> SpanFacts<'_> {
    SpanFacts {
        id: span.id,
        parent: span.parent_id,
        start_us: span.started_at,
        end_us: span.ended_at,
        latency_ms: span.latency_ms,
        is_llm: span.kind == api::SpanType::Llm.as_str(),
        model: span.model.as_deref(),
        has_error: span.error.is_some(),
        failure: span.failure.and_then(failure_of),
        prompt: span.prompt_tokens,
        completion: span.completion_tokens,
        usage_details: usage_details(span),
        cost_pico: span.cost,
        has_input: has_text(span.missing_texts, MISSING_INPUT),
        has_output: has_text(span.missing_texts, MISSING_OUTPUT),
        response_id: span.response_hash.map(i64::cast_unsigned),
        literal: span.otel_span_id.is_none(),
    }
}

/// Returns the details of a span's token counts, whether or not they count towards the trace.
pub fn usage_details(span: &span::Model) -> UsageDetails {
    UsageDetails {
        cached_input_tokens: span.cached_input_tokens,
        cache_write_tokens: span.cache_write_tokens,
        reasoning_tokens: span.reasoning_tokens,
    }
}

/// Merges the hints: the root's take precedence, then those of the earliest span.
fn merge_hints(spans: &[span::Model], root: Option<usize>) -> StoredHints {
    let mut hints_of_spans: Vec<(bool, i64, Uuid, StoredHints)> = spans
        .iter()
        .enumerate()
        .filter_map(|(i, span)| {
            let hints = serde_json::from_str(span.hints.as_deref()?).ok()?;
            Some((Some(i) != root, span.started_at, span.id, hints))
        })
        .collect();
    hints_of_spans.sort_unstable_by_key(|it| (it.0, it.1, it.2));
    let mut all = StoredHints::default();
    for (not_root, _, _, hints) in hints_of_spans {
        if !not_root {
            all.name = hints.name;
        }
        all.session_id = all.session_id.or(hints.session_id);
        all.user_id = all.user_id.or(hints.user_id);
        all.external_id = all.external_id.or(hints.external_id);
        if all.tags.is_empty() {
            all.tags = hints.tags;
        }
        all.complete |= hints.complete;
    }
    all
}

fn set_times(
    trace: &mut trace::Model,
    rollup_values: &Rollup,
    started: Option<i64>,
    ended: Option<i64>,
    latency: Option<i64>,
    no_spans: bool,
) {
    let from_latency = |end: i64| end.saturating_sub(latency.unwrap_or(0).saturating_mul(1_000));
    trace.started_at = match (started, no_spans, ended) {
        (Some(at), _, _) => at,
        (None, false, _) => rollup_values.started_us,
        (None, true, Some(end)) => from_latency(end),
        (None, true, None) => from_latency(trace.created_at),
    };
    trace.started_at = api::Timestamp::from_micros(trace.started_at).micros();
    trace.ended_at = ended.or(rollup_values.ended_us).or_else(|| {
        latency.map(|it| {
            api::Timestamp::from_micros(trace.started_at.saturating_add(it.saturating_mul(1_000))).micros()
        })
    });
    trace.latency_ms = latency.or(rollup_values.latency_ms).or_else(|| {
        let (start, end) = (started?, ended?);
        Some((end - start) / 1_000)
    });
}

fn failure_bits(rollup_values: &Rollup, bare_error: bool, error: Option<&str>) -> i16 {
    let bits = i16::from(rollup_values.failures.bits());
    match error {
        // The error of an item without spans is classified too.
        Some(message) if bare_error => bits | bit_of(semantics::failure::classify_message(message)),
        _ => bits,
    }
}
