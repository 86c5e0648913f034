//! The contents and the errors of an export.

use std::time::Duration;

use api::Role;
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    TestApp,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};

use crate::lines;

/// Stores a trace with this many spans.
async fn send_long(app: &TestApp, trace: u128, spans: u64) {
    for first in (1..=spans).step_by(500) {
        let block: Vec<Span> = (first..(first + 500).min(spans + 1))
            .map(|id| {
                let at = TEST_START_MICROS + i64::try_from(id).unwrap();
                let span = Span::new(trace, id, "step", at).with("input.value", format!("text {id}"));
                if id == 1 { span } else { span.under(1).noting("seen") }
            })
            .collect();
        app.full_key().post("/v1/otlp/traces", &request(&block)).await.ok();
    }
}

on_both_databases! {
    async fn jsonl_line_equals_trace_detail(app: TestApp) {
        let key = app.full_key();
        for name in ["a", "b"] {
            let item = json!({"name": name, "tags": {"env": name}, "input": "in", "spans": [{"name": "s", "output": "o"},
                {"name": "t", "type": "tool"}], "events": [{"message": "e"}, {"message": "f", "level": "debug"}]});
            key.post("/v1/ingest", &item).await.ok();
            app.advance(1);
        }
        key.post("/v1/otlp/traces", &request([&Span::new(9, 1, "otel", TEST_START_MICROS).failed("Timeout").noting("n")])).await.ok();
        key.post("/v1/ingest", &json!({"name": "bare", "started_at": "2020-01-01T00:00:00Z"})).await.ok();
        let exported = lines(&key, "").await;
        let list = key.get("/v1/traces").await.ok();
        assert_eq!(exported.len(), 4);
        for (line, listed) in exported.iter().zip(list["traces"].as_array().unwrap()) {
            let id = listed["id"].as_str().unwrap();
            assert_eq!(*line, key.get(&format!("/v1/traces/{id}")).await.ok());
        }
        let some = lines(&key, "?format=jsonl&tag=env:b").await;
        assert_eq!((some.len(), &some[0]["name"]), (1, &json!("b")));
        assert!(lines(&key, "?name=nothing").await.is_empty());
        assert!(lines(&key, "?format=otlp&name=nothing").await.is_empty());
    }

    async fn export_declares_content_type_and_file_name(app: TestApp) {
        let key = app.full_key();
        let reply = key.get("/v1/traces/export").await;
        assert_eq!(reply.headers["content-type"], "application/x-ndjson");
        assert_eq!(reply.headers["content-disposition"], "attachment; filename=\"traces-20260615T120000.jsonl\"");
        let reply = key.get("/v1/traces/export?format=otlp").await;
        assert_eq!(reply.headers["content-disposition"], "attachment; filename=\"traces-20260615T120000.otlp.jsonl\"");
    }

    async fn invalid_export_parameter_is_rejected(app: TestApp) {
        let key = app.full_key();
        for query in ["format=csv", "from=yesterday", "latency_min=-1", "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "error=maybe", "project_id=x", "q=%00"] {
            key.get(&format!("/v1/traces/export?{query}")).await.is(400, "invalid_query");
        }
        key.get("/v1/traces/export?tag_key=a").await.is(400, "error.tags_filter_incomplete");
    }

    async fn long_trace_is_exported_completely(app: TestApp) {
        let key = app.full_key();
        send_long(app, 5, 2_600).await;
        key.post("/v1/ingest", &json!({"name": "short", "spans": [{"name": "s"}]})).await.ok();
        let exported = lines(&key, "").await;
        let long = exported.iter().find(|it| it["name"] == "step").unwrap();
        let spans = long["spans"].as_array().unwrap();
        assert_eq!((exported.len(), spans.len(), long["events"].as_array().unwrap().len()), (2, 2_600, 2_599));
        assert!(spans.is_sorted_by_key(|it| it["start_time"].as_str().unwrap()));
        let inputs: std::collections::BTreeSet<_> = spans.iter().map(|it| it["input"].as_str().unwrap()).collect();
        assert_eq!(inputs.len(), 2_600);
    }

    async fn export_contains_only_own_traces(app: TestApp) {
        let (_, theirs) = app.other_tenant(api::Plan::Starter).await;
        theirs.post("/v1/ingest", &json!({"name": "theirs"})).await.ok();
        assert!(lines(&app.session(Role::Viewer), "").await.is_empty());
    }

    /// A client can tell from an interrupted export that it is incomplete.
    async fn export_interrupted_by_shutdown_is_truncated(app: TestApp) {
        let key = app.full_key();
        let item = |i: usize| json!({"name": i.to_string(), "input": "x".repeat(200_000)});
        for i in 0..6 {
            let items: Vec<Value> = (0..40).map(|it| item(i * 40 + it)).collect();
            key.post("/v1/ingest/batch", &json!({"traces": items})).await.ok();
        }
        let mut response = key.request(Method::GET, "/v1/traces/export").send().await.unwrap();
        assert!(response.chunk().await.unwrap().is_some());
        app.app.stopping().cancel();
        let rest = async {
            while response.chunk().await?.is_some() {}
            Ok::<_, reqwest::Error>(())
        };
        let ended = tokio::time::timeout(Duration::from_secs(20), rest).await.expect("it ends");
        assert!(ended.is_err(), "the body ended as if it were whole");
    }
}
