//! The order of arrival does not matter: however the spans of a trace are permuted, split over requests,
//! repeated or sent concurrently, the stored trace equals that of a single request.
//!
//! Two tenants use the same trace id: one sends the trace at once, the other in pieces. So the ids, which
//! break ties, are equal.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{future::Future, sync::Arc};

use api::Plan;
use entities::trace;
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner},
};
use serde_json::{Value, json};
use tests::{
    Caller, TestApp,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
    stored_spans,
};
use tokio::{runtime::Handle, task::JoinSet};
use uuid::Uuid;

/// Number of cases on each database.
const CASE_COUNT: u32 = 40;

on_both_databases! {
    async fn spans_in_any_order_make_the_same_trace(app: TestApp) {
        let sides = Sides::of(app).await;
        check(&cases(), async |case, trace| sides.compare(app, &case, trace, None).await);
    }

    async fn spans_after_an_item_make_the_same_trace(app: TestApp) {
        let sides = Sides::of(app).await;
        check(&cases(), async |case, trace| {
            let item = json!({"id": Uuid::from_u128(trace), "name": "given", "tags": {"from": "item"}, "spans": [
                {"id": "a", "name": "own", "type": "llm", "model": "gpt-4o", "prompt_tokens": 10, "completion_tokens": 5,
                 "start_time": "2026-06-15T12:00:02Z"},
                {"id": "b", "parent_span_id": "a", "name": "below", "error": "Request timed out"}]});
            sides.compare(app, &case, trace, Some(&item)).await
        });
    }

    async fn item_after_its_spans_is_a_conflict(app: TestApp) {
        let key = app.full_key();
        key.post("/v1/otlp/traces", &request([&Span::new(1, 1, "sent", TEST_START_MICROS)])).await.ok();
        let before = key.get(&format!("/v1/traces/{:032x}", 1)).await.ok();
        let item = json!({"id": Uuid::from_u128(1), "name": "given"});
        assert_eq!(key.post("/v1/ingest", &item).await.is(409, "conflict").json()["identical"], false);
        assert_eq!(key.get(&format!("/v1/traces/{:032x}", 1)).await.ok(), before);
    }
}

/// A trace and the requests that send it.
#[derive(Clone, Debug)]
struct Case {
    spans: Vec<RandomSpan>,
    /// The indexes in `spans` of each request. Every span is in at least one.
    requests: Vec<Vec<usize>>,
    /// Whether all requests are concurrent.
    at_once: bool,
    /// The number of requests after which an upgrade happens: earlier versions stored each span in a row of its own.
    upgrade_after: Option<usize>,
}

