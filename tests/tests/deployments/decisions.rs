//! Decisions of owners, in every state, and what they do to the other versions.

use serde_json::json;
use tests::on_both_databases;
use uuid::Uuid;

use super::*;

on_both_databases! {
    async fn approved_deployment_is_shipped_and_supersedes(app: TestApp) {
        let (first, second) = (created(app, json!({})).await, created(app, json!({"template": "second"})).await);
        let note = json!({"note": "reviewed"});
        let path = format!("/v1/prompts/deployments/{}/approve", id(&first));
        app.advance(5);
        let done = app.session(Role::Owner).post(&path, &note).await.ok();
        let at = "2026-06-15T12:00:05.000000Z";
        assert_eq!((&done["status"], &done["decided_by"], &done["decided_at"]), (&json!("shipped"), &json!("test-owner"), &json!(at)));
        assert_eq!((&done["decision_note"], &done["shipped_at"]), (&json!("reviewed"), &json!(at)));
        decide(app, &second, "approve").await.ok();
        assert_eq!((status(app, &first).await, status(app, &second).await), ("superseded".to_owned(), "shipped".to_owned()));
        assert_eq!(served(app, "").await["template"], "second");
        assert_eq!(audited(app).await[2..], ["prompt_deployment.approve", "prompt_deployment.approve"]);
    }

    /// Every decision in every state.
    async fn decision_in_a_wrong_state_names_the_status(app: TestApp) {
        evaluate_traces(app).await;
        let old = shipped(app, json!({})).await;
        let rolled_back = shipped(app, json!({"prompt_name": "a"})).await;
        decide(app, &rolled_back, "rollback").await.ok();
        let rejected = created(app, json!({"prompt_name": "b"})).await;
        decide(app, &rejected, "reject").await.ok();
        let failed = tested(app, 2).await;
        scores(app, 1, &outputs(2, 0)).await;
        scores(app, 2, &outputs(0, 2)).await;
        let running = tested(app, 2).await;
        let passed = created(app, json!({"prompt_name": "c"})).await;
        let superseded = shipped(app, json!({"prompt_name": "d"})).await;
        let other = created(app, json!({"prompt_name": "d", "ab": {"metric_name": METRIC_NAME, "min_samples": 2, "max_regression": 1}})).await;
        assert_eq!(other["status"], "ab_running");
        decide(app, &other, "reject").await.ok();
        for (deployment, state, allowed) in [
            (&old, "shipped", &["reject", "rollback"][..]), (&rolled_back, "rolled_back", &[]), (&rejected, "rejected", &[]),
            (&failed, "ab_failed", &[]), (&running, "ab_running", &["reject"]), (&passed, "ab_passed", &["approve", "reject"]),
            (&superseded, "shipped", &["reject", "rollback"]),
        ] {
            assert_eq!(status(app, deployment).await, state);
            for decision in ["approve", "reject", "rollback"].into_iter().filter(|it| !allowed.contains(it)) {
                let reply = decide(app, deployment, decision).await;
                reply.is(409, "invalid_state");
                assert!(reply.text().contains(state), "{decision}: {}", reply.text());
            }
        }
    }

    async fn superseded_version_returns_only_by_withdrawal_of_its_successor(app: TestApp) {
        for decision in ["rollback", "reject"] {
            let name = json!({"prompt_name": decision});
            let (first, second) = (created(app, name.clone()).await, created(app, name).await);
            decide(app, &first, "approve").await.ok();
            decide(app, &second, "approve").await.ok();
            for wrong in ["approve", "reject", "rollback"] {
                decide(app, &first, wrong).await.is(409, "invalid_state");
            }
            app.advance(10);
            let done = decide(app, &second, decision).await.ok();
            let expected = if decision == "rollback" { "rolled_back" } else { "rejected" };
            assert_eq!(done["status"], expected);
            let restored = shown(app, &first).await;
            assert_eq!((&restored["status"], &restored["shipped_at"]), (&json!("shipped"), &done["decided_at"]));
            let path = format!("/v1/prompts/{decision}");
            assert_eq!(app.full_key().get(&path).await.ok()["version"], 1);
            // Without a version before it, nothing is served.
            decide(app, &first, decision).await.ok();
            app.full_key().get(&path).await.is(404, "not_found");
            assert_eq!(created(app, json!({"prompt_name": decision})).await["status"], "ab_passed");
        }
    }

    /// The test compares with a version that is not served any more.
    async fn running_test_fails_when_another_version_is_shipped(app: TestApp) {
        create_metric(app).await;
        let (first, waiting) = (created(app, json!({})).await, created(app, json!({})).await);
        decide(app, &first, "approve").await.ok();
        let test = tested(app, 10).await;
        decide(app, &waiting, "approve").await.ok();
        let failed = shown(app, &test).await;
        assert_eq!((&failed["status"], &failed["ab"]["p_value"]), (&json!("ab_failed"), &json!(null)));
        assert!(failed["reason"].as_str().unwrap().contains("version 2 was shipped"), "{failed}");
        let test = tested(app, 10).await;
        decide(app, &waiting, "rollback").await.ok();
        let failed = shown(app, &test).await;
        assert!(failed["reason"].as_str().unwrap().contains("version 2 was withdrawn"), "{failed}");
        assert_eq!(status(app, &first).await, "shipped");
    }

    async fn concurrent_approvals_ship_once(app: TestApp) {
        let beside = app.beside().await;
        let mut waiting = Vec::new();
        for _ in 0..5 {
            waiting.push(created(app, json!({})).await);
        }
        for made in waiting {
            let path = format!("/v1/prompts/deployments/{}/approve", id(&made));
            let body = json!({});
            let (mine, others) = (app.session(Role::Owner), beside.session(Role::Owner));
            let (one, two) = tokio::join!(mine.post(&path, &body), others.post(&path, &body));
            let mut statuses = [one.status, two.status];
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 409]);
            let loser = if one.status == 409 { one } else { two };
            loser.is(409, "invalid_state");
            assert!(loser.text().contains("shipped"), "{}", loser.text());
        }
        beside.stop().await;
    }

    async fn body_of_a_decision_is_optional(app: TestApp) {
        let owner = app.session(Role::Owner);
        let path = |made: &Value, decision: &str| format!("/v1/prompts/deployments/{}/{decision}", id(made));
        let made = created(app, json!({})).await;
        owner.post(&path(&made, "approve"), &json!({"note": "n".repeat(2_001)})).await.is(422, "validation_failed");
        owner.post(&path(&made, "approve"), &json!({"note": "a\u{0}"})).await.is(422, "validation_failed");
        owner.post(&path(&made, "approve"), &json!({"note": 1})).await.is(400, "invalid_body");
        owner.post(&path(&made, "approve"), &json!([])).await.is(400, "invalid_body");
        let done = owner.send(owner.request(reqwest::Method::POST, &path(&made, "approve"))).await.ok();
        assert_eq!((&done["status"], &done["decision_note"]), (&json!("shipped"), &json!(null)));
        let long = "ä".repeat(2_000);
        assert_eq!(owner.post(&path(&made, "rollback"), &json!({"note": long})).await.ok()["decision_note"], long);
        owner.post(&format!("/v1/prompts/deployments/{}/approve", Uuid::from_u128(9)), &json!({})).await.is(404, "not_found");
        owner.post("/v1/prompts/deployments/x/approve", &json!({})).await.is(400, "invalid_query");
    }
}
