//! Metrics equal the totals of the rows after any change to traces, whatever part of the deltas is folded.

use entities::trace;
use fastrand::Rng;
use serde_json::{Value, json};
use server::metric_folding;
use tests::{
    Caller, TestApp,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};
use uuid::Uuid;

use super::reference::{MetricsQuery, stored_traces};

const DAY: i64 = 86_400_000_000;
const HOUR: i64 = 3_600_000_000;
const MINUTE: i64 = 60_000_000;
const MODEL_NAMES: [&str; 4] = ["gpt-4o", "gpt-4o-mini", "claude-sonnet-4-5", "own"];

on_both_databases! {
    async fn metrics_equal_the_totals_of_the_rows(app: TestApp) {
        let key = app.full_key();
        let owner = app.session(api::Role::Owner);
        let second = owner.post("/v1/projects", &json!({"name": "second"})).await.ok()["id"].as_str().unwrap().to_owned();
        for seed in 0..tests::rounds(6) {
            let mut rng = Rng::with_seed(seed as u64);
            for step in 0..25 {
                change_traces(app, &key, &owner, &second, &mut rng).await;
                if step % 6 == 5 {
                    check_random_query(app, &key, &mut rng, &format!("seed {seed} step {step}")).await;
                }
            }
            metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
            check_random_query(app, &key, &mut rng, &format!("seed {seed} folded")).await;
        }
    }

    /// Traces whose retention has ended are removed from the metrics too.
    async fn purged_traces_are_removed_from_metrics(app: TestApp) {
        let (key, owner) = (app.full_key(), app.session(api::Role::Owner));
        let mut rng = Rng::with_seed(3);
        for _ in 0..3 {
            key.post("/v1/ingest/batch", &batch(&mut rng, TEST_START_MICROS - 20 * DAY, 20 * DAY, 200)).await.ok();
            metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
        }
        let project = owner.request(reqwest::Method::PATCH, &format!("/v1/projects/{}", app.project));
        owner.send(project.json(&json!({"retention_days": 7}))).await.ok();
        server::housekeeping::run_round(&app.app, server::features::ALL).await.unwrap();
        app.drain().await;
        let rows = stored_traces(app).await;
        let kept = |it: &trace::Model| it.project_id != app.project || it.started_at >= TEST_START_MICROS - 7 * DAY;
        assert!(!rows.is_empty() && rows.iter().all(kept));
        for folded in [false, true] {
            if folded {
                metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
            }
            let asked = MetricsQuery { from: TEST_START_MICROS - 30 * DAY, to: TEST_START_MICROS, interval: Some(("day", DAY)), ..MetricsQuery::default() };
            asked.check(&key, &rows, &format!("folded: {folded}")).await;
        }
    }
}

async fn change_traces(app: &TestApp, key: &Caller, owner: &Caller, second: &str, rng: &mut Rng) {
    match rng.u8(0..12) {
        0..3 => {
            key.post("/v1/ingest/batch", &batch(rng, TEST_START_MICROS - 40 * DAY, 41 * DAY, 30)).await.ok();
        }
        // Enough traces within a short period that nodes of every level are divided.
        3 => {
            let (span, at) =
                ([HOUR, MINUTE, 1_000_000, 900][rng.usize(0..4)], TEST_START_MICROS - rng.i64(0..3) * DAY);
            key.post("/v1/ingest/batch", &batch(rng, at, span, 180)).await.ok();
        }
        4..6 => {
            // Spans of a few traces, repeatedly, so that most of them are late.
            let trace = u128::from(rng.u8(1..12));
            let start = TEST_START_MICROS - rng.i64(0..4) * HOUR;
            let mut span = Span::new(trace, rng.u64(1..6), "late", start);
            if rng.bool() {
                span = span.under(1).calls(MODEL_NAMES[rng.usize(0..3)], rng.i64(0..900), 10);
            }
            if rng.u8(0..4) == 0 {
                span = span.failed("it broke");
            }
            span = span.until(rng.bool().then_some(start + rng.i64(0..90) * 100_000));
            key.post("/v1/otlp/traces", &request([&span])).await.ok();
        }
        6..8 => {
            for _ in 0..rng.u8(1..10) {
                if let Some(trace) = random_trace(app, rng).await {
                    owner.delete(&format!("/v1/traces/{}", trace.id)).await;
                }
            }
        }
        8 => {
            for _ in 0..rng.u8(1..6) {
                let Some(trace) = random_trace(app, rng).await else { return };
                let label = ["good", "bad", "neutral"][rng.usize(0..3)];
                let user = ["ann", "ben"][rng.usize(0..2)];
                app.advance(1);
                let said = json!({"trace_id": trace.id, "label": label, "user_id": user});
                key.post("/v1/feedback", &said).await.ok();
            }
        }
        9 => {
            let verb = if rng.bool() { "archive" } else { "unarchive" };
            owner.post(&format!("/v1/projects/{second}/{verb}"), &json!({})).await.ok();
        }
        _ => metric_folding::run_round(&app.app, i64::MAX).await.unwrap(),
    }
}

