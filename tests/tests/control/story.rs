//! The whole loop: a bad answer, a retry that is worse, the limit, a person's approval, the diff, the cluster, the webhook.

use api::webhook::EventType;
use serde_json::{Value, json};

use crate::{
    scene::{BAD_OUTPUT, all},
    with_provider,
};

with_provider! {
    async fn bad_answer_is_retried_escalated_approved_and_compared(scene: Scene) {
        scene.subscribe(EventType::ControlActionPendingApproval).await;
        scene.subscribe(EventType::FailureDetected).await;
        let failure_rule = json!({"name": "made worse", "failure_types": ["RemediationRegression"]});
        scene.app.full_key().post("/v1/failure-rules", &failure_rule).await.ok();
        let rule = scene.judged_rule(json!({"min_score_drop": 0.1})).await;
        let trigger = json!({"type": "evaluation", "metric_name": "answer_relevance", "max_score": 0.5});
        let policy = scene.policy(json!({"trigger": trigger, "max_retry_depth": 1})).await;
        // The original, the retry and the approved escalation.
        scene.provider.set_scores([0.4, 0.2, 0.9]);
        let trace = scene.trace().await;
        scene.app.drain().await;

        let actions = scene.actions(&format!("policy_id={policy}")).await;
        let find = |kind: &str| actions.iter().find(|it| it["action_type"] == kind).unwrap();
        let (escalation, retry) = (find("escalate"), find("retry"));
        assert_eq!(actions.len(), 2);
        assert_eq!(escalation["metadata"]["escalation_reason"], "retry_threshold_exceeded");
        let events = scene.events().await;
        let mut types = all(&events, "type");
        types.sort_by_key(|it| it.to_string());
        assert_eq!(types, ["control_action.pending_approval", "failure.detected"]);
        let path = format!("/v1/projects/{}/metrics?metric=retry_cap_hit&window=7d", scene.app.project);
        assert_eq!(scene.get(&path).await["value"], 1);
        let clusters = scene.get("/v1/failures/clusters?failure_type=RemediationRegression").await;
        assert_eq!(clusters["clusters"][0]["trace_count"], 1);

        let diff = scene.get(&format!("/v1/control/actions/{}/diff", retry["id"].as_str().unwrap())).await;
        assert_eq!((&diff["original_output"], &diff["embedding_similarity"]), (&json!(BAD_OUTPUT), &Value::Null));
        let delta = &diff["eval_deltas"][0];
        assert_eq!((&delta["rule_id"], &delta["original_score"], &delta["remediated_score"], &delta["regressed"]), (&json!(rule), &json!(0.4), &json!(0.2), &json!(true)));
        let escalation_path = format!("/v1/control/actions/{}/diff", escalation["id"].as_str().unwrap());
        scene.viewer().get(&escalation_path).await.is(409, "invalid_state");

        scene.decide(escalation, "approve").await.ok();
        let waiting = scene.viewer().get(&escalation_path).await;
        assert_eq!((waiting.status, &waiting.json()["status"]), (202, &json!("evaluating")));
        scene.app.drain().await;
        let diff = scene.get(&escalation_path).await;
        assert_eq!((&diff["eval_deltas"][0]["remediated_score"], &diff["eval_deltas"][0]["regressed"]), (&json!(0.9), &json!(false)));
        assert_eq!(diff["token_length_delta"], 95);
        let detail = scene.trace_detail(&trace).await;
        assert_eq!((&detail["control_loop_depth"], &detail["span_count"]), (&json!(1), &json!(3)));
        assert_eq!(scene.actions("").await.len(), 2, "a good score triggers nothing");
    }
}
