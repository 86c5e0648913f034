//! Triggers: failures of ready traces, and evaluations with low scores.

use api::Plan;
use serde_json::{Value, json};

use crate::{scene::all, with_provider};

fn on_failure(types: &[&str]) -> Value {
    json!({"trigger": {"type": "failure", "failure_types": types}})
}

fn on_score(max_score: f64) -> Value {
    json!({"trigger": {"type": "evaluation", "metric_name": "answer_relevance", "max_score": max_score}})
}

fn with(mut fields: Value, more: Value) -> Value {
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fields
}

with_provider! {
    async fn failure_of_a_ready_trace_requests_one_action(scene: Scene) {
        let policy = scene.policy(on_failure(&["timeout"])).await;
        scene.policy(on_failure(&["rate_limit", "context_length"])).await;
        scene.policy(with(on_failure(&["timeout"]), json!({"enabled": false}))).await;
        scene.trace().await;
        let trace = scene.failing_trace().await;
        scene.app.drain().await;
        let actions = scene.actions("").await;
        let [action] = &actions[..] else { panic!("{actions:?}") };
        let span = scene.trace_detail(&trace).await["spans"][0]["id"].clone();
        assert_eq!((&action["trace_id"], &action["policy_id"], &action["span_id"]), (&json!(trace), &json!(policy), &span));
        assert_eq!(action["metadata"], json!({"trigger": "failure", "failing_span_id": span}));
        assert_eq!((&action["status"], &action["requested_by"]), (&json!("succeeded"), &Value::Null));
        // The remediated span changes the trace, which has the same failure.
        scene.app.advance(600);
        scene.app.drain().await;
        assert_eq!((scene.actions("").await.len(), scene.provider.request_count()), (1, 1));
    }

    async fn low_score_requests_actions_until_the_depth_limit(scene: Scene) {
        let policy = scene.policy(with(on_score(0.5), json!({"max_retry_depth": 2}))).await;
        scene.judged_rule(json!({})).await;
        scene.provider.set_scores([0.5, 0.4, 0.5]);
        let trace = scene.trace().await;
        scene.app.drain().await;
        // The first evaluation, that of the first retry and that of the second retry trigger the policy.
        let actions = scene.actions(&format!("policy_id={policy}")).await;
        let of_kind = |kind: &str| -> Vec<&Value> { actions.iter().filter(|it| it["action_type"] == kind).collect() };
        assert_eq!((actions.len(), of_kind("retry").len(), of_kind("escalate").len()), (3, 2, 1));
        assert_eq!(of_kind("escalate")[0]["metadata"]["escalation_reason"], "retry_threshold_exceeded");
        let evaluations = scene.evaluations(&format!("trace_id={trace}")).await;
        let remediation = evaluations.iter().filter(|it| it["context"] == "remediation").count();
        assert_eq!((evaluations.len(), remediation), (3, 2));
        for evaluation in &evaluations {
            let of_evaluation = |it: &&Value| it["metadata"]["trigger"] == "evaluation" && it["metadata"]["evaluation_id"] == evaluation["id"];
            assert_eq!(actions.iter().filter(of_evaluation).count(), 1, "{evaluation}");
        }
        // Each action repeats the original call.
        let spans = scene.trace_detail(&trace).await["spans"].clone();
        assert!(actions.iter().all(|it| it["span_id"] == spans[0]["id"]), "{actions:?}");
        assert_eq!(scene.provider.request_count(), 2);
        scene.app.advance(600);
        scene.app.drain().await;
        assert_eq!(scene.actions("").await.len(), 3, "the loop has stopped");
    }

    async fn score_above_the_maximum_triggers_nothing(scene: Scene) {
        scene.policy(on_score(0.5)).await;
        scene.judged_rule(json!({})).await;
        scene.provider.set_scores([0.51, 0.9]);
        scene.trace().await;
        scene.trace().await;
        scene.app.drain().await;
        assert_eq!(scene.actions("").await, Vec::<Value>::new());
    }

    async fn good_output_ends_the_loop(scene: Scene) {
        scene.policy(on_score(0.5)).await;
        scene.judged_rule(json!({})).await;
        scene.provider.set_scores([0.2, 0.9]);
        scene.trace().await;
        scene.app.drain().await;
        assert_eq!(all(&scene.actions("").await, "status"), ["succeeded"]);
    }

    /// Policies that trigger each other's triggers stop at the cascade depth.
    async fn policies_that_trigger_each_other_stop_at_the_cascade_depth(scene: Scene) {
        for kind in [json!({"max_retry_depth": 10}), json!({"action_type": "fallback_model", "action_config": {"model": "gpt-4o-mini"}})] {
            scene.policy(with(on_score(1.0), with(kind, json!({"max_cascade_depth": 5})))).await;
        }
        scene.judged_rule(json!({})).await;
        scene.provider.set_scores([0.0]);
        scene.trace().await;
        for _ in 0..3 {
            scene.app.drain().await;
            scene.app.advance(600);
        }
        let executed = scene.actions("status=succeeded").await;
        assert_eq!((executed.len(), scene.provider.request_count()), (5, 5));
        let escalated = scene.actions("status=pending_approval").await;
        assert!(!escalated.is_empty() && escalated.iter().all(|it| it["metadata"]["escalation_reason"] == "cascade_depth_exhausted"), "{escalated:?}");
        assert_eq!(executed.len() + escalated.len(), scene.actions("").await.len());
    }

    async fn actions_of_a_policy_that_requires_approval_wait(scene: Scene) {
        scene.policy(with(on_failure(&["timeout"]), json!({"require_approval": true}))).await;
        scene.failing_trace().await;
        scene.app.drain().await;
        let waiting = scene.actions("").await.remove(0);
        assert_eq!((&waiting["action_type"], &waiting["status"], &waiting["require_approval"]), (&json!("retry"), &json!("pending_approval"), &json!(true)));
        assert_eq!(scene.provider.request_count(), 0);
    }

    /// A lower plan keeps policies and actions. With the earlier plan, the policies request actions again.
    async fn lowered_plan_stops_triggers_and_queued_actions(scene: Scene) {
        scene.policy(on_failure(&["timeout"])).await;
        let queued = scene.retry(&scene.trace().await).await;
        scene.app.set_plan(Plan::Pro).await;
        scene.failing_trace().await;
        scene.app.drain().await;
        scene.app.set_plan(Plan::Team).await;
        let failed = scene.action(&queued).await;
        assert_eq!((&failed["status"], &failed["attempts"]), (&json!("failed"), &json!(0)), "{failed}");
        assert!(failed["error"].as_str().unwrap().contains("plan"), "{failed}");
        assert_eq!((scene.actions("").await.len(), scene.provider.request_count()), (1, 0));
        scene.failing_trace().await;
        scene.app.drain().await;
        assert_eq!(scene.actions("status=succeeded").await.len(), 1);
    }

    /// An archived project accepts no new traces; its stored traces can still be evaluated and remediated.
    async fn action_in_archived_project_is_executed(scene: Scene) {
        scene.owner().post("/v1/projects", &json!({"name": "second"})).await.ok();
        let trace = scene.trace().await;
        scene.owner().post(&format!("/v1/projects/{}/archive", scene.app.project), &json!({})).await.ok();
        assert_eq!(scene.execute(&trace, "retry", json!({})).await["status"], "succeeded");
        assert_eq!(scene.trace_detail(&trace).await["span_count"], 2);
    }

    async fn deleted_policy_requests_no_actions(scene: Scene) {
        let policy = scene.policy(on_failure(&["timeout"])).await;
        scene.failing_trace().await;
        scene.app.drain().await;
        scene.owner().delete(&format!("/v1/policies/{policy}")).await.ok();
        scene.failing_trace().await;
        scene.app.drain().await;
        let actions = scene.actions("").await;
        assert_eq!((actions.len(), &actions[0]["policy_id"]), (1, &json!(policy)));
    }
}
