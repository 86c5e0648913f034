//! Bulk evaluations and backfills of eval rules.

use api::Plan;
use serde_json::{Value, json};
use tests::on_both_databases;

use super::{create_rule, evaluations, timed, trace};

on_both_databases! {
    async fn bulk_filter_selects_traces(app: TestApp) {
        let key = app.full_key();
        for i in 0..9 {
            trace(&key, json!({"name": if i % 3 == 0 { "a" } else { "b" }, "latency_ms": i, "tags": {"n": (i % 2).to_string()}})).await;
            app.advance(1);
        }
        let ask = |filter: Value| json!({"metric_name": "latency_threshold", "config": {"max_latency_ms": 4}, "filter": filter});
        let begun = key.post("/v1/eval/bulk", &ask(json!({"name": "b", "latency_min": 2, "tag": ["n:1", "n"], "error": false}))).await;
        assert_eq!(begun.status, 202);
        let begun = begun.ok();
        assert_eq!((&begun["matched"], &begun["queued"]), (&json!(2), &json!(2)), "{begun}");
        let path = format!("/v1/eval/bulk/{}", begun["bulk_id"].as_str().unwrap());
        let waiting = key.get(&path).await.ok();
        assert_eq!((&waiting["status"], &waiting["pending"], &waiting["complete"]), (&json!("running"), &json!(2), &json!(0)));
        // Later traces are not part of the run.
        app.advance(1);
        trace(&key, json!({"name": "b", "latency_ms": 7, "tags": {"n": "1"}})).await;
        app.drain().await;
        let done = key.get(&path).await.ok();
        assert_eq!(done, json!({"bulk_id": begun["bulk_id"], "metric_name": "latency_threshold", "rule_id": null, "status": "complete",
            "matched": 2, "queued": 2, "pending": 0, "running": 0, "complete": 2, "failed": 0, "detail": null, "created_at": done["created_at"]}));
        let rows = evaluations(&key, "").await;
        assert!(rows.iter().all(|it| it["bulk_id"] == begun["bulk_id"] && it["status"] == "complete"), "{rows:?}");
        let all = key.post("/v1/eval/bulk", &ask(Value::Null)).await.ok();
        assert_eq!((&all["matched"], &all["queued"]), (&json!(10), &json!(10)));
        let none = key.post("/v1/eval/bulk", &ask(json!({"name": "unknown"}))).await.ok();
        assert_eq!((&none["matched"], &none["queued"]), (&json!(0), &json!(0)));
        app.drain().await;
        let ended = key.get(&format!("/v1/eval/bulk/{}", none["bulk_id"].as_str().unwrap())).await.ok();
        assert_eq!(ended["status"], "complete");
        assert_eq!(evaluations(&key, "").await.len(), 12);
        trace(&key, json!({"external_id": "order 7", "latency_ms": 1})).await;
        let by_name = key.post("/v1/eval/bulk", &ask(json!({"external_id": "order 7", "session_id": null}))).await.ok();
        assert_eq!(by_name["matched"], 1);
        trace(&key, json!({"tags": {"bare": ""}, "latency_ms": 1})).await;
        let bare = key.post("/v1/eval/bulk", &ask(json!({"tag_key": "bare", "tag_value": ""}))).await.ok();
        assert_eq!(bare["matched"], 1);
    }

    async fn invalid_bulk_request_is_rejected(app: TestApp) {
        let key = app.full_key();
        timed(&key, 1).await;
        let good = json!({"metric_name": "latency_threshold", "config": {"max_latency_ms": 4}});
        for (filter, field) in [
            (json!({"q": "words"}), "filter.q"), (json!({"modle": "m"}), "filter.modle"), (json!({"name": {"a": 1}}), "filter.name"),
            (json!({"session_id": ""}), "filter.session_id"), (json!({"model": ["a", "b"]}), "filter.model"), (json!({"name": []}), "filter.name"),
            (json!({"tag": []}), "filter.tag"), (json!({"tag": ["a", ""]}), "filter.tag"), (json!({"tag": [null]}), "filter.tag"),
            (json!({"latency_min": "x"}), "filter"), (json!({"from": "never"}), "filter"), (json!({"tag_key": "only"}), "filter"),
        ] {
            let mut body = good.clone();
            body["filter"] = filter.clone();
            let reply = key.post("/v1/eval/bulk", &body).await;
            reply.is(422, "validation_failed");
            assert_eq!(reply.json()["fields"][0]["field"], field, "{filter}");
        }
        let (_, other) = app.other_tenant(Plan::Team).await;
        let other = other.get("/v1/projects").await.ok()["projects"][0]["id"].clone();
        for project in [other, json!(app.tenant)] {
            let mut body = good.clone();
            body["filter"] = json!({"project_id": project});
            key.post("/v1/eval/bulk", &body).await.is(404, "not_found");
        }
        key.post("/v1/eval/bulk", &json!({"metric_name": "nonsense"})).await.is(422, "validation_failed");
        key.post("/v1/eval/bulk", &json!({"filter": {}})).await.is(400, "invalid_body");
        key.post("/v1/eval/bulk", &json!({"metric_name": "latency_threshold", "filter": []})).await.is(400, "invalid_body");
        key.get(&format!("/v1/eval/bulk/{}", app.project)).await.is(404, "not_found");
        app.drain().await;
        assert_eq!(evaluations(&key, "").await.len(), 0);
    }

    /// More traces than one transaction processes.
    async fn bulk_of_thousands_takes_several_transactions(app: TestApp) {
        let key = app.full_key();
        for _ in 0..2 {
            let traces: Vec<Value> = (0..700).map(|it| json!({"latency_ms": it})).collect();
            key.post("/v1/ingest/batch", &json!({"traces": traces})).await.ok();
        }
        let body = json!({"metric_name": "latency_threshold", "config": {"max_latency_ms": 99}});
        let begun = key.post("/v1/eval/bulk", &body).await.ok();
        assert_eq!((&begun["matched"], &begun["queued"]), (&json!(1_400), &json!(1_400)));
        app.drain().await;
        let done = key.get(&format!("/v1/eval/bulk/{}", begun["bulk_id"].as_str().unwrap())).await.ok();
        assert_eq!((&done["complete"], &done["failed"], &done["status"]), (&json!(1_400), &json!(0), &json!("complete")));
        assert_eq!(evaluations(&key, "label=pass&limit=200").await.len(), 200);
    }

    /// A backfill evaluates the traces that the rule would match, except those that it has evaluated.
    async fn backfill_evaluates_existing_traces_once(app: TestApp) {
        let key = app.full_key();
        for i in 0..6 {
            trace(&key, json!({"name": if i < 4 { "a" } else { "b" }, "latency_ms": i * 50})).await;
            app.advance(1);
        }
        app.drain().await;
        let rule = create_rule(app, json!({"filter": {"name": "a"}})).await;
        let newest = trace(&key, json!({"name": "a", "latency_ms": 1})).await;
        app.drain().await;
        assert_eq!(evaluations(&key, &format!("rule_id={rule}")).await.len(), 1);
        let path = format!("/v1/eval-rules/{rule}/backfill");
        let begun = key.post(&path, &json!({"from": "2026-06-15T12:00:00.500Z"})).await;
        assert_eq!(begun.status, 202);
        let begun = begun.ok();
        app.drain().await;
        let done = key.get(&format!("/v1/eval/bulk/{}", begun["bulk_id"].as_str().unwrap())).await.ok();
        assert_eq!((&done["matched"], &done["queued"], &done["complete"], &done["rule_id"], &done["status"]),
            (&json!(4), &json!(3), &json!(3), &json!(rule), &json!("complete")));
        let rows = evaluations(&key, &format!("rule_id={rule}")).await;
        assert_eq!(rows.len(), 4);
        assert_eq!(rows.iter().filter(|it| it["trace_id"] == newest).count(), 1);
        // A second backfill evaluates only what the time range of the first one excluded.
        let again = key.post(&path, &json!({})).await.ok();
        app.drain().await;
        let done = key.get(&format!("/v1/eval/bulk/{}", again["bulk_id"].as_str().unwrap())).await.ok();
        assert_eq!((&done["queued"], &done["complete"]), (&json!(1), &json!(1)), "{done}");
        assert!(done["detail"].as_str().unwrap().contains("evaluated the other traces already"), "{done}");
        key.post(&path, &json!({"from": "2026-06-15T12:00:01Z", "to": "2026-06-14T12:00:01Z"})).await.is(422, "validation_failed");
        key.post(&path, &json!({"from": 7})).await.is(400, "invalid_body");
    }
}
