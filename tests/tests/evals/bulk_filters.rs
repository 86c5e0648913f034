//! Selection in a bulk run: each filter alone, the requested type, and an evaluator that is deleted.

use api::Role;
use serde_json::{Value, json};
use tests::on_both_databases;

use super::{evaluate, evaluations, timed, trace};

on_both_databases! {
    async fn every_bulk_filter_selects_traces(app: TestApp) {
        let key = app.full_key();
        let call = |error: Option<&str>, tokens: i64| json!([{"name": "call", "type": "llm", "error": error, "prompt_tokens": tokens}]);
        let mut ids = Vec::new();
        for item in [
            json!({"session_id": "a", "cost": 0.01, "tags": {"env": "prod"}, "spans": call(None, 10)}),
            json!({"session_id": "b", "cost": 0.02, "tags": {"env": "test"}, "spans": call(Some("the request timed out"), 20)}),
            json!({"session_id": "a", "cost": 0.03, "tags": {"other": "prod"}, "spans": call(Some("Rate limit reached, 429"), 30)}),
            json!({"user_id": "u", "model": "m-1", "latency_ms": 700}),
        ] {
            ids.push(trace(&key, item).await);
            app.advance(1);
        }
        for (filter, chosen) in [
            (json!({"session_id": "a"}), vec![0, 2]),
            (json!({"failure_type": "timeout"}), vec![1]),
            (json!({"failure_type": "rate_limit"}), vec![2]),
            (json!({"failure_type": "context_length"}), vec![]),
            (json!({"min_cost": 0.02}), vec![1, 2]),
            (json!({"max_cost": 0.02}), vec![0, 1]),
            (json!({"min_cost": 0.015, "max_cost": 0.025}), vec![1]),
            (json!({"token_count_min": 20}), vec![1, 2]),
            (json!({"token_count_min": 1, "token_count_max": 20}), vec![0, 1]),
            (json!({"tag_key": "env", "tag_value": "prod"}), vec![0]),
            (json!({"tag_key": "other", "tag_value": "test"}), vec![]),
            (json!({"user_id": "u"}), vec![3]),
            (json!({"model": "m-1"}), vec![3]),
            (json!({"latency_min": 700, "latency_max": 700}), vec![3]),
            (json!({"from": "2026-06-15T12:00:01Z", "to": "2026-06-15T12:00:02Z"}), vec![1, 2]),
            (json!({"session_id": "a", "min_cost": 0.02}), vec![2]),
        ] {
            let body = json!({"metric_name": "pii_leakage", "filter": filter});
            let begun = key.post("/v1/eval/bulk", &body).await.ok();
            assert_eq!((&begun["matched"], &begun["queued"]), (&json!(chosen.len()), &json!(chosen.len())), "{filter}");
            app.drain().await;
            let rows = evaluations(&key, "").await;
            let mut found: Vec<&str> = rows.iter().filter(|it| it["bulk_id"] == begun["bulk_id"]).map(|it| it["trace_id"].as_str().unwrap()).collect();
            found.sort_by_key(|it| ids.iter().position(|id| id == it));
            assert_eq!(found, chosen.iter().map(|it| ids[*it].as_str()).collect::<Vec<_>>(), "{filter}");
        }
    }

    /// The request can name the type of evaluators that offer both. A type that is not offered is rejected,
    /// and so is a request without an available judge.
    async fn bulk_evaluator_type_can_be_requested(app: TestApp) {
        let key = app.full_key();
        trace(&key, json!({"output": "That is great, I love it!"})).await;
        let ask = |kind: &str| json!({"metric_name": "sentiment_match", "evaluator_type": kind, "config": {"expected": "positive"}});
        key.post("/v1/eval/bulk", &ask("rule")).await.ok();
        app.drain().await;
        let rows = evaluations(&key, "").await;
        assert_eq!((rows.len(), &rows[0]["evaluator_type"], &rows[0]["score"]), (1, &json!("rule"), &json!(1.0)), "{rows:?}");
        key.post("/v1/eval/bulk", &ask("llm")).await.is(422, "provider_credentials_missing");
        for (metric, kind) in [("pii_leakage", "llm"), ("bias", "rule"), ("bias", "magic")] {
            let refused = key.post("/v1/eval/bulk", &json!({"metric_name": metric, "evaluator_type": kind})).await;
            refused.is(422, "validation_failed");
            assert_eq!(refused.json()["fields"][0]["field"], "evaluator_type", "{metric} {kind}");
        }
        assert_eq!(evaluations(&key, "").await.len(), 1);
    }

    /// The run ends with a reason, and pending evaluations fail.
    async fn deleted_evaluator_stops_bulk_evaluation(app: TestApp) {
        let (key, owner) = (app.full_key(), app.session(Role::Owner));
        let own = json!({"name": "short", "evaluator_type": "rule", "checks": [{"kind": "length", "max_words": 3}]});
        key.post("/v1/evaluators", &own).await.ok();
        let id = timed(&key, 1).await;
        let waiting = key.post("/v1/eval", &json!({"trace_id": id, "metric_name": "short"})).await.ok();
        let begun = key.post("/v1/eval/bulk", &json!({"metric_name": "short"})).await.ok();
        assert_eq!(begun["queued"], 1);
        owner.delete("/v1/evaluators/short").await.ok();
        app.drain().await;
        let run = key.get(&format!("/v1/eval/bulk/{}", begun["bulk_id"].as_str().unwrap())).await.ok();
        assert_eq!((&run["status"], &run["matched"], &run["queued"], &run["pending"]), (&json!("complete"), &json!(1), &json!(0), &json!(0)), "{run}");
        assert!(run["detail"].as_str().unwrap().contains("deleted"), "{run}");
        let rows = evaluations(&key, "").await;
        assert_eq!((rows.len(), &rows[0]["id"], &rows[0]["status"], &rows[0]["score"]), (1, &waiting["id"], &json!("failed"), &Value::Null), "{rows:?}");
        assert!(rows[0]["error"].as_str().unwrap().contains("`short`"), "{rows:?}");
        // Other evaluators still work.
        assert_eq!(evaluate(app, &id, "pii_leakage", json!({})).await["status"], "complete");
    }
}
