//! Events of failed evaluations.

use serde_json::json;

use crate::{installation::WEBHOOK_SECRET, receiver::Response, signed::verify, with_receivers};

with_receivers! {
    async fn failed_evaluation_is_delivered(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        home.webhook_with(&receiver, json!({"events": ["evaluation.failed"]})).await;
        let key = home.key();
        let trace = |latency: serde_json::Value| json!({"name": "t", "latency_ms": latency});
        let evaluation = |trace: &serde_json::Value| json!({"trace_id": trace["id"], "metric_name": "latency_threshold", "config": {"max_latency_ms": 10}});
        let without = key.post("/v1/ingest", &trace(json!(null))).await.ok();
        let with = key.post("/v1/ingest", &trace(json!(5))).await.ok();
        let failed = key.post("/v1/eval", &evaluation(&without)).await.ok();
        key.post("/v1/eval", &evaluation(&with)).await.ok();
        home.app.drain().await;
        let shown = key.get(&format!("/v1/eval/{}", failed["id"].as_str().unwrap())).await.ok();
        assert_eq!(shown["status"], "failed");
        let [request] = &receiver.received()[..] else { panic!("{:?}", receiver.received()) };
        verify(request, WEBHOOK_SECRET);
        let body = request.json();
        assert_eq!((&body["type"], &body["project_id"]), (&json!("evaluation.failed"), &json!(home.app.project)));
        assert_eq!(body["data"]["evaluation"], shown);
    }
}
