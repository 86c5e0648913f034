//! Cool-downs and daily budgets of policies.

use serde_json::json;

use crate::{scene::all, with_provider};

/// The cost of a repeated request to `gpt-4o` in US dollars.
const CALL_COST: f64 = 0.0035;
/// Seconds of a day.
const DAY_SECONDS: i64 = 86_400;

with_provider! {
    async fn cool_down_separates_actions_of_a_policy_on_a_trace(scene: Scene) {
        let policy = scene.policy(json!({"cooldown_seconds": 60})).await;
        let (one, other) = (scene.trace().await, scene.trace().await);
        let retry = async |trace: &str| scene.request(trace, "retry", json!({"policy_id": policy})).await;
        retry(&one).await.ok();
        let refused = retry(&one).await;
        refused.is(409, "conflict");
        assert!(refused.text().contains("cool-down"), "{}", refused.text());
        retry(&other).await.ok();
        scene.retry(&one).await;
        scene.app.advance(59);
        retry(&one).await.is(409, "conflict");
        scene.app.advance(1);
        retry(&one).await.ok();
        assert_eq!(scene.actions(&format!("trace_id={one}")).await.len(), 3);
    }

    async fn trigger_during_the_cool_down_requests_no_action(scene: Scene) {
        let trigger = json!({"type": "evaluation", "metric_name": "answer_relevance", "max_score": 0.5});
        scene.policy(json!({"trigger": trigger, "cooldown_seconds": 3_600, "max_retry_depth": 10})).await;
        scene.judged_rule(json!({})).await;
        scene.provider.set_scores([0.1]);
        let trace = scene.trace().await;
        scene.app.drain().await;
        // The output of the action gets the same low score, but within the cool-down.
        assert_eq!(scene.actions(&format!("trace_id={trace}")).await.len(), 1);
    }

    async fn actions_beyond_the_daily_budget_fail_without_a_call(scene: Scene) {
        let policy = scene.policy(json!({"daily_budget_usd": CALL_COST * 1.5})).await;
        let retry = async || {
            let trace = scene.trace().await;
            scene.execute(&trace, "retry", json!({"policy_id": policy})).await
        };
        // The second call begins within the budget.
        for _ in 0..2 {
            assert_eq!(retry().await["status"], "succeeded");
        }
        for _ in 0..3 {
            let failed = retry().await;
            assert_eq!((&failed["status"], &failed["attempts"]), (&json!("failed"), &json!(0)), "{failed}");
            assert!(failed["error"].as_str().unwrap().contains("daily budget"), "{failed}");
        }
        assert_eq!(scene.provider.request_count(), 2);
        // The budget does not limit the actions that people request.
        let trace = scene.trace().await;
        assert_eq!(scene.execute(&trace, "retry", json!({})).await["status"], "succeeded");
        scene.app.advance(DAY_SECONDS / 2);
        assert_eq!(retry().await["status"], "succeeded", "a new day begins at midnight");
    }

    /// An action counts on the day of its call, not on the day of its request.
    /// The budget of a deleted policy would not limit its actions.
    async fn queued_actions_of_a_deleted_policy_make_no_call(scene: Scene) {
        let policy = scene.policy(json!({"daily_budget_usd": CALL_COST})).await;
        let trace = scene.trace().await;
        let queued = scene.request(&trace, "retry", json!({"policy_id": policy})).await.ok();
        assert_eq!(scene.owner().delete(&format!("/v1/policies/{policy}")).await.status, 204);
        scene.app.drain().await;
        let failed = scene.action(&queued).await;
        assert_eq!((&failed["status"], &failed["attempts"]), (&json!("failed"), &json!(0)), "{failed}");
        assert!(failed["error"].as_str().unwrap().contains("policy was deleted"), "{failed}");
        assert_eq!(scene.provider.request_count(), 0);
    }

    async fn actions_approved_on_another_day_count_towards_its_budget(scene: Scene) {
        let policy = scene.policy(json!({"daily_budget_usd": CALL_COST, "require_approval": true})).await;
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let trace = scene.trace().await;
            scene.app.advance(1);
            waiting.push(scene.request(&trace, "retry", json!({"policy_id": policy})).await.ok());
        }
        scene.app.advance(DAY_SECONDS);
        for action in &waiting {
            scene.decide(action, "approve").await.ok();
            scene.app.drain().await;
        }
        let statuses = scene.actions("").await;
        assert_eq!(all(&statuses, "status"), ["failed", "failed", "succeeded"]);
        assert_eq!(scene.provider.request_count(), 1);
    }

    /// The budget also limits approved escalations, and actions that run at the same time.
    async fn concurrent_actions_do_not_exceed_the_budget_by_more_than_one(scene: Scene) {
        let call = json!({"prompt_tokens": 1_000, "completion_tokens": 100});
        let policy = scene.policy(json!({"daily_budget_usd": CALL_COST * 2.0})).await;
        for _ in 0..8 {
            let trace = scene.trace_with(call.clone()).await;
            scene.request(&trace, "retry", json!({"policy_id": policy})).await.ok();
        }
        let beside = scene.beside().await;
        tokio::join!(scene.app.drain(), beside.drain());
        assert_eq!(scene.provider.request_count(), 2);
        beside.stop().await;
    }
}
