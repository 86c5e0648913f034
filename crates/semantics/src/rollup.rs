//! Computes a trace's roll-up from its spans: root, model, error, times, tokens, cost.
//!
//! The result is a function of the set of spans and independent of their order: where several spans
//! qualify, the earliest by (start, id) is taken, and money is added as integers.
//!
//! **Which spans count.** Several spans often report one provider call: wrappers repeat the usage of the calls
//! below them, and two instrumentations may both report a call. A span therefore counts only if no span below it
//! reports, and only once per provider response within the trace. Tokens and cost are checked separately by the
//! same rule, because a wrapper may have tokens while only the call below it has a cost. A span's usage details
//! (cached and reasoning tokens) count if its tokens count. Spans of JSON ingest and outputs of control actions
//! always count, and do not make the spans above them wrappers.
//!
//! **Which texts are shown.** Those of the root span; missing ones are taken from the model calls: the
//! input of the first, the output of the last.

use std::collections::HashSet;

use api::{FailureType, UsageDetails};
use uuid::Uuid;

use crate::money::Pico;
use tree::SpanTree;

mod tree;

/// The properties of a span that its trace's roll-up uses.
#[derive(Clone, Copy, Debug)]
pub struct SpanFacts<'a> {
    /// ID, unique within the trace.
    pub id: Uuid,
    /// ID of the parent, which may be missing from the trace.
    pub parent: Option<Uuid>,
    /// Start in Unix microseconds.
    pub start_us: i64,
    /// End in Unix microseconds.
    pub end_us: Option<i64>,
    /// Duration in milliseconds.
    pub latency_ms: Option<i64>,
    /// Whether the span is a model call.
    pub is_llm: bool,
    /// Model name.
    pub model: Option<&'a str>,
    /// Whether the span failed.
    pub has_error: bool,
    /// Class of the error.
    pub failure: Option<FailureType>,
    /// Prompt tokens as reported.
    pub prompt: Option<i64>,
    /// Completion tokens as reported.
    pub completion: Option<i64>,
    /// Cached, cache-write and reasoning tokens as reported.
    pub usage_details: UsageDetails,
    /// Cost in pico-dollars.
    pub cost_pico: Option<Pico>,
    /// Whether the span has an input.
    pub has_input: bool,
    /// Whether the span has an output.
    pub has_output: bool,
    /// Hash of the provider's response ID.
    pub response_id: Option<u64>,
    /// Whether the numbers count without deduplication (JSON ingest).
    pub literal: bool,
}

/// The values of a trace that follow from its spans. Positions are indexes into the slice given to
/// [`rollup`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollup {
    /// The earliest span without a parent.
    pub root: Option<usize>,
    /// The span whose model is the trace's: the first model call with a model, else the first span.
    pub model: Option<usize>,
    /// The span whose error is the trace's: the root if it failed; without a root, the first
    /// failed span.
    pub error: Option<usize>,
    /// The earliest span.
    pub first: Option<usize>,
    /// The first model call with an input.
    pub first_call: Option<usize>,
    /// The last model call with an output, unless a later one failed without any.
    pub last_call: Option<usize>,
    /// Earliest start in Unix microseconds; 0 without spans.
    pub started_us: i64,
    /// Latest end in Unix microseconds.
    pub ended_us: Option<i64>,
    /// The root's duration, else from first start to last end, in milliseconds.
    pub latency_ms: Option<i64>,
    /// Sum of the prompt tokens that count.
    pub prompt_tokens: Option<i64>,
    /// Sum of the completion tokens that count.
    pub completion_tokens: Option<i64>,
    /// Prompt and completion tokens together; 0 when none were reported.
    pub total_tokens: i64,
    /// Sums of the usage details that count.
    pub usage_details: UsageDetails,
    /// Sum of the costs that count, in pico-dollars.
    pub cost_pico: Option<Pico>,
    /// Failure types of all spans.
    pub failures: FailureSet,
    /// Per span, whether its tokens are in the sums.
    pub counted: Vec<bool>,
    /// Per span, whether its cost is in the sum.
    pub cost_counted: Vec<bool>,
}

