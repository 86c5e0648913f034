//! Backfills evaluate the same traces as their rules.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::{Caller, TestApp, on_both_databases};

use super::{create_rule, evaluations, rule, trace};

/// Returns the traces that a rule evaluated.
async fn evaluated_traces(key: &Caller, rule: &str) -> BTreeSet<String> {
    let rows = evaluations(key, &format!("rule_id={rule}")).await;
    rows.iter().map(|it| it["trace_id"].as_str().unwrap().to_owned()).collect()
}

async fn backfilled(app: &TestApp, rule: &str) -> Value {
    let key = app.full_key();
    let begun = key.post(&format!("/v1/eval-rules/{rule}/backfill"), &json!({})).await.ok();
    app.drain().await;
    key.get(&format!("/v1/eval/bulk/{}", begun["bulk_id"].as_str().unwrap())).await.ok()
}

on_both_databases! {
    /// A tag with colons matches alike on new and existing traces.
    async fn rule_tag_with_colons_matches_alike_on_new_and_existing_traces(app: TestApp) {
        let key = app.full_key();
        let long = "a:".repeat(20);
        let all = [
            json!({"k8s:app": "x"}), json!({"k8s": "app:x", "other": "1"}), json!({"k8s:app:x": ""}), json!({"k8s:app:x": "v"}),
            json!({"k8s:app": "y"}), json!({"k8s": "app"}), json!({"app": "x"}), json!({"a": &long[2..]}),
        ];
        for (tag, chosen) in [("k8s:app:x", &[0, 1, 2, 3][..]), ("k8s", &[1, 5][..]), ("k8s:app", &[0, 4, 5][..]), (&long, &[7][..])] {
            let mut past = Vec::new();
            for tags in &all {
                past.push(trace(&key, json!({"tags": tags, "latency_ms": 1})).await);
            }
            app.drain().await;
            app.advance(1);
            let rule = create_rule(app, json!({"filter": {"tag": tag}})).await;
            let mut new = Vec::new();
            for tags in &all {
                new.push(trace(&key, json!({"tags": tags, "latency_ms": 1})).await);
            }
            app.drain().await;
            let of = |traces: &[String]| chosen.iter().map(|it| traces[*it].clone()).collect::<BTreeSet<_>>();
            assert_eq!(evaluated_traces(&key, &rule).await, of(&new), "{tag}");
            let done = backfilled(app, &rule).await;
            let found = evaluated_traces(&key, &rule).await;
            assert!(found.is_superset(&of(&past)), "{tag}: {done}");
            assert!(past.iter().all(|it| of(&past).contains(it) || !found.contains(it)), "{tag}: {done}");
            // Only one rule exists at a time.
            key.delete(&format!("/v1/eval-rules/{rule}")).await.ok();
        }
    }

    /// A misspelt filter is rejected, because it would otherwise match every trace.
    async fn misspelt_rule_filter_is_rejected(app: TestApp) {
        let key = app.full_key();
        let wrong = json!({"modle": "gpt-4o", "name": "a"});
        let reply = key.post("/v1/eval-rules", &rule(app, json!({"filter": wrong}))).await;
        reply.is(422, "validation_failed");
        assert_eq!(reply.json()["fields"][0]["field"], "filter.modle");
        let id = create_rule(app, json!({"filter": {"model": "gpt-4o", "tag": null}})).await;
        let path = format!("/v1/eval-rules/{id}");
        let change = key.request(reqwest::Method::PATCH, &path).json(&json!({"filter": wrong}));
        key.send(change).await.is(422, "validation_failed");
        assert_eq!(key.get(&path).await.ok()["filter"], json!({"model": "gpt-4o"}));
    }
}
