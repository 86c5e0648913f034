//! The depth limits of a trace: which requests are executed and which are escalated.

use serde_json::{Value, json};

use crate::{
    scene::{Scene, all},
    with_provider,
};

const ACTION_TYPES: [&str; 3] = ["retry", "fallback_model", "prompt_modification"];

/// Returns the fields that a request of this type needs.
fn config(action_type: &str) -> Value {
    match action_type {
        "fallback_model" => json!({"action_config": {"model": "gpt-4o-mini"}}),
        "prompt_modification" => json!({"action_config": {"system_suffix": "Be precise."}}),
        _ => json!({}),
    }
}

/// Requests an action of this type by this policy. Returns it.
async fn request(scene: &Scene, trace: &str, action_type: &str, policy: Option<&str>) -> Value {
    let mut more = config(action_type);
    more["policy_id"] = json!(policy);
    scene.request(trace, action_type, more).await.ok()
}

fn is_escalated(action: &Value, reason: &str, count: i64, requested: &str) {
    assert_eq!(
        (&action["action_type"], &action["status"]),
        (&json!("escalate"), &json!("pending_approval")),
        "{action}"
    );
    assert_eq!(action["require_approval"], true);
    let expected =
        json!({"escalation_reason": reason, "retry_count": count, "requested_action_type": requested});
    assert_eq!(action["metadata"], expected);
}

