//! Changes of eval rules: every field, invalid changes, and concurrent ones.

use api::Plan;
use futures::future::join_all;
use serde_json::{Value, json};
use tests::on_both_databases;

use super::{create_rule, decision, evaluations, patch, timed, trace};

on_both_databases! {
    async fn rule_project_can_be_changed(app: TestApp) {
        let key = app.full_key();
        let path = format!("/v1/eval-rules/{}", create_rule(app, json!({})).await);
        let rule = path.rsplit('/').next().unwrap();
        let second = key.post("/v1/projects", &json!({"name": "second"})).await.ok()["id"].clone();
        assert_eq!(patch(&key, &path, &json!({"project_id": second})).await.ok()["project_id"], second);
        app.advance(1);
        let here = trace(&key, json!({"project_name": "second", "latency_ms": 1})).await;
        let there = timed(&key, 1).await;
        app.drain().await;
        let decided = [decision(&key, rule, &here).await["decision"].clone(), decision(&key, rule, &there).await["decision"].clone()];
        assert_eq!(decided, ["queued", "filtered"]);
        // A project of another tenant does not exist for the caller.
        let (_, other) = app.other_tenant(Plan::Team).await;
        let foreign = other.get("/v1/projects").await.ok()["projects"][0]["id"].clone();
        patch(&key, &path, &json!({"project_id": foreign})).await.is(404, "not_found");
        patch(&other, &path, &json!({"project_id": foreign})).await.is(404, "not_found");
        assert_eq!(key.get(&path).await.ok()["project_id"], second);
    }

    /// The evaluator and its type, with their options.
    async fn rule_evaluator_and_type_can_be_changed(app: TestApp) {
        let key = app.full_key();
        let path = format!("/v1/eval-rules/{}", create_rule(app, json!({})).await);
        for (change, field) in [
            (json!({"metric_name": "nonsense"}), "metric_name"),
            (json!({"metric_name": "cost_threshold"}), "config."),
            (json!({"evaluator_type": "llm"}), "evaluator_type"),
            (json!({"evaluator_type": "magic"}), "evaluator_type"),
            (json!({"config": {}}), "config.max_latency_ms"),
            (json!({"config": {"max_latency_ms": -1}}), "config.max_latency_ms"),
            (json!({"filter": {"name": ""}}), "filter.name"),
            (json!({"sample_rate": 2}), "sample_rate"),
            (json!({"model_tier": "gold"}), "model_tier"),
        ] {
            let reply = patch(&key, &path, &change).await;
            reply.is(422, "validation_failed");
            assert!(reply.json()["fields"][0]["field"].as_str().unwrap().starts_with(field), "{change}: {}", reply.text());
        }
        let whole = json!({"metric_name": "sentiment_match", "config": {"expected": "positive"}});
        let changed = patch(&key, &path, &whole).await.ok();
        assert_eq!((&changed["metric_name"], &changed["evaluator_type"], &changed["config"]), (&whole["metric_name"], &json!("rule"), &whole["config"]));
        app.advance(1);
        let id = trace(&key, json!({"output": "That is great, I love it!", "latency_ms": 1})).await;
        app.drain().await;
        let rows = evaluations(&key, &format!("trace_id={id}")).await;
        assert_eq!((rows.len(), &rows[0]["metric_name"], &rows[0]["score"]), (1, &json!("sentiment_match"), &json!(1.0)), "{rows:?}");
        // A change to an LLM evaluator is rejected without a judge.
        let changed = patch(&key, &path, &json!({"evaluator_type": "llm", "model_tier": "premium"})).await.ok();
        assert_eq!((&changed["evaluator_type"], &changed["model_tier"]), (&json!("llm"), &json!("premium")));
        assert_eq!(changed["paused_reason"], "provider_credentials_missing", "{changed}");
        assert_eq!(key.get(&path).await.ok(), changed);
        app.set_plan(Plan::Pro).await;
        let paused = key.get(&path).await.ok();
        assert_eq!(paused["paused_reason"], "judge_not_configured", "{paused}");
        assert!(paused["paused_detail"].as_str().unwrap().contains("LOUPE_JUDGE_OPENAI_API_KEY"), "{paused}");
    }

    /// Absent fields stay; config and filter are replaced as a whole.
    async fn rule_change_keeps_absent_fields(app: TestApp) {
        let key = app.full_key();
        let rule = create_rule(app, json!({"filter": {"name": "t", "error": false}})).await;
        let path = format!("/v1/eval-rules/{rule}");
        let labelled = async |change: Value| {
            let changed = patch(&key, &path, &change).await.ok();
            for (member, value) in change.as_object().unwrap() {
                assert_eq!(&changed[member], value);
            }
            assert_eq!(key.get(&path).await.ok(), changed);
            app.advance(1);
            let id = timed(&key, 500).await;
            app.drain().await;
            let rows = evaluations(&key, &format!("trace_id={id}")).await;
            let label = rows.first().map_or(Value::Null, |it| it["label"].clone());
            (decision(&key, &rule, &id).await["decision"].clone(), label)
        };
        assert_eq!(labelled(json!({"min_score_drop": 0.1})).await, (json!("queued"), json!("fail")));
        assert_eq!(labelled(json!({"config": {"max_latency_ms": 500}})).await, (json!("queued"), json!("pass")));
        assert_eq!(labelled(json!({"filter": {"name": "other"}})).await, (json!("filtered"), Value::Null));
        assert_eq!(labelled(json!({"filter": {}, "sample_rate": 0.0})).await, (json!("sampled_out"), Value::Null));
        assert_eq!(labelled(json!({"sample_rate": 1.0, "enabled": false})).await, (json!("disabled"), Value::Null));
        assert_eq!(labelled(json!({"enabled": true})).await, (json!("queued"), json!("pass")));
        let now = key.get(&path).await.ok();
        assert_eq!((&now["min_score_drop"], &now["config"], &now["filter"]), (&json!(0.1), &json!({"max_latency_ms": 500}), &json!({})));
    }

    /// No concurrent change is lost: each is the last one, or the next one was applied to its result.
    async fn concurrent_rule_changes_are_not_lost(app: TestApp) {
        let key = app.full_key();
        let path = format!("/v1/eval-rules/{}", create_rule(app, json!({})).await);
        let txn = app.app.db.begin().await.unwrap();
        store::tenants::lock(&txn, app.tenant).await.unwrap();
        let changes: Vec<Value> = (1..=8).map(|it| json!({"config": {"max_latency_ms": it}})).collect();
        let changing = join_all(changes.iter().map(|it| patch(&key, &path, it)));
        let letting = async {
            // Both requests have read the rule by now, and wait for the lock.
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            txn.commit().await.unwrap();
        };
        let (replies, ()) = tokio::join!(changing, letting);
        let (done, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|it| it.status == 200);
        assert!(!done.is_empty() && !refused.is_empty(), "{} changes succeeded", done.len());
        for reply in refused {
            reply.is(409, "conflict");
        }
        let now = key.get(&path).await.ok();
        assert!(done.iter().any(|it| it.ok()["config"] == now["config"]), "{now}");
    }

    async fn rule_list_is_paged(app: TestApp) {
        let key = app.full_key();
        let second = key.post("/v1/projects", &json!({"name": "second"})).await.ok()["id"].clone();
        let mut ids = Vec::new();
        for i in 0..7 {
            let project = if i == 3 { second.clone() } else { json!(app.project) };
            ids.push(create_rule(app, json!({"project_id": project})).await);
            // Some rules have the same time of creation.
            app.advance(i % 2);
        }
        let paged = async |query: &str| {
            let (mut found, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = key.get(&format!("/v1/eval-rules?limit=3{query}{cursor}")).await.ok();
                let rules = page["eval_rules"].as_array().unwrap();
                assert!(rules.len() <= 3 && page["has_more"] == page["next_cursor"].is_string(), "{page}");
                found.extend(rules.iter().map(|it| it["id"].as_str().unwrap().to_owned()));
                let Some(next) = page["next_cursor"].as_str() else { return found };
                cursor = format!("&cursor={next}");
            }
        };
        let mut newest_first: Vec<String> = ids.iter().rev().cloned().collect();
        assert_eq!(paged("").await, newest_first);
        newest_first.retain(|it| *it != ids[3]);
        assert_eq!(paged(&format!("&project_id={}", app.project)).await, newest_first);
        // A cursor is valid for its filter only.
        let page = key.get("/v1/eval-rules?limit=3").await.ok();
        let cursor = page["next_cursor"].as_str().unwrap();
        key.get(&format!("/v1/eval-rules?project_id={}&cursor={cursor}", app.project)).await.is(400, "invalid_cursor");
    }
}