/// Computes the roll-up of a trace from all its spans, in O(n log n) and without recursion.
pub fn rollup(spans: &[SpanFacts<'_>]) -> Rollup {
    let first = earliest(spans, |_| true);
    let root = earliest(spans, |it| it.parent.is_none());
    let model = earliest(spans, |it| it.is_llm && it.model.is_some())
        .or_else(|| earliest(spans, |it| it.model.is_some()));
    let error = match root {
        Some(root) => Some(root).filter(|&at| spans[at].has_error),
        None => earliest(spans, |it| it.has_error),
    };
    let started_us = first.map_or(0, |at| spans[at].start_us);
    let ended_us = spans.iter().filter_map(end_us).max();
    let latency_ms = root
        .and_then(|at| latency_ms(&spans[at]))
        .or_else(|| ended_us.map(|end| millis(started_us, end)).filter(|_| first.is_some()));

    let first_call = earliest(spans, |it| it.is_llm && it.has_input);
    let ended = |it: &SpanFacts<'_>| it.is_llm && (it.has_output || it.has_error);
    let last_call = latest(spans, ended).filter(|&at| spans[at].has_output);

    let tree = SpanTree::of(spans);
    let mut counted = counted_spans(spans, &tree, has_tokens);
    exclude_repeated_details(spans, &tree, &mut counted);
    let cost_counted = counted_spans(spans, &tree, |it| positive(it.cost_pico));
    let prompt_tokens = sum(spans, &counted, |it| it.prompt);
    let completion_tokens = sum(spans, &counted, |it| it.completion);
    let usage_details = spans
        .iter()
        .zip(&counted)
        .filter(|&(_, &counts)| counts)
        .fold(UsageDetails::default(), |sum, (span, _)| {
            sum.plus(without_negative_counts(span.usage_details))
        });
    Rollup {
        root,
        model,
        error,
        first,
        first_call,
        last_call,
        started_us,
        ended_us,
        latency_ms,
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens.unwrap_or(0).saturating_add(completion_tokens.unwrap_or(0)),
        usage_details,
        cost_pico: sum(spans, &cost_counted, |it| it.cost_pico),
        failures: spans.iter().filter_map(|it| it.failure).collect(),
        counted,
        cost_counted,
    }
}

/// Returns for each span whether its numbers count; `reports` tells which spans have numbers.
///
/// A span without numbers counts trivially.
fn counted_spans(
    spans: &[SpanFacts<'_>],
    tree: &SpanTree,
    reports: impl Fn(&SpanFacts<'_>) -> bool,
) -> Vec<bool> {
    let mut counts = vec![true; spans.len()];
    let reporters: Vec<usize> = (0..spans.len()).filter(|&at| reports(&spans[at])).collect();
    if reporters.len() < 2 {
        return counts;
    }
    // A span that always counts does not repeat usage: the usage of a control action's output is added to that of
    // the wrapper.
    let exclusive: Vec<usize> = reporters.iter().copied().filter(|&at| !spans[at].literal).collect();
    let wraps = tree.ancestors_of(&exclusive);
    // Of the remaining spans, the first of each response counts. Wrappers are removed before, so that
    // deduplication never selects a wrapper that is then removed.
    let mut by_response: Vec<usize> = Vec::new();
    for &at in &reporters {
        let span = &spans[at];
        if wraps[at] && !span.literal {
            counts[at] = false;
        } else if span.response_id.is_some() {
            by_response.push(at);
        }
    }
    by_response.sort_unstable_by_key(|&at| {
        let span = &spans[at];
        (span.response_id, !span.literal, !span.is_llm, span.start_us, span.id)
    });
    for pair in by_response.windows(2) {
        let (before, span) = (&spans[pair[0]], &spans[pair[1]]);
        if before.response_id == span.response_id && !span.literal {
            counts[pair[1]] = false;
        }
    }
    counts
}

/// Excludes spans that report details without tokens, if a span below reports either or if another span
/// reports the same response.
fn exclude_repeated_details(spans: &[SpanFacts<'_>], tree: &SpanTree, counted: &mut [bool]) {
    let has_details = |it: &SpanFacts<'_>| it.usage_details.counts().iter().any(|it| positive(it.1));
    let only_details = |it: &SpanFacts<'_>| !it.literal && !has_tokens(it) && has_details(it);
    if !spans.iter().any(only_details) {
        return;
    }
    let reporters: Vec<usize> =
        (0..spans.len()).filter(|&at| has_tokens(&spans[at]) || has_details(&spans[at])).collect();
    let wraps = tree.ancestors_of(&reporters);
    let mut responses: HashSet<u64> =
        spans.iter().filter(|it| has_tokens(it)).filter_map(|it| it.response_id).collect();
    let mut candidates: Vec<usize> = (0..spans.len()).filter(|&at| only_details(&spans[at])).collect();
    candidates.sort_unstable_by_key(|&at| (spans[at].start_us, spans[at].id));
    for at in candidates {
        let is_first = !wraps[at] && spans[at].response_id.is_none_or(|it| responses.insert(it));
        counted[at] = is_first;
    }
}

fn has_tokens(span: &SpanFacts<'_>) -> bool {
    positive(span.prompt) || positive(span.completion)
}

fn without_negative_counts(details: UsageDetails) -> UsageDetails {
    let count = |it: Option<i64>| it.filter(|it| *it >= 0);
    UsageDetails {
        cached_input_tokens: count(details.cached_input_tokens),
        cache_write_tokens: count(details.cache_write_tokens),
        reasoning_tokens: count(details.reasoning_tokens),
    }
}

fn sum(
    spans: &[SpanFacts<'_>],
    counts: &[bool],
    value: impl Fn(&SpanFacts<'_>) -> Option<i64>,
) -> Option<i64> {
    spans
        .iter()
        .zip(counts)
        .filter(|&(_, &counts)| counts)
        .filter_map(|(span, _)| value(span).filter(|&it| it >= 0))
        .reduce(i64::saturating_add)
}

fn earliest(spans: &[SpanFacts<'_>], wanted: impl Fn(&SpanFacts<'_>) -> bool) -> Option<usize> {
    let candidates = spans.iter().enumerate().filter(|(_, it)| wanted(it));
    candidates.min_by_key(|(_, it)| (it.start_us, it.id)).map(|(at, _)| at)
}

fn latest(spans: &[SpanFacts<'_>], wanted: impl Fn(&SpanFacts<'_>) -> bool) -> Option<usize> {
    let candidates = spans.iter().enumerate().filter(|(_, it)| wanted(it));
    candidates.max_by_key(|(_, it)| (it.start_us, it.id)).map(|(at, _)| at)
}

fn positive(count: Option<i64>) -> bool {
    count.is_some_and(|it| it > 0)
}

fn end_us(span: &SpanFacts<'_>) -> Option<i64> {
    let from_latency = || Some(span.start_us.saturating_add(span.latency_ms?.max(0).saturating_mul(1000)));
    span.end_us.or_else(from_latency)
}

fn latency_ms(span: &SpanFacts<'_>) -> Option<i64> {
    span.latency_ms.map(|it| it.max(0)).or_else(|| Some(millis(span.start_us, span.end_us?)))
}

/// Returns the milliseconds between two times in microseconds, rounded, never negative.
fn millis(from_us: i64, to_us: i64) -> i64 {
    to_us.saturating_sub(from_us).max(0).saturating_add(500) / 1000
}

/// A set of failure types, stored as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FailureSet(u8);

impl FailureSet {
    /// Adds a type.
    pub fn insert(&mut self, failure: FailureType) {
        self.0 |= bit(failure);
    }

    /// Returns whether the set contains a type.
    pub fn contains(self, failure: FailureType) -> bool {
        self.0 & bit(failure) != 0
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the stored form: 1 timeout, 2 rate limit, 4 invalid response, 8 context length, 16 other, 32
    /// remediation regression.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Converts from the stored form; unknown bits are dropped.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits & 0b11_1111)
    }
}

impl From<FailureType> for FailureSet {
    fn from(failure: FailureType) -> Self {
        Self(bit(failure))
    }
}

impl FromIterator<FailureType> for FailureSet {
    fn from_iter<I: IntoIterator<Item = FailureType>>(failures: I) -> Self {
        Self(failures.into_iter().fold(0, |bits, it| bits | bit(it)))
    }
}

fn bit(failure: FailureType) -> u8 {
    match failure {
        FailureType::Timeout => 1,
        FailureType::RateLimit => 2,
        FailureType::InvalidResponse => 4,
        FailureType::ContextLength => 8,
        FailureType::Other => 16,
        FailureType::RemediationRegression => 32,
    }
}

#[cfg(test)]
mod tests;
