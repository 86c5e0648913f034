//! Valid and invalid metrics queries.

use serde_json::{Value, json};
use server::metric_folding;
use tests::{app::TEST_START_MICROS, on_both_databases};

const HOUR: i64 = 3_600_000_000;

on_both_databases! {
    async fn metrics_without_traces_are_zero_or_null(app: TestApp) {
        let nothing = json!({"error_rate": null, "latency_p50": null, "latency_p95": null, "latency_p99": null,
            "total_cost": 0.0, "trace_count": 0, "feedback_good_rate": null});
        let response = app.full_key().get("/v1/metrics").await.ok();
        let day_before = at(TEST_START_MICROS - 24 * HOUR);
        assert_eq!(response, json!({"from": day_before, "to": at(TEST_START_MICROS), "metrics": nothing}));
        let response = app.full_key().get("/v1/metrics?window=1h&interval=minute&group_by=model").await.ok();
        assert_eq!(response["series"].as_array().unwrap().len(), 61);
        assert_eq!((&response["groups"], &response["groups_truncated"]), (&json!([]), &json!(false)));
    }

    /// A window ends now and includes both of its ends.
    async fn metrics_window_includes_both_of_its_ends(app: TestApp) {
        let key = app.full_key();
        let starts = [0, 1, 60, 61, 24 * 60, 24 * 60 + 1, 7 * 24 * 60, 30 * 24 * 60, 31 * 24 * 60];
        let traces: Vec<Value> = starts.iter().map(|it| json!({"started_at": at(TEST_START_MICROS - it * 60_000_000)})).collect();
        key.post("/v1/ingest/batch", &json!({"traces": traces})).await.ok();
        key.post("/v1/ingest", &json!({"started_at": at(TEST_START_MICROS + 1), "name": "yet to come"})).await.ok();
        key.post("/v1/ingest", &json!({"started_at": at(TEST_START_MICROS - HOUR - 1), "name": "just before"})).await.ok();
        for _ in 0..2 {
            for (window, count) in [("1h", 3), ("24h", 6), ("7d", 8), ("30d", 9)] {
                let response = key.get(&format!("/v1/metrics?window={window}")).await.ok();
                assert_eq!(response["metrics"]["trace_count"], count, "{window}");
            }
            // Both ends take precedence over the window; with one end, the window determines the other.
            let path = format!("/v1/metrics?window=1h&from={}&to={}", at(TEST_START_MICROS - 30 * 24 * HOUR), at(TEST_START_MICROS));
            assert_eq!(key.get(&path).await.ok()["metrics"]["trace_count"], 9);
            let response = key.get(&format!("/v1/metrics?window=1h&to={}", at(TEST_START_MICROS - HOUR))).await.ok();
            assert_eq!((&response["from"], &response["metrics"]["trace_count"]), (&json!(at(TEST_START_MICROS - 2 * HOUR)), &json!(3)));
            let response = key.get(&format!("/v1/metrics?from={}", at(TEST_START_MICROS - HOUR))).await.ok();
            assert_eq!((&response["to"], &response["metrics"]["trace_count"]), (&json!(at(TEST_START_MICROS)), &json!(3)));
            metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
        }
    }

    async fn invalid_metrics_query_is_rejected(app: TestApp) {
        let key = app.full_key();
        let hundred_years = "from=1926-01-01T00:00:00Z&to=2026-01-01T00:00:00Z";
        for query in [
            "window=2h", "window=24H", "window=0", "interval=second", "interval=60", "group_by=user", "group_by=tag:",
            "group_by=tag", "window=", "project_id=x", "from=yesterday", "from=2026-06-15T12:00:00Z&to=2026-06-15T11:00:00Z",
            "from=2026-06-16T12:00:00Z&to=2026-06-15T11:00:00Z&interval=day",
            &format!("{hundred_years}&interval=minute"), &format!("{hundred_years}&interval=hour"),
            &format!("{hundred_years}&interval=day"),
            "window=30d&interval=minute", "window=24h&interval=minute&group_by=model",
        ] {
            key.get(&format!("/v1/metrics?{query}")).await.is(400, "invalid_query");
        }
        for query in [
            hundred_years, "window=7d&interval=minute", "window=30d&interval=hour&group_by=name",
            "from=2126-01-01T00:00:00Z", "from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59Z", "unknown=1",
            "to=0001-01-01T00:00:00Z", "metric=error_rate",
        ] {
            assert_eq!(key.get(&format!("/v1/metrics?{query}")).await.ok()["metrics"]["trace_count"], 0, "{query}");
        }
    }

    async fn metrics_exclude_other_tenants(app: TestApp) {
        let (_, theirs) = app.other_tenant(api::Plan::Starter).await;
        theirs.post("/v1/ingest", &json!({"name": "theirs"})).await.ok();
        for _ in 0..2 {
            assert_eq!(app.full_key().get("/v1/metrics").await.ok()["metrics"]["trace_count"], 0);
            let path = format!("/v1/metrics?project_id={}", app.project);
            assert_eq!(theirs.get(&path).await.ok()["metrics"]["trace_count"], 0);
            assert_eq!(theirs.get("/v1/metrics").await.ok()["metrics"]["trace_count"], 1);
            metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
        }
    }

    /// The response contains the hundred largest groups, and says whether there are more.
    async fn metrics_groups_are_limited_to_the_largest_hundred(app: TestApp) {
        let key = app.full_key();
        for batch in 0..3 {
            let traces: Vec<Value> = (0..400)
                .map(|i| {
                    let one = if i % 4 == 0 { "big".to_owned() } else { format!("m{batch}-{i}") };
                    json!({"name": one, "model": one, "tags": {"t": one}, "latency_ms": i / 4,
                        "started_at": at(TEST_START_MICROS - i * 1_000)})
                })
                .collect();
            key.post("/v1/ingest/batch", &json!({"traces": traces})).await.ok();
        }
        for _ in 0..2 {
            for by in ["model", "name", "tag:t"] {
                let response = key.get(&format!("/v1/metrics?group_by={by}")).await.ok();
                assert_eq!(response["metrics"]["trace_count"], 1_200);
                let groups = response["groups"].as_array().unwrap();
                assert_eq!((groups.len(), &response["groups_truncated"]), (100, &json!(true)), "{by}");
                assert_eq!((&groups[0]["key"], &groups[0]["metrics"]["trace_count"]), (&json!("big"), &json!(300)));
            }
            // A model for which the nodes have no separate totals.
            let response = key.get("/v1/metrics?model=m2-399").await.ok();
            assert_eq!((&response["metrics"]["trace_count"], &response["metrics"]["latency_p50"]), (&json!(1), &json!(99.0)));
            assert_eq!(key.get("/v1/metrics?model=big").await.ok()["metrics"]["trace_count"], 300);
            metric_folding::run_round(&app.app, i64::MAX).await.unwrap();
        }
    }
}

fn at(micros: i64) -> String {
    api::Timestamp::from_micros(micros).to_string()
}
