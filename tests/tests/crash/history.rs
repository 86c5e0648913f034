//! The requests and responses of clients, and their comparison with the stored traces.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tests::{
    Caller,
    app::TEST_START_MICROS,
    otlp::{Span, request},
};
use tokio::task::JoinSet;

/// A request: spans by trace.
#[derive(Clone, Debug)]
pub struct SentRequest {
    /// The spans of each trace.
    pub traces: Vec<(u128, Vec<u64>)>,
    /// Whether the response was 2xx.
    pub acknowledged: bool,
}

impl SentRequest {
    /// Returns the body. A span follows from its id, so that every copy is equal.
    pub fn body(&self) -> Value {
        let spans: Vec<Span> =
            self.traces.iter().flat_map(|(trace, ids)| ids.iter().map(|id| span(*trace, *id))).collect();
        request(&spans)
    }
}

/// Builds a span. The first of a trace is the root; all others are calls below it.
fn span(trace: u128, id: u64) -> Span {
    let start = TEST_START_MICROS + i64::try_from(id).unwrap() * 1_000;
    let span =
        Span::new(trace, id, &format!("span {id}"), start).with("tag.tags", vec![format!("of:{trace}")]);
    if id == 1 {
        return span.with("input.value", "x".repeat(500));
    }
    span.under(1).calls("gpt-4o", tokens(id), 1).with("input.value", "y".repeat(1_500))
}

fn tokens(id: u64) -> i64 {
    10 + i64::try_from(id).unwrap()
}

/// All requests that were sent.
#[derive(Debug, Default)]
pub struct History(pub Vec<SentRequest>);

/// The spans that a trace must and may contain.
#[derive(Debug, Default)]
struct Expected {
    acknowledged: BTreeSet<u64>,
    sent: BTreeSet<u64>,
    /// The spans of each request without a response, which are stored completely or not at all.
    unknown: Vec<BTreeSet<u64>>,
}

impl History {
    /// Returns the number of acknowledged requests.
    pub fn acknowledged(&self) -> usize {
        self.0.iter().filter(|it| it.acknowledged).count()
    }

    /// Panics unless every trace of these requests is stored as acknowledged. Returns the number of stored
    /// traces.
    pub async fn check(&self, key: &Caller) -> usize {
        let mut traces: BTreeMap<u128, Expected> = BTreeMap::new();
        for sent in &self.0 {
            for (trace, spans) in &sent.traces {
                let expected = traces.entry(*trace).or_default();
                expected.sent.extend(spans);
                if sent.acknowledged {
                    expected.acknowledged.extend(spans);
                } else {
                    expected.unknown.push(spans.iter().copied().collect());
                }
            }
        }
        let mut stored = BTreeMap::new();
        let mut traces: Vec<_> = traces.into_iter().collect();
        while !traces.is_empty() {
            let mut tasks = JoinSet::new();
            for (trace, expected) in traces.split_off(traces.len().saturating_sub(16)) {
                let key = key.clone();
                tasks.spawn(async move { (trace, check_trace(&key, trace, &expected).await) });
            }
            while let Some(done) = tasks.join_next().await {
                let (trace, spans) = done.unwrap();
                stored.insert(trace, spans);
            }
        }
        for sent in self.0.iter().filter(|it| !it.acknowledged) {
            let whole =
                sent.traces.iter().map(|(trace, spans)| spans.iter().all(|it| stored[trace].contains(it)));
            let whole: BTreeSet<bool> = whole.collect();
            assert_eq!(whole.len(), 1, "a request is stored as a whole or not at all: {sent:?}");
        }
        stored.values().filter(|it| !it.is_empty()).count()
    }
}

/// Returns the stored spans of a trace; empty if the trace is not stored.
async fn check_trace(key: &Caller, trace: u128, expected: &Expected) -> BTreeSet<u64> {
    let reply = key.get(&format!("/v1/traces/{trace:032x}")).await;
    if reply.status == 404 {
        assert!(expected.acknowledged.is_empty(), "the trace is lost: {trace:032x} {expected:?}");
        return BTreeSet::new();
    }
    let detail = reply.ok();
    let spans = detail["spans"].as_array().unwrap();
    let ids: Vec<u64> = spans
        .iter()
        .map(|it| u64::from_str_radix(it["otel_span_id"].as_str().unwrap(), 16).unwrap())
        .collect();
    let stored: BTreeSet<u64> = ids.iter().copied().collect();
    assert_eq!(ids.len(), stored.len(), "stored twice: {trace:032x}");
    assert!(stored.is_superset(&expected.acknowledged), "lost spans: {trace:032x} {expected:?} {stored:?}");
    assert!(stored.is_subset(&expected.sent), "{trace:032x}: {stored:?}");
    for request in &expected.unknown {
        let rest = request.intersection(&stored).count();
        assert!(
            rest == request.len() || request.is_disjoint(&stored),
            "a request is stored in part: {trace:032x} {request:?} {stored:?}"
        );
    }
    let calls = || stored.iter().filter(|it| **it != 1);
    let (prompt, completion) =
        (calls().map(|it| tokens(*it)).sum::<i64>(), i64::try_from(calls().count()).unwrap());
    assert_eq!(detail["span_count"], json!(stored.len()), "{trace:032x}");
    assert_eq!(detail["total_token_count"], json!(prompt + completion), "{trace:032x}");
    for (field, sum) in [("prompt_tokens", prompt), ("completion_tokens", completion)] {
        assert_eq!(detail[format!("{field}_total")].as_i64().unwrap_or(0), sum, "{trace:032x} {field}");
        let literal: i64 = spans.iter().filter_map(|it| it[field].as_i64()).sum();
        assert_eq!(literal, sum, "{trace:032x} {field}");
    }
    let cost: f64 = spans.iter().filter_map(|it| it["cost"].as_f64()).sum();
    assert!((detail["cost"].as_f64().unwrap_or(0.0) - cost).abs() < 1e-9, "{trace:032x}");
    stored
}

/// Returns the ids of all traces, page by page; panics on a duplicate.
pub async fn listed(key: &Caller) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = key.get(&format!("/v1/traces?limit=200&preview=true{cursor}")).await.ok();
        for trace in page["traces"].as_array().unwrap() {
            assert!(ids.insert(trace["id"].as_str().unwrap().to_owned()), "listed twice: {}", trace["id"]);
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}