async fn random_trace(app: &TestApp, rng: &mut Rng) -> Option<trace::Model> {
    let mut rows = stored_traces(app).await;
    (!rows.is_empty()).then(|| rows.swap_remove(rng.usize(0..rows.len())))
}

/// Returns a batch of up to `most` traces that start within `span` microseconds from `at` on.
fn batch(rng: &mut Rng, at: i64, span: i64, most: usize) -> Value {
    let items = (0..rng.usize(most / 2..=most)).map(|_| {
        let mut item = json!({
            "id": Uuid::from_u128(rng.u128(..)),
            "started_at": api::Timestamp::from_micros(at + rng.i64(0..span)),
            "name": format!("step {}", rng.u8(0..3)),
            "tags": {"env": rng.u8(0..2)},
            "latency_ms": (rng.f64() * 11.0).exp() as i64,
            "cost": f64::from(rng.u32(0..1000)) / 1e5,
        });
        if rng.u8(0..5) > 0 {
            item["model"] = json!(MODEL_NAMES[rng.usize(0..4)]);
        }
        if rng.u8(0..5) == 0 {
            item["error"] = json!("timed out");
        }
        if rng.u8(0..9) == 0 {
            item.as_object_mut().unwrap().remove("latency_ms");
        }
        if rng.u8(0..4) == 0 {
            item["project_name"] = json!("second");
        }
        item
    });
    json!({"traces": items.collect::<Vec<_>>()})
}

async fn check_random_query(app: &TestApp, key: &Caller, rng: &mut Rng, what: &str) {
    let rows = stored_traces(app).await;
    let moment = TEST_START_MICROS - rng.i64(0..40 * DAY);
    for (from, to) in [
        (TEST_START_MICROS - 50 * DAY, TEST_START_MICROS + 50 * DAY),
        (TEST_START_MICROS - 30 * DAY, TEST_START_MICROS),
        (moment.min(TEST_START_MICROS - DAY), TEST_START_MICROS - rng.i64(0..DAY)),
        (TEST_START_MICROS - 3 * HOUR, TEST_START_MICROS + rng.i64(0..HOUR)),
        (
            TEST_START_MICROS - 2 * DAY + rng.i64(0..1_000),
            TEST_START_MICROS - 2 * DAY + rng.i64(1_000..2_000),
        ),
        (TEST_START_MICROS + DAY, TEST_START_MICROS + 2 * DAY),
    ] {
        let interval = match (to - from) / DAY {
            0 => [None, Some(("minute", MINUTE)), Some(("hour", HOUR))][rng.usize(0..3)],
            1..=30 => [None, Some(("hour", HOUR)), Some(("day", DAY))][rng.usize(0..3)],
            _ => [None, Some(("day", DAY))][rng.usize(0..2)],
        };
        let group_by = [None, Some("model"), Some("name"), Some("tag:env")][rng.usize(0..4)];
        let asked = MetricsQuery {
            project: rng.bool().then_some(app.project),
            model: (rng.u8(0..4) == 0).then_some(MODEL_NAMES[rng.usize(0..4)]),
            from,
            to,
            interval: interval.filter(|it| group_by.is_none() || (to - from) / it.1 < 700),
            group_by,
        };
        asked.check(key, &rows, what).await;
    }
}
