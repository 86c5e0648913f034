//! A requested evaluation is made whatever the sample rate of a rule.

use serde_json::{Value, json};
use tests::on_both_databases;

use super::{create_rule, decision, evaluations, timed};

on_both_databases! {
    async fn requested_evaluation_ignores_sample_rate(app: TestApp) {
        let key = app.full_key();
        let rule = create_rule(app, json!({"sample_rate": 0})).await;
        let mut traces = Vec::new();
        for i in 0..10 {
            traces.push(timed(&key, i * 20).await);
        }
        app.drain().await;
        assert_eq!(evaluations(&key, "").await, Vec::<Value>::new());
        let config = json!({"max_latency_ms": 100});
        for trace in &traces {
            assert_eq!(decision(&key, &rule, trace).await["decision"], "sampled_out");
            let tried = key.post(&format!("/v1/eval-rules/{rule}/test"), &json!({"trace_id": trace})).await.ok();
            assert_eq!((&tried["status"], &tried["decision"]), (&json!("complete"), &json!("sampled_out")), "{tried}");
            key.post("/v1/eval", &json!({"trace_id": trace, "metric_name": "latency_threshold", "config": config})).await.ok();
        }
        let begun = key.post("/v1/eval/bulk", &json!({"metric_name": "latency_threshold", "config": config})).await.ok();
        assert_eq!((&begun["matched"], &begun["queued"]), (&json!(10), &json!(10)));
        app.drain().await;
        assert_eq!(evaluations(&key, "status=complete").await.len(), 20);
        assert_eq!(evaluations(&key, &format!("rule_id={rule}")).await, Vec::<Value>::new());
    }
}
