//! What failure rules match.

use serde_json::json;
use tests::{
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};

use super::*;

/// Returns the traces of all events, oldest first.
async fn notified(app: &TestApp) -> Vec<Value> {
    events(app).await.iter().map(|it| it["data"]["trace"]["id"].clone()).collect()
}

on_both_databases! {
    /// The default rule matches the four types and not others.
    async fn default_rule_matches_the_four_types(app: TestApp) {
        subscribe(app, app.tenant).await;
        let mut expected = Vec::new();
        for message in [TIMEOUT_MESSAGE, OTHER_MESSAGE, RATE_LIMIT_MESSAGE, INVALID_RESPONSE_MESSAGE, CONTEXT_LENGTH_MESSAGE] {
            app.advance(1);
            let trace = fail(app, message).await;
            if message != OTHER_MESSAGE {
                expected.push(json!(trace));
            }
        }
        assert_eq!(notified(app).await, expected);
    }

    async fn rule_matches_its_types_and_project(app: TestApp) {
        subscribe(app, app.tenant).await;
        without_rules(app).await;
        let key = app.full_key();
        let elsewhere = key.post("/v1/projects", &json!({"name": "elsewhere"})).await.ok()["id"].clone();
        rule(app, json!({"failure_types": ["other"], "project_id": elsewhere})).await;
        fail(app, OTHER_MESSAGE).await;
        let item = |message: &str| json!({"name": "t", "project_name": "elsewhere", "spans": [{"name": "s", "error": message}]});
        ingest_item(&key, item(TIMEOUT_MESSAGE)).await;
        let expected = ingest_item(&key, item(OTHER_MESSAGE)).await;
        app.drain().await;
        assert_eq!(notified(app).await, [json!(expected)]);
    }

    /// Each condition of the filter, with a trace that meets it and one that does not.
    async fn rule_matches_its_filter(app: TestApp) {
        subscribe(app, app.tenant).await;
        let key = app.full_key();
        let span = |kind: &str, model: &str| json!({"name": "s", "type": kind, "model": model, "error": TIMEOUT_MESSAGE});
        let cases = [
            (json!({"model": "m1"}), json!({"spans": [span("llm", "m1")]}), json!({"spans": [span("llm", "m2")]})),
            (json!({"name": "trip"}), json!({"name": "trip", "spans": [span("llm", "m")]}), json!({"name": "tripe", "spans": [span("llm", "m")]})),
            (json!({"tag": "env:prod"}), json!({"tags": {"env": "prod"}, "spans": [span("llm", "m")]}), json!({"tags": {"env": "dev"}, "spans": [span("llm", "m")]})),
            (json!({"error": true}), json!({"error": "all of it", "spans": [span("llm", "m")]}),
                json!({"name": "recovered", "spans": [{"id": "r", "name": "root"}, {"name": "s", "parent_span_id": "r", "error": TIMEOUT_MESSAGE}]})),
            (json!({"span_type": "tool"}), json!({"spans": [span("tool", "m")]}), json!({"spans": [span("llm", "m")]})),
        ];
        for (filter, yes, no) in cases {
            without_rules(app).await;
            let before = events(app).await.len();
            rule(app, json!({"filter": filter})).await;
            let expected = ingest_item(&key, yes).await;
            ingest_item(&key, no).await;
            app.drain().await;
            app.advance(30);
            app.drain().await;
            assert_eq!(notified(app).await[before..], [json!(expected)], "{filter}");
        }
    }

    /// The failing span comes first, and the root span with the name later.
    async fn filter_is_compared_again_when_the_trace_is_ready(app: TestApp) {
        subscribe(app, app.tenant).await;
        without_rules(app).await;
        rule(app, json!({"filter": {"name": "checkout"}})).await;
        let (named, unnamed) = (0x11_u128, 0x22_u128);
        let send = async |span: &Span| _ = app.full_key().post("/v1/otlp/traces", &request([span])).await.ok();
        for trace in [named, unnamed] {
            send(&Span::new(trace, 2, "call", TEST_START_MICROS).under(1).failed(TIMEOUT_MESSAGE)).await;
        }
        app.drain().await;
        assert_eq!(notified(app).await, Vec::<Value>::new());
        app.advance(300);
        send(&Span::new(named, 1, "checkout", TEST_START_MICROS)).await;
        send(&Span::new(unnamed, 1, "browse", TEST_START_MICROS)).await;
        app.drain().await;
        assert_eq!(notified(app).await, Vec::<Value>::new(), "the traces are not ready");
        for _ in 0..3 {
            app.advance(600);
            app.drain().await;
        }
        assert_eq!(notified(app).await, [json!(Uuid::from_u128(named))]);
    }

    /// A rule with a threshold fires for a trace if enough traces matched within the window that ends with
    /// it.
    async fn threshold_counts_traces_within_the_window(app: TestApp) {
        subscribe(app, app.tenant).await;
        without_rules(app).await;
        rule(app, json!({"min_count": 3, "window_minutes": 10})).await;
        // Several failures of a trace count once.
        let spans = json!([{"name": "s", "error": TIMEOUT_MESSAGE}, {"name": "s", "error": RATE_LIMIT_MESSAGE}, {"name": "s", "error": TIMEOUT_MESSAGE}]);
        ingest_item(&app.full_key(), json!({"name": "t", "spans": spans})).await;
        app.drain().await;
        app.advance(300);
        fail(app, TIMEOUT_MESSAGE).await;
        assert_eq!(notified(app).await.len(), 0);
        // Eleven minutes after the first match, the window contains only two.
        app.advance(360);
        fail(app, TIMEOUT_MESSAGE).await;
        assert_eq!(notified(app).await.len(), 0);
        app.advance(60);
        let third = fail(app, TIMEOUT_MESSAGE).await;
        assert_eq!(notified(app).await, [json!(third)]);
        // Five traces of one commit match at the same time: the rule fires for the third and the later
        // ones.
        app.advance(3_600);
        let item = json!({"name": "t", "spans": [{"name": "s", "error": TIMEOUT_MESSAGE}]});
        app.full_key().post("/v1/ingest/batch", &json!({"traces": vec![item; 5]})).await.ok();
        app.drain().await;
        assert_eq!(notified(app).await.len(), 4);
    }

    /// The first trace fails five minutes before the second one. Only then does its root arrive, so that its name
    /// matches the rule.
    async fn threshold_ignores_failures_after_the_window(app: TestApp) {
        subscribe(app, app.tenant).await;
        without_rules(app).await;
        rule(app, json!({"filter": {"name": "checkout"}, "min_count": 2, "window_minutes": 1})).await;
        let send = async |spans: &[&Span]| {
            _ = app.full_key().post("/v1/otlp/traces", &request(spans.iter().copied())).await.ok();
            app.drain().await;
        };
        let (first, second) = (0x33_u128, 0x44_u128);
        send(&[&Span::new(first, 2, "call", TEST_START_MICROS).under(1).failed(TIMEOUT_MESSAGE)]).await;
        app.advance(300);
        send(&[&Span::new(second, 1, "checkout", TEST_START_MICROS).failed(TIMEOUT_MESSAGE)]).await;
        send(&[&Span::new(first, 1, "checkout", TEST_START_MICROS)]).await;
        for _ in 0..3 {
            app.advance(600);
            app.drain().await;
        }
        assert_eq!(notified(app).await, Vec::<Value>::new());
    }

    async fn disabled_and_deleted_rules_do_not_fire(app: TestApp) {
        subscribe(app, app.tenant).await;
        without_rules(app).await;
        let key = app.full_key();
        fail(app, TIMEOUT_MESSAGE).await;
        let id = rule(app, json!({"enabled": false})).await;
        let path = format!("/v1/failure-rules/{id}");
        fail(app, TIMEOUT_MESSAGE).await;
        assert_eq!(notified(app).await.len(), 0);
        patch(&key, &path, &json!({"enabled": true})).await.ok();
        let expected = fail(app, TIMEOUT_MESSAGE).await;
        assert_eq!(key.delete(&path).await.status, 204);
        fail(app, TIMEOUT_MESSAGE).await;
        assert_eq!(notified(app).await, [json!(expected)]);
    }
}
