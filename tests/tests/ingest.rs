//! JSON ingest over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::json;
use tests::on_both_databases;

on_both_databases! {
    async fn json_item_is_stored_priced_and_listed(app: TestApp) {
        let key = app.full_key();
        let item = json!({
            "id": "order-1", "name": "answer", "input": "Where is it?", "output": "On its way.",
            "tags": {"env": "prod", "vip": "", "attempt": 2}, "session_id": "s-1", "user_id": "u-1",
            "metadata": {"k": [1, {"x": null}]},
            "spans": [
                {"id": "root", "name": "answer", "latency_ms": 1200},
                {"id": "call", "parent_span_id": "root", "name": "chat", "type": "llm",
                 "model": "openai/gpt-4o-2024-08-06", "prompt_tokens": 1000, "completion_tokens": 100},
            ],
            "events": [{"message": "sent", "span_id": "call"}],
        });
        let made = key.post("/v1/ingest", &item).await;
        assert_eq!(made.status, 201);
        let made = made.json();
        assert_eq!(made["external_id"], "order-1");
        assert_eq!((made["span_count"].as_i64(), made["total_token_count"].as_i64()), (Some(2), Some(1100)));
        assert_eq!(made["cost"], 0.0035);

        let list = key.get("/v1/traces").await.ok();
        let row = &list["traces"][0];
        assert_eq!(row["tags"], json!(["attempt:2", "env:prod", "vip"]));
        assert_eq!(row["tag_map"], json!({"attempt": "2", "env": "prod", "vip": ""}));
        assert_eq!(row["metadata"], json!({"k": [1, {"x": null}]}));
        assert_eq!(row["latency_ms"], 1200);
        assert_eq!(row["started_at"], "2026-06-15T12:00:00.000000Z");
        assert!(row.get("spans").is_none());

        let detail = key.get(&format!("/v1/traces/{}", made["id"].as_str().unwrap())).await.ok();
        assert_eq!(detail["control_loop_depth"], 0);
        assert_eq!(detail["spans"].as_array().unwrap().len(), 2);
        assert_eq!(detail["events"][0]["message"], "sent");
        let call = detail["spans"].as_array().unwrap().iter().find(|it| it["name"] == "chat").unwrap();
        assert_eq!(call["metadata"]["cost_details"]["source"], "price_table");
        assert_eq!(call["error"], json!(null));
    }

    async fn repeated_trace_id_changes_nothing(app: TestApp) {
        let key = app.full_key();
        let item = json!({"id": "once", "name": "first"});
        key.post("/v1/ingest", &item).await.ok();
        let again = key.post("/v1/ingest", &item).await;
        assert_eq!(again.is(409, "conflict").json()["identical"], true);
        let other = key.post("/v1/ingest", &json!({"id": "once", "name": "second"})).await;
        assert_eq!(other.is(409, "conflict").json()["identical"], false);
        let batch = json!({"traces": [{"id": "once"}, {"id": "twice"}, {"id": "twice"}, {"latency_ms": -1}, {"name": 5}]});
        let result = key.post("/v1/ingest/batch", &batch).await.ok();
        let statuses: Vec<_> = result["results"].as_array().unwrap().iter().map(|it| it["status"].clone()).collect();
        assert_eq!(statuses, ["duplicate", "accepted", "duplicate", "rejected", "rejected"]);
        assert_eq!((result["accepted"].as_i64(), result["rejected"].as_i64()), (Some(1), Some(2)));
        assert_eq!(result["results"][3]["code"], "validation_failed");
        assert_eq!(result["results"][4]["code"], "invalid_body");
        assert_eq!(key.get("/v1/traces").await.ok()["traces"].as_array().unwrap().len(), 2);
    }

    async fn json_trace_is_ready_immediately(app: TestApp) {
        let key = app.full_key();
        let id = key.post("/v1/ingest", &json!({"id": "r"})).await.ok()["id"].as_str().unwrap().to_owned();
        let ready = async || {
            let detail = key.get(&format!("/v1/traces/{id}")).await.ok()["ready"].clone();
            assert_eq!(key.get("/v1/traces").await.ok()["traces"][0]["ready"], detail);
            detail
        };
        assert_eq!(ready().await, true);
        // The job that evaluates rules runs afterwards, once.
        assert_eq!(app.drain().await, 1);
        assert_eq!(ready().await, true);
        assert_eq!(app.drain().await, 0);
    }

    async fn non_nullable_fields_have_default_values(app: TestApp) {
        let key = app.full_key();
        let item = json!({"id": "bare", "spans": [{"name": "no times"}, {"name": "latency", "latency_ms": 250},
            {"name": "start", "start_time": "2026-06-15T11:59:00Z"}, {"name": "later", "start_time": "2026-06-15T13:00:00Z"}]});
        let id = key.post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned();
        let detail = key.get(&format!("/v1/traces/{id}")).await.ok();
        assert_eq!(detail["metadata"], json!({}));
        assert_eq!(key.get("/v1/traces").await.ok()["traces"][0]["metadata"], json!({}));
        let said = key.post("/v1/feedback", &json!({"trace_id": id, "label": "good"})).await.ok();
        assert_eq!(said["metadata"], json!({}));
        assert_eq!(key.get("/v1/feedback").await.ok()["feedback"][0]["metadata"], json!({}));
        // The tests' clock is at noon, which is the time of receipt.
        let noon = "2026-06-15T12:00:00.000000Z";
        for (name, start, end) in [
            ("no times", noon, noon),
            ("latency", noon, "2026-06-15T12:00:00.250000Z"),
            ("start", "2026-06-15T11:59:00.000000Z", noon),
            ("later", "2026-06-15T13:00:00.000000Z", "2026-06-15T13:00:00.000000Z"),
        ] {
            let span = detail["spans"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
            assert_eq!((&span["start_time"], &span["end_time"]), (&json!(start), &json!(end)), "{name}");
        }
    }
}