with_provider! {
    async fn retry_at_the_retry_depth_is_escalated(scene: Scene) {
        for depth in [1, 3] {
            let trace = scene.trace().await;
            let policy = scene.policy(json!({"max_retry_depth": depth})).await;
            for _ in 0..depth {
                let action = request(scene, &trace, "retry", Some(&policy)).await;
                assert_eq!((&action["action_type"], &action["status"], &action["require_approval"]), (&json!("retry"), &json!("queued"), &json!(false)));
                assert_eq!(action["metadata"], json!({}));
            }
            is_escalated(&request(scene, &trace, "retry", Some(&policy)).await, "retry_threshold_exceeded", depth, "retry");
            // Other kinds are limited by the cascade depth alone.
            assert_eq!(request(scene, &trace, "fallback_model", Some(&policy)).await["status"], "queued");
            scene.app.drain().await;
            let detail = scene.trace_detail(&trace).await;
            assert_eq!(detail["control_loop_depth"], depth, "escalations and other kinds don't count");
            is_escalated(&request(scene, &trace, "retry", Some(&policy)).await, "retry_threshold_exceeded", depth, "retry");
        }
    }

    async fn any_action_at_the_cascade_depth_is_escalated_first(scene: Scene) {
        let trace = scene.trace().await;
        let policy = scene.policy(json!({"max_retry_depth": 1, "max_cascade_depth": 3})).await;
        for kind in ACTION_TYPES {
            assert_eq!(request(scene, &trace, kind, Some(&policy)).await["status"], "queued", "{kind}");
        }
        // Both limits are reached: the cascade is compared first.
        for kind in ACTION_TYPES {
            is_escalated(&request(scene, &trace, kind, Some(&policy)).await, "cascade_depth_exhausted", 3, kind);
        }
        let other = scene.trace().await;
        assert_eq!(request(scene, &other, "retry", Some(&policy)).await["status"], "queued", "each trace has its own count");
    }

    async fn actions_of_all_policies_count_together(scene: Scene) {
        let trace = scene.trace().await;
        let (one, other) = (scene.policy(json!({"max_retry_depth": 2})).await, scene.policy(json!({"max_retry_depth": 4})).await);
        for policy in [Some(other.as_str()), None] {
            assert_eq!(request(scene, &trace, "retry", policy).await["status"], "queued");
        }
        is_escalated(&request(scene, &trace, "retry", Some(&one)).await, "retry_threshold_exceeded", 2, "retry");
        assert_eq!(request(scene, &trace, "retry", None).await["status"], "queued", "the default limit is 3");
        is_escalated(&request(scene, &trace, "retry", None).await, "retry_threshold_exceeded", 3, "retry");
        assert_eq!(request(scene, &trace, "retry", Some(&other)).await["status"], "queued");
        assert_eq!(request(scene, &trace, "fallback_model", None).await["status"], "queued");
        is_escalated(&request(scene, &trace, "fallback_model", None).await, "cascade_depth_exhausted", 5, "fallback_model");
    }

    /// Rejected, escalated and waiting actions do not count towards the limits.
    async fn action_without_execution_does_not_count(scene: Scene) {
        let trace = scene.trace().await;
        let policy = scene.policy(json!({"max_retry_depth": 1, "require_approval": true})).await;
        for _ in 0..3 {
            let waiting = request(scene, &trace, "retry", Some(&policy)).await;
            assert_eq!((&waiting["action_type"], &waiting["status"], &waiting["metadata"]), (&json!("retry"), &json!("pending_approval"), &json!({})));
            scene.decide(&waiting, "reject").await.ok();
        }
        assert_eq!(request(scene, &trace, "retry", None).await["status"], "queued");
        is_escalated(&request(scene, &trace, "retry", Some(&policy)).await, "retry_threshold_exceeded", 1, "retry");
    }

    /// An action that failed before it called the provider makes room for another one.
    async fn action_that_failed_before_its_call_does_not_count(scene: Scene) {
        let trace = scene.trace_with(json!({"input": null})).await;
        let policy = scene.policy(json!({"max_retry_depth": 1})).await;
        for _ in 0..3 {
            let failed = scene.execute(&trace, "retry", json!({"policy_id": policy})).await;
            assert_eq!((&failed["status"], &failed["attempts"]), (&json!("failed"), &json!(0)), "{failed}");
        }
        assert_eq!(scene.trace_detail(&trace).await["control_loop_depth"], 0);
        assert_eq!(scene.provider.request_count(), 0);
    }

    /// The metric is the number of traces on which a policy reached its retry depth within the window.
    async fn retry_cap_hit_counts_distinct_traces_of_policies(scene: Scene) {
        let value = async |window: &str| {
            let path = format!("/v1/projects/{}/metrics?metric=retry_cap_hit&window={window}", scene.app.project);
            let shown = scene.get(&path).await;
            assert_eq!(shown, json!({"metric": "retry_cap_hit", "window": window, "value": shown["value"]}));
            shown["value"].as_i64().unwrap()
        };
        assert_eq!((value("7d").await, value("30d").await), (0, 0));
        let policy = scene.policy(json!({"max_retry_depth": 1, "max_cascade_depth": 2})).await;
        let (one, other) = (scene.trace().await, scene.trace().await);
        for trace in [&one, &one, &one, &other] {
            request(scene, trace, "retry", Some(&policy)).await;
        }
        assert_eq!(value("7d").await, 1, "two escalations on one trace");
        request(scene, &other, "fallback_model", Some(&policy)).await;
        request(scene, &other, "retry", Some(&policy)).await;
        assert_eq!(value("7d").await, 1, "the cascade depth is another limit");
        let by_hand = scene.trace().await;
        for _ in 0..4 {
            request(scene, &by_hand, "retry", None).await;
        }
        assert_eq!(value("7d").await, 1, "no policy reached its limit");
        scene.app.advance(8 * 86_400);
        assert_eq!((value("7d").await, value("30d").await), (0, 1));
        scene.app.advance(23 * 86_400);
        assert_eq!(value("30d").await, 0);
    }

    async fn control_loop_depth_is_shown_in_the_detail_only(scene: Scene) {
        let trace = scene.trace().await;
        assert_eq!(scene.trace_detail(&trace).await["control_loop_depth"], 0);
        scene.retry(&trace).await;
        assert_eq!(scene.trace_detail(&trace).await["control_loop_depth"], 0, "it has not been executed");
        scene.app.drain().await;
        assert_eq!(scene.trace_detail(&trace).await["control_loop_depth"], 1);
        let list = scene.get("/v1/traces").await;
        assert!(list["traces"][0].get("control_loop_depth").is_none());
        assert_eq!(all(&scene.actions("").await, "status"), ["succeeded"]);
    }
}
