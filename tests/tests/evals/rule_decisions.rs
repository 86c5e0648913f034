//! The decisions of an eval rule on all traces of its project.

use serde_json::{Value, json};
use tests::on_both_databases;

use super::{create_rule, decision, timed};

on_both_databases! {
    async fn decision_list_has_one_row_per_trace(app: TestApp) {
        let key = app.full_key();
        let rule = create_rule(app, json!({"filter": {"name": "t"}, "sample_rate": 0.6})).await;
        let mut ids = Vec::new();
        for i in 0..12 {
            ids.push(timed(&key, i).await);
            app.advance(1);
        }
        app.drain().await;
        let (mut rows, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = key.get(&format!("/v1/eval-rules/{rule}/decisions?limit=5{cursor}")).await.ok();
            rows.extend(page["decisions"].as_array().unwrap().clone());
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        let traces: Vec<&str> = rows.iter().map(|it| it["trace_id"].as_str().unwrap()).collect();
        assert_eq!(traces, ids.iter().rev().map(String::as_str).collect::<Vec<_>>());
        for row in &rows {
            let queued = row["decision"] == "queued";
            assert!(queued || row["decision"] == "sampled_out", "{row}");
            assert_eq!((row["evaluation_id"].is_null(), row["decided_at"].is_null()), (!queued, !queued), "{row}");
            assert_eq!(row["rule_id"], rule);
        }
        let of_another = key.get(&format!("/v1/eval-rules/{rule}/decisions?trace_id={}", app.project)).await;
        of_another.is(404, "not_found");
        key.get(&format!("/v1/eval-rules/{}/decisions", app.project)).await.is(404, "not_found");
        key.get(&format!("/v1/eval-rules/{rule}/decisions?cursor=x")).await.is(400, "invalid_cursor");
        key.get(&format!("/v1/eval-rules/{rule}/decisions?trace_id=x")).await.is(400, "invalid_query");
    }

    async fn trace_of_another_project_is_filtered(app: TestApp) {
        let key = app.full_key();
        let rule = create_rule(app, json!({})).await;
        let other = key.post("/v1/ingest", &json!({"project_name": "other", "latency_ms": 1})).await.ok();
        app.drain().await;
        let decided = decision(&key, &rule, other["id"].as_str().unwrap()).await;
        assert_eq!((&decided["decision"], &decided["evaluation_id"]), (&json!("filtered"), &Value::Null));
        assert!(decided["detail"].as_str().unwrap().contains("project"), "{decided}");
    }
}