/// The random properties of a span.
#[derive(Clone, Debug)]
struct RandomSpan {
    parent: Option<u64>,
    start_s: i64,
    lasts_s: Option<i64>,
    call: Option<(&'static str, i64, i64)>,
    response: Option<u8>,
    failed: Option<&'static str>,
    session: Option<u8>,
    tag: Option<u8>,
    details: Option<(i64, i64)>,
    texts: bool,
    output: bool,
    complete: bool,
    noted: bool,
}

/// Generates a value in one of several cases, and none in the others.
fn rarely<T: Clone + std::fmt::Debug + 'static>(
    of: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Option<T>> {
    prop_oneof![2 => Just(None), 1 => of.prop_map(Some)]
}

fn random_span(count: usize) -> impl Strategy<Value = RandomSpan> {
    let last = u64::try_from(count).unwrap();
    // The range contains one id more than there are spans: this parent never arrives. A span may be its own
    // parent, and cycles may occur.
    let parent = prop_oneof![1 => Just(None), 4 => (1..=last + 1).prop_map(Some)];
    let call = (
        prop_oneof![Just("gpt-4o"), Just("claude-sonnet-4-5"), Just("unknown-model")],
        0..1000_i64,
        0..100_i64,
    );
    let failed = prop_oneof![Just("Request timed out"), Just("429 Too Many Requests"), Just("it broke")];
    (
        (parent, 0..4_i64, rarely(0..4_i64), prop_oneof![Just(None), call.prop_map(Some)]),
        (rarely(0..2_u8), rarely(failed), rarely(0..3_u8), rarely(0..3_u8)),
        (rarely((0..9_i64, 0..3_i64)), any::<bool>(), any::<bool>()),
        (prop::bool::weighted(0.1), prop::bool::weighted(0.3)),
    )
        .prop_map(
            |(
                (parent, start_s, open, call),
                (response, failed, session, tag),
                (details, texts, output),
                (complete, noted),
            )| {
                RandomSpan {
                    parent,
                    start_s,
                    // Most spans have ended.
                    lasts_s: open.map_or(Some(start_s), |it| (it > 0).then_some(it)),
                    call,
                    response,
                    failed,
                    session,
                    tag,
                    details,
                    texts,
                    output,
                    complete,
                    noted,
                }
            },
        )
}

fn cases() -> impl Strategy<Value = Case> {
    (1..9_usize)
        .prop_flat_map(|count| {
            let spans = prop::collection::vec(random_span(count), count);
            let order = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
            let again = prop::collection::vec((0..count, any::<prop::sample::Index>()), 0..6);
            let cuts = prop::collection::vec(any::<bool>(), count);
            (spans, order, again, cuts, any::<bool>(), rarely(0..4_usize))
        })
        .prop_map(|(spans, order, again, cuts, at_once, upgrade_after)| {
            let mut requests = vec![Vec::new()];
            for (at, cut) in order.into_iter().zip(cuts) {
                if cut && !requests[requests.len() - 1].is_empty() {
                    requests.push(Vec::new());
                }
                requests.last_mut().unwrap().push(at);
            }
            for (span, place) in again {
                let place = place.index(requests.len() + 1);
                match requests.get_mut(place) {
                    Some(request) => request.push(span),
                    None => requests.push(vec![span]),
                }
            }
            Case { spans, requests, at_once, upgrade_after }
        })
}

impl RandomSpan {
    fn span(&self, trace: u128, at: usize) -> Span {
        let start = TEST_START_MICROS + self.start_s * 1_000_000;
        let mut span = Span::new(trace, u64::try_from(at).unwrap() + 1, &format!("span {at}"), start)
            .until(self.lasts_s.map(|it| start + it * 1_000_000 + i64::try_from(at).unwrap()));
        if let Some(parent) = self.parent {
            span = span.under(parent);
        }
        if let Some((model, prompt, completion)) = self.call {
            span = span.calls(model, prompt, completion);
        }
        if let Some(response) = self.response {
            span = span.with("gen_ai.response.id", format!("response-{response}"));
        }
        if let Some(message) = self.failed {
            span = span.failed(message);
        }
        if let Some(session) = self.session {
            span =
                span.with("session.id", format!("session-{session}")).with("user.id", format!("user-{at}"));
        }
        if let Some(tag) = self.tag {
            span = span.with("tag.tags", vec![format!("env:{tag}"), format!("only-{at}")]);
        }
        if let Some((cached, reasoning)) = self.details {
            span = span
                .with("gen_ai.usage.cache_read.input_tokens", cached)
                .with("gen_ai.usage.reasoning_tokens", reasoning);
        }
        if self.texts {
            span = span.with("input.value", format!("in {at}"));
        }
        if self.output {
            span = span.with("output.value", format!("out {at}"));
        }
        if self.complete {
            span = span.with("trace.complete", true);
        }
        if self.noted {
            span = span.noting("first").noting("second");
        }
        span
    }
}

/// Runs the cases, each with its own trace id, and shrinks a failing case.
fn check(cases: &impl Strategy<Value = Case>, test: impl AsyncFn(Case, u128) -> Result<(), TestCaseError>) {
    let config =
        Config { cases: CASE_COUNT, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let trace = std::cell::Cell::new(0x5eed_0000_u128);
    let outcome = blocking(|runtime| {
        runner.run(cases, |case| {
            trace.set(trace.get() + 1);
            runtime.block_on(test(case, trace.get()))
        })
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// Runs synchronous code that waits for asynchronous code.
fn blocking<T>(work: impl FnOnce(&Handle) -> T) -> T {
    tokio::task::block_in_place(|| work(&Handle::current()))
}

/// The tenant that sends a trace at once, and the one that sends it in pieces.
struct Sides {
    whole: (Uuid, Caller),
    pieces: (Uuid, Caller),
}

impl Sides {
    async fn of(app: &TestApp) -> Self {
        Self { whole: (app.tenant, app.full_key()), pieces: app.other_tenant(Plan::Enterprise).await }
    }

    async fn compare(
        &self,
        app: &TestApp,
        case: &Case,
        trace: u128,
        item: Option<&Value>,
    ) -> Result<(), TestCaseError> {
        let spans: Vec<Span> = case.spans.iter().enumerate().map(|(at, it)| it.span(trace, at)).collect();
        if let Some(item) = item {
            for (_, key) in [&self.whole, &self.pieces] {
                assert_eq!(key.post("/v1/ingest", item).await.status, 201);
            }
        }
        self.whole.1.post("/v1/otlp/traces", &request(&spans)).await.ok();
        let requests = case.requests.iter().map(|it| request(it.iter().map(|at| &spans[*at])));
        if case.at_once {
            all(requests.map(|body| send(self.pieces.1.clone(), body))).await;
        } else {
            for (sent, body) in requests.enumerate() {
                if case.upgrade_after == Some(sent) {
                    stored_spans::move_into_rows(app, self.pieces.0).await;
                }
                send(self.pieces.1.clone(), body).await;
            }
        }
        let (whole, pieces) = (stored(app, &self.whole, trace).await, stored(app, &self.pieces, trace).await);
        prop_assert_eq!(&whole.detail, &pieces.detail);
        prop_assert_eq!(&whole.row, &pieces.row);
        let count = case.spans.len() + item.map_or(0, |it| it["spans"].as_array().unwrap().len());
        prop_assert_eq!(whole.detail["span_count"].as_u64(), u64::try_from(count).ok());
        Ok(())
    }
}

async fn send(key: Caller, body: Value) {
    key.post("/v1/otlp/traces", &body).await.ok();
}

async fn all(requests: impl Iterator<Item = impl Future<Output = ()> + Send + 'static>) {
    let mut tasks = JoinSet::new();
    for request in requests {
        tasks.spawn(request);
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

/// The stored rows of a trace, without values that depend on the tenant or the requests.
struct StoredTrace {
    detail: Value,
    row: trace::Model,
}

async fn stored(app: &TestApp, (tenant, key): &(Uuid, Caller), trace: u128) -> StoredTrace {
    let mut detail = key.get(&format!("/v1/traces/{trace:032x}")).await.ok();
    detail.as_object_mut().unwrap().remove("project_id");
    for span in detail["spans"].as_array_mut().unwrap() {
        span.as_object_mut().unwrap().retain(|name, _| name != "tenant_id" && name != "created_at");
    }
    let id = Uuid::from_u128(trace);
    let db = Arc::clone(&app.app);
    let row = store::traces::by_id(&db.db.read, *tenant, id).one(&db.db.read).await.unwrap().unwrap();
    let row = trace::Model {
        tenant_id: Uuid::nil(),
        key: 0,
        project_id: Uuid::nil(),
        body_id: None,
        body_index: 0,
        // Text blocks depend on the requests; their contents are compared in the detail.
        input_body_id: row.input_body_id.map(|_| Uuid::nil()),
        input_body_index: row.input_body_index.map(|_| 0),
        output_body_id: row.output_body_id.map(|_| Uuid::nil()),
        output_body_index: row.output_body_index.map(|_| 0),
        created_at: 0,
        updated_at: 0,
        ..row
    };
    StoredTrace { detail, row }
}
