//! The event `failure.detected`.

use api::Plan;
use serde_json::json;
use tests::{
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};

use super::*;

/// Returns the names of the fields of an object, sorted.
fn fields(object: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Returns the names of the fields in the schema of an object, sorted.
fn documented_fields(schema: &Value) -> Vec<&str> {
    fields(&schema["properties"])
}

on_both_databases! {
    async fn event_has_failure_trace_and_rules(app: TestApp) {
        subscribe(app, app.tenant).await;
        let item = json!({"name": "trip", "session_id": "s1", "user_id": "u1", "external_id": "e1", "latency_ms": 40,
            "spans": [{"name": "call", "type": "llm", "model": "gpt-4o", "error": TIMEOUT_MESSAGE, "prompt_tokens": 3, "completion_tokens": 4}]});
        let trace = ingest_item(&app.full_key(), item).await;
        app.drain().await;
        let sent = events(app).await;
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert_eq!((&sent[0]["type"], &sent[0]["tenant_id"], &sent[0]["project_id"]),
            (&json!("failure.detected"), &json!(app.tenant), &json!(app.project)));
        let data = &sent[0]["data"];
        assert_eq!(data["failure"], failures(app, "").await[0]);
        let summary = &data["trace"];
        assert_eq!((&summary["id"], &summary["name"], &summary["session_id"], &summary["user_id"], &summary["external_id"]),
            (&json!(trace), &json!("trip"), &json!("s1"), &json!("u1"), &json!("e1")));
        assert_eq!((&summary["total_token_count"], &summary["span_count"], &summary["project_id"]), (&json!(7), &json!(1), &json!(app.project)));
        let rules = app.full_key().get("/v1/failure-rules").await.ok();
        let rule = &rules["failure_rules"][0];
        assert_eq!((&data["rules"], &data["evaluation"]), (&json!([{"id": rule["id"], "name": "Any failure"}]), &Value::Null));
        assert_eq!(rule["last_fired_at"], "2026-06-15T12:00:00.000000Z");
    }

    async fn event_has_the_fields_of_the_openapi_document(app: TestApp) {
        subscribe(app, app.tenant).await;
        fail(app, TIMEOUT_MESSAGE).await;
        let document = app.anonymous().get("/v1/openapi.json").await.ok();
        let body = &document["webhooks"]["failure.detected"]["post"]["requestBody"]["content"]["application/json"]["schema"];
        let sent = &events(app).await[0];
        assert_eq!((fields(sent), &sent["type"]), (documented_fields(body), &body["properties"]["type"]["enum"][0]));
        let data = document.pointer(body["properties"]["data"]["$ref"].as_str().unwrap().trim_start_matches('#')).unwrap();
        assert_eq!(fields(&sent["data"]), documented_fields(data));
        for field in ["failure", "trace"] {
            let schema = &data["properties"][field];
            let reference = schema["$ref"].as_str().or_else(|| schema["oneOf"].as_array()?.iter().find_map(|it| it["$ref"].as_str()));
            let of_field = document.pointer(reference.unwrap().trim_start_matches('#')).unwrap();
            assert_eq!(fields(&sent["data"][field]), documented_fields(of_field), "{field}");
        }
    }

    /// A trace causes one event, even if several of its spans fail and several rules fire.
    async fn trace_has_one_event(app: TestApp) {
        subscribe(app, app.tenant).await;
        rule(app, json!({"failure_types": ["timeout"]})).await;
        rule(app, json!({"failure_types": ["rate_limit", "other"]})).await;
        let spans: Vec<Value> = [OTHER_MESSAGE, TIMEOUT_MESSAGE, TIMEOUT_MESSAGE, RATE_LIMIT_MESSAGE].iter().map(|it| json!({"name": "s", "error": it})).collect();
        ingest_item(&app.full_key(), json!({"name": "t", "spans": spans})).await;
        app.drain().await;
        let sent = events(app).await;
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0]["data"]["rules"].as_array().unwrap().len(), 3);
        fail(app, OTHER_MESSAGE).await;
        assert_eq!(events(app).await.len(), 2);
    }

    /// Late spans and replays do not fire the rules again.
    async fn rule_fires_once_for_a_trace(app: TestApp) {
        subscribe(app, app.tenant).await;
        let trace = 0x77;
        for id in 1..4 {
            let span = Span::new(trace, id, "call", TEST_START_MICROS).failed(TIMEOUT_MESSAGE);
            for _ in 0..2 {
                app.full_key().post("/v1/otlp/traces", &request([&span])).await.ok();
                app.drain().await;
                app.advance(30);
            }
        }
        assert_eq!((failures(app, "").await.len(), events(app).await.len()), (3, 1));
    }

    /// Without a webhook, no event is stored, although the rule fires.
    async fn nothing_is_stored_without_webhook(app: TestApp) {
        fail(app, TIMEOUT_MESSAGE).await;
        assert_eq!(events(app).await, Vec::<Value>::new());
        let rules = app.full_key().get("/v1/failure-rules").await.ok();
        assert!(rules["failure_rules"][0]["last_fired_at"].is_string());
    }

    /// Rules do not fire while the plan is too low, and fire again when the plan is restored.
    async fn rules_act_on_their_plan_only(app: TestApp) {
        subscribe(app, app.tenant).await;
        app.set_plan(Plan::Starter).await;
        fail(app, TIMEOUT_MESSAGE).await;
        assert_eq!(events(app).await.len(), 0);
        app.set_plan(Plan::Pro).await;
        fail(app, TIMEOUT_MESSAGE).await;
        assert_eq!(events(app).await.len(), 1);
        app.set_plan(Plan::Team).await;
        assert_eq!(failures(app, "").await.len(), 2);
    }

    async fn events_belong_to_their_tenant(app: TestApp) {
        let (other, theirs) = app.other_tenant(Plan::Enterprise).await;
        subscribe(app, other).await;
        fail(app, TIMEOUT_MESSAGE).await;
        assert_eq!(events(app).await.len(), 0);
        ingest(&theirs, TIMEOUT_MESSAGE).await;
        app.drain().await;
        let sent = events(app).await;
        assert_eq!((sent.len(), &sent[0]["tenant_id"]), (1, &json!(other)));
    }

    /// The deliveries of all events are more than a transaction stores.
    async fn failures_with_many_webhooks_are_all_published_once(app: TestApp) {
        for _ in 0..100 {
            subscribe(app, app.tenant).await;
        }
        let spans = json!([{"name": "s", "error": TIMEOUT_MESSAGE}, {"name": "s", "error": RATE_LIMIT_MESSAGE}]);
        let traces = vec![json!({"name": "t", "spans": spans}); 45];
        app.full_key().post("/v1/ingest/batch", &json!({"traces": traces})).await.ok();
        app.drain().await;
        let sent: Vec<String> = events(app).await.iter().map(|it| it["data"]["trace"]["id"].as_str().unwrap().to_owned()).collect();
        let distinct: std::collections::BTreeSet<_> = sent.iter().collect();
        assert_eq!((sent.len(), distinct.len()), (45, 45));
        assert_eq!(failures(app, "").await.len(), 90);
        let deliveries = entities::webhook_delivery::Entity::find().all(&app.app.db.write).await.unwrap();
        assert_eq!(deliveries.len(), 4_500);
        app.drain().await;
        assert_eq!(events(app).await.len(), 45);
    }
}
