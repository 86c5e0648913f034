//! Traces of a support assistant, generated from their number, so that every run has the same.

use fastrand::Rng;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use serde_json::{Value, json};
use tests::{
    app::TEST_START_MICROS,
    otlp::{self, Span},
};
use uuid::Uuid;

const MODEL_NAMES: [&str; 5] =
    ["gpt-4o", "gpt-4o-mini", "claude-sonnet-4-5", "gemini-2.5-flash", "mistral-large-latest"];
const TRACE_NAMES: [&str; 6] = ["support", "answer", "summarize", "review", "translate", "plan"];
const TEXT_WORDS: [&str; 24] = [
    "the", "order", "of", "invoice", "refund", "to", "customer", "shipping", "a", "policy", "return",
    "account", "balance", "in", "table", "query", "error", "is", "document", "section", "page", "summary",
    "answer", "question",
];
const ERROR_MESSAGES: [&str; 4] = [
    "Request timed out after 30.0s",
    "429 rate limit exceeded: please retry after 2s",
    "invalid response: could not parse JSON at line 1 column 57",
    "context_length_exceeded: maximum context length is 128000 tokens",
];
/// Microseconds between the starts of two traces: 10,000 traces fill thirty days.
const TRACE_DISTANCE_MICROS: i64 = 259_200_000;

/// A trace that can be sent as JSON or OTLP.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The ID of the trace.
    pub id: u128,
    /// The spans, the root first.
    pub spans: Vec<RandomSpan>,
    name: &'static str,
    session: String,
    user: String,
    environment: &'static str,
}

/// A span of a [`Trace`].
#[derive(Clone, Debug)]
pub struct RandomSpan {
    start: i64,
    lasts: i64,
    call: Option<(&'static str, i64, i64)>,
    error: Option<&'static str>,
    input: String,
    output: String,
}

impl Trace {
    /// Generates the trace with this number.
    pub fn random(number: usize) -> Self {
        let mut rng = Rng::with_seed(u64::try_from(number).unwrap());
        let start = TEST_START_MICROS + i64::try_from(number).unwrap() * TRACE_DISTANCE_MICROS;
        let count = 1 + rng.usize(..7);
        let error = (rng.usize(..100) < 3).then(|| ERROR_MESSAGES[rng.usize(..4)]);
        let spans = (0..count)
            .map(|at| RandomSpan {
                start: start + i64::try_from(at).unwrap() * 200_000,
                lasts: rng.i64(50_000..1_500_000) * if at == 0 { 4 } else { 1 },
                call: (at > 0 || count == 1)
                    .then(|| (MODEL_NAMES[rng.usize(..5)], rng.i64(50..4_000), rng.i64(10..900))),
                error: error.filter(|_| at == 0 || at + 1 == count),
                input: text(&mut rng, 500..4_000),
                output: text(&mut rng, 100..1_500),
            })
            .collect();
        Self {
            id: rng.u128(..),
            spans,
            name: TRACE_NAMES[rng.usize(..TRACE_NAMES.len())],
            session: format!("session-{}", rng.usize(..500)),
            user: format!("user-{}", rng.usize(..200)),
            environment: ["prod", "prod", "prod", "staging"][rng.usize(..4)],
        }
    }

    fn otlp(&self) -> impl Iterator<Item = Span> {
        self.spans.iter().enumerate().map(|(at, source)| {
            let mut span =
                Span::new(self.id, u64::try_from(at).unwrap() + 1, &self.name_of(at), source.start)
                    .until(Some(source.start + source.lasts))
                    .with("input.value", source.input.as_str())
                    .with("output.value", source.output.as_str());
            if let Some((model, prompt, completion)) = source.call {
                span = span.calls(model, prompt, completion);
            }
            if let Some(error) = source.error {
                span = span.failed(error);
            }
            if at > 0 {
                return span.under(1);
            }
            let tags = vec![format!("env:{}", self.environment), format!("name:{}", self.name)];
            span.with("session.id", self.session.as_str())
                .with("user.id", self.user.as_str())
                .with("tag.tags", tags)
        })
    }

    /// Returns the trace as an item of JSON ingest.
    pub fn item(&self) -> Value {
        let spans: Vec<Value> = self
            .spans
            .iter()
            .enumerate()
            .map(|(at, source)| {
                let (model, prompt, completion) =
                    source.call.map_or((None, None, None), |it| (Some(it.0), Some(it.1), Some(it.2)));
                json!({
                    "id": at.to_string(), "parent_span_id": (at > 0).then_some("0"), "name": self.name_of(at),
                    "type": if source.call.is_some() { "llm" } else { "agent" }, "model": model,
                    "prompt_tokens": prompt, "completion_tokens": completion, "error": source.error,
                    "input": source.input, "output": source.output, "latency_ms": source.lasts / 1_000,
                })
            })
            .collect();
        json!({
            "id": Uuid::from_u128(self.id), "session_id": self.session, "user_id": self.user,
            "tags": {"env": self.environment, "name": self.name}, "spans": spans,
        })
    }

    fn name_of(&self, at: usize) -> String {
        if at == 0 { self.name.to_owned() } else { format!("{} step {at}", self.name) }
    }
}

/// Builds an OTLP request with these traces.
pub fn body_otlp(traces: &[Trace]) -> Vec<u8> {
    let spans: Vec<Span> = traces.iter().flat_map(Trace::otlp).collect();
    let request: ExportTraceServiceRequest = serde_json::from_value(otlp::request(&spans)).unwrap();
    request.encode_to_vec()
}

/// Returns the query strings of the list: without a filter, and with each single filter.
pub fn queries(traces: &[Trace]) -> Vec<String> {
    let some = &traces[traces.len() / 2];
    let mut queries: Vec<String> = [
        "",
        "model=gpt-4o",
        "error=true",
        "error=false",
        "failure_type=timeout",
        "failure_type=rate_limit",
        "name=support",
        "tag=env:prod",
        "tag_key=env&tag_value=staging",
        "tag=env",
        "latency_min=2000",
        "latency_min=1000&latency_max=1500",
        "token_count_min=9000",
        "token_count_max=500",
        "min_cost=0.02",
        "from=2026-06-16T00:00:00Z&to=2026-06-18T00:00:00Z",
        "preview=true",
    ]
    .map(str::to_owned)
    .to_vec();
    queries.push(format!("session_id={}", some.session));
    queries.push(format!("user_id={}", some.user));
    queries
}

fn text(rng: &mut Rng, length: std::ops::Range<usize>) -> String {
    let length = rng.usize(length);
    let mut text = String::with_capacity(length + 12);
    while text.len() < length {
        text.push_str(TEXT_WORDS[rng.usize(..TEXT_WORDS.len())]);
        text.push(if rng.usize(..12) == 0 { '.' } else { ' ' });
        if rng.usize(..16) == 0 {
            text.push_str(&rng.u32(10..99_999).to_string());
        }
    }
    text
}
