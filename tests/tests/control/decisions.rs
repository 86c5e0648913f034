//! Decisions of people about actions that wait for approval.

use api::{Role, webhook::EventType};
use serde_json::{Value, json};

use crate::{
    scene::{Scene, all},
    with_provider,
};

/// Requests a retry that waits for approval. Returns it with its trace.
async fn waiting(scene: &Scene) -> (String, Value) {
    let policy = scene.policy(json!({"require_approval": true})).await;
    let trace = scene.trace().await;
    let action = scene.request(&trace, "retry", json!({"policy_id": policy})).await.ok();
    assert_eq!(action["status"], "pending_approval");
    (trace, action)
}

/// Fills a trace with as many retries as the default limits allow, and requests one more. Returns the escalation.
async fn escalation(scene: &Scene, trace: &str) -> Value {
    for _ in 0..3 {
        scene.retry(trace).await;
    }
    scene.app.drain().await;
    let escalated = scene.retry(trace).await;
    assert_eq!(escalated["action_type"], "escalate");
    escalated
}

with_provider! {
    async fn approved_action_is_executed_and_rejected_one_is_not(scene: Scene) {
        let (trace, action) = waiting(scene).await;
        scene.app.drain().await;
        assert_eq!(scene.provider.request_count(), 0, "it waits");
        let owner = scene.app.session_as("alice", Role::Owner);
        let reply = scene.decide_as(&owner, &action, "approve").await;
        assert_eq!(reply.status, 202);
        let approved = reply.json();
        assert_eq!((&approved["status"], &approved["decided_by"], &approved["require_approval"]), (&json!("queued"), &json!("alice"), &json!(true)));
        scene.app.drain().await;
        let ended = scene.action(&action).await;
        assert_eq!((&ended["status"], &ended["action_type"], &ended["attempts"]), (&json!("succeeded"), &json!("retry"), &json!(1)));
        assert_eq!(scene.provider.request_count(), 1);
        assert_eq!(scene.trace_detail(&trace).await["control_loop_depth"], 1);

        let (_, other) = waiting(scene).await;
        let reply = scene.decide_as(&owner, &other, "reject").await;
        assert_eq!(reply.status, 200);
        let rejected = reply.json();
        assert_eq!((&rejected["status"], &rejected["decided_by"]), (&json!("rejected"), &json!("alice")));
        assert_eq!(rejected["decided_at"], rejected["completed_at"]);
        scene.app.drain().await;
        assert_eq!((scene.action(&other).await, scene.provider.request_count()), (rejected, 1));
    }

    async fn second_decision_is_a_conflict_with_the_current_state(scene: Scene) {
        for (first, second, state) in [("approve", "approve", "queued"), ("approve", "reject", "queued"), ("reject", "approve", "rejected"), ("reject", "reject", "rejected")] {
            let (_, action) = waiting(scene).await;
            scene.decide(&action, first).await.ok();
            let reply = scene.decide(&action, second).await;
            reply.is(409, "invalid_state");
            assert!(reply.json()["error"].as_str().unwrap().contains(state), "{}", reply.text());
        }
        scene.app.drain().await;
        let (_, action) = waiting(scene).await;
        scene.decide(&action, "approve").await.ok();
        scene.app.drain().await;
        let reply = scene.decide(&action, "reject").await;
        reply.is(409, "invalid_state");
        assert!(reply.text().contains("succeeded"), "{}", reply.text());
        let queued = scene.retry(&scene.trace().await).await;
        scene.decide(&queued, "approve").await.is(409, "invalid_state");
        scene.decide(&json!({"id": "0190a000-0000-7000-8000-000000000000"}), "approve").await.is(404, "not_found");
        scene.decide(&json!({"id": "no-uuid"}), "approve").await.is(400, "invalid_query");
    }

    /// Of several decisions at the same time, exactly one is accepted.
    async fn concurrent_decisions_have_one_winner(scene: Scene) {
        let beside = scene.beside().await;
        for round in 0..6 {
            let (_, action) = waiting(scene).await;
            let (one, other) = (scene.app.session_as("alice", Role::Owner), beside.session_as("bob", Role::Owner));
            let second = if round % 2 == 0 { "approve" } else { "reject" };
            let (first, second) = tokio::join!(
                scene.decide_as(&one, &action, "approve"),
                scene.decide_as(&other, &action, second),
            );
            let won = [&first, &second].into_iter().filter(|it| it.status < 300).count();
            assert_eq!(won, 1, "{} {}", first.text(), second.text());
            let lost = if first.status < 300 { &second } else { &first };
            lost.is(409, "invalid_state");
            scene.provider.take_requests();
            scene.app.drain().await;
            let ended = scene.action(&action).await;
            let expected = if ended["status"] == "succeeded" { 1 } else { 0 };
            assert_eq!(scene.provider.request_count(), expected, "{ended}");
            assert_eq!(ended["decided_by"], if first.status < 300 { "alice" } else { "bob" });
        }
        beside.stop().await;
    }

    /// An approved escalation is executed once, outside of the limits, and counts towards neither.
    async fn approved_escalation_is_executed_outside_the_limits(scene: Scene) {
        let trace = scene.trace().await;
        let escalated = escalation(scene, &trace).await;
        scene.provider.take_requests();
        scene.decide(&escalated, "approve").await.ok();
        scene.app.drain().await;
        let ended = scene.action(&escalated).await;
        assert_eq!((&ended["status"], &ended["action_type"]), (&json!("succeeded"), &json!("escalate")));
        assert_eq!(scene.provider.request_count(), 1);
        let detail = scene.trace_detail(&trace).await;
        assert_eq!((&detail["control_loop_depth"], &detail["span_count"]), (&json!(3), &json!(5)));
        let next = scene.retry(&trace).await;
        assert_eq!((&next["metadata"]["escalation_reason"], &next["metadata"]["retry_count"]), (&json!("retry_threshold_exceeded"), &json!(3)));
        let fallback = scene.request(&trace, "fallback_model", json!({"action_config": {"model": "gpt-4o-mini"}})).await.ok();
        assert_eq!(fallback["status"], "queued", "three of five actions");
    }

    /// Between the request and its approval, other actions can use up the limit.
    async fn approval_at_the_limit_turns_the_action_into_an_escalation(scene: Scene) {
        let (trace, action) = waiting(scene).await;
        for _ in 0..3 {
            scene.retry(&trace).await;
        }
        let approved = scene.decide(&action, "approve").await.ok();
        assert_eq!((&approved["action_type"], &approved["metadata"]["retry_count"]), (&json!("escalate"), &json!(3)));
        scene.app.drain().await;
        assert_eq!(scene.action(&action).await["status"], "succeeded");
        assert_eq!(scene.trace_detail(&trace).await["control_loop_depth"], 3);
    }

    async fn waiting_action_is_published_to_webhooks(scene: Scene) {
        scene.subscribe(EventType::ControlActionPendingApproval).await;
        let (_, action) = waiting(scene).await;
        let escalated = escalation(scene, &scene.trace().await).await;
        let events = scene.events().await;
        assert_eq!(all(&events, "type"), ["control_action.pending_approval"; 2]);
        assert_eq!((&events[0]["data"]["action"], &events[1]["data"]["action"]), (&action, &escalated));
        assert_eq!(events[0]["project_id"], json!(scene.app.project));
    }

    async fn pending_queue_lists_waiting_actions(scene: Scene) {
        let (_, waiting) = waiting(scene).await;
        scene.app.advance(1);
        let escalated = escalation(scene, &scene.trace().await).await;
        let pending = scene.actions("status=pending_approval").await;
        assert_eq!(pending, [escalated.clone(), waiting.clone()]);
        scene.decide(&escalated, "reject").await.ok();
        assert_eq!(scene.actions("status=pending_approval").await, [waiting]);
    }
}
