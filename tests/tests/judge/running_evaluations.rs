//! The representation of evaluations while their judge runs.

use super::{over_http::METRIC_NAME, repeated_evaluations::waiting_behaviour, *};

on_both! {
    async fn evaluation_is_running_until_its_judge_responds(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let (told, thinking) = waiting_behaviour(Behaviour::Succeeds);
        scene.own.set_behaviours([thinking]);
        scene.store_trace().await;
        let begun = scene.app.full_key().post("/v1/eval/bulk", &json!({"metric_name": METRIC_NAME})).await.ok();
        let progress = format!("/v1/eval/bulk/{}", begun["bulk_id"].as_str().unwrap());
        let with = async |status: &str| -> Vec<Value> {
            scene.get(&format!("/v1/eval?status={status}")).await["evaluations"].as_array().unwrap().clone()
        };
        let reading = async {
            scene.wait_for_requests(1).await;
            let running = with("running").await;
            assert_eq!(running.len(), 1);
            for (member, value) in [("status", json!("running")), ("score", Value::Null), ("label", Value::Null), ("completed_at", Value::Null)] {
                assert_eq!(running[0][member], value, "{running:?}");
            }
            let path = format!("/v1/eval/{}", running[0]["id"].as_str().unwrap());
            assert_eq!(scene.get(&path).await, running[0]);
            for other in ["pending", "complete", "failed"] {
                assert_eq!(with(other).await, Vec::<Value>::new(), "{other}");
            }
            let now = scene.get(&progress).await;
            assert_eq!((&now["status"], &now["running"], &now["pending"]), (&json!("running"), &json!(1), &json!(0)), "{now}");
            told.notify_one();
            path
        };
        let (_, path) = tokio::join!(scene.app.drain(), reading);
        assert_eq!(with("running").await, Vec::<Value>::new());
        assert_eq!(with("complete").await, [scene.get(&path).await]);
        let done = scene.get(&progress).await;
        assert_eq!((&done["status"], &done["running"], &done["complete"]), (&json!("complete"), &json!(0), &json!(1)), "{done}");
        scene.stop().await;
    }
}
