//! Creation of deployments, and bad input.

use serde_json::{Value, json};
use tests::on_both_databases;
use uuid::Uuid;

use super::*;

on_both_databases! {
    /// Without a shipped version there is nothing to compare with.
    async fn first_version_passes_at_once(app: TestApp) {
        let made = created(app, json!({"model": "gpt-4o", "ab": {"alpha": 0.1}})).await;
        let at = "2026-06-15T12:00:00.000000Z";
        assert_eq!(made, json!({"id": made["id"], "project_id": app.project, "prompt_name": PROMPT_NAME, "version": 1,
            "template": "Greet the user.", "model": "gpt-4o", "status": "ab_passed", "reason": null, "baseline_id": null,
            "mode": "live", "ab": null, "watch": null, "source_action_id": null, "created_by": "test-member", "decided_by": null,
            "decided_at": null, "decision_note": null, "shipped_at": null, "created_at": at, "updated_at": at}));
        assert_eq!(shown(app, &made).await, made);
        let second = created(app, json!({})).await;
        assert_eq!((&second["version"], &second["status"]), (&json!(2), &json!("ab_passed")));
        let other = created(app, json!({"prompt_name": "farewell"})).await;
        assert_eq!(other["version"], 1);
        assert_eq!(audited(app).await, ["prompt_deployment.create"; 3]);
    }

    async fn version_beside_a_shipped_one_is_tested(app: TestApp) {
        create_metric(app).await;
        let first = shipped(app, json!({})).await;
        let made = created(app, json!({"template": "Greet warmly.", "ab": {"metric_name": METRIC_NAME}})).await;
        assert_eq!((&made["status"], &made["baseline_id"], &made["version"]), (&json!("ab_running"), &first["id"], &json!(2)));
        let empty = json!({"n": 0, "mean": null, "stddev": null});
        assert_eq!(made["ab"], json!({"metric_name": METRIC_NAME, "traffic_share": 0.5, "min_samples": 100, "alpha": 0.05, "max_regression": 0.0,
            "max_duration_hours": 168, "baseline": empty, "candidate": empty, "p_value": null, "effect": null, "lower_bound": null, "completed_at": null}));
        let second = create(app, json!({"ab": {"metric_name": METRIC_NAME}})).await;
        second.is(409, "conflict");
        assert!(second.text().contains(id(&made)) && second.text().contains("version 2"), "{}", second.text());
        // A failed request takes no version.
        decide(app, &made, "reject").await.ok();
        assert_eq!(created(app, json!({"ab": {"metric_name": METRIC_NAME}})).await["version"], 3);
    }

    async fn metric_is_required_beside_a_shipped_version(app: TestApp) {
        shipped(app, json!({})).await;
        for fields in [json!({}), json!({"ab": {}}), json!({"ab": {"metric_name": null}})] {
            let reply = create(app, fields).await;
            reply.is(422, "validation_failed");
            assert_eq!(reply.json()["fields"][0]["field"], "ab.metric_name");
        }
    }

    async fn value_that_is_not_allowed_is_rejected_with_its_field(app: TestApp) {
        create_metric(app).await;
        let test = |fields: Value| {
            let mut test = json!({"metric_name": METRIC_NAME});
            test.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            json!({"ab": test})
        };
        for (fields, field) in [
            (json!({"prompt_name": "deployments"}), "prompt_name"), (json!({"prompt_name": ".."}), "prompt_name"),
            (json!({"prompt_name": ""}), "prompt_name"), (json!({"prompt_name": " a"}), "prompt_name"),
            (json!({"prompt_name": "a\nb"}), "prompt_name"), (json!({"prompt_name": "a\u{0}"}), "prompt_name"),
            (json!({"prompt_name": "ä".repeat(201)}), "prompt_name"),
            (json!({"template": " "}), "template"), (json!({"template": "a\u{0}"}), "template"),
            (json!({"template": "x".repeat(65_537)}), "template"),
            (json!({"source_action_id": Uuid::from_u128(1)}), "template"),
            (json!({"model": ""}), "model"), (json!({"model": "m".repeat(201)}), "model"), (json!({"mode": "dream"}), "mode"),
            (test(json!({"metric_name": "nonsense"})), "ab.metric_name"), (test(json!({"metric_name": "a\u{0}"})), "ab.metric_name"),
            (test(json!({"traffic_share": 0})), "ab.traffic_share"), (test(json!({"traffic_share": 1})), "ab.traffic_share"),
            (test(json!({"traffic_share": -0.5})), "ab.traffic_share"),
            (test(json!({"min_samples": 1})), "ab.min_samples"), (test(json!({"min_samples": 100_001})), "ab.min_samples"),
            (test(json!({"alpha": 0})), "ab.alpha"), (test(json!({"alpha": 0.5})), "ab.alpha"),
            (test(json!({"max_regression": -0.1})), "ab.max_regression"), (test(json!({"max_regression": 1.1})), "ab.max_regression"),
            (test(json!({"max_duration_hours": 0})), "ab.max_duration_hours"), (test(json!({"max_duration_hours": 8_761})), "ab.max_duration_hours"),
            (json!({"mode": "replay", "ab": {"metric_name": METRIC_NAME, "min_samples": 501}}), "ab.min_samples"),
        ] {
            let reply = create(app, fields.clone()).await;
            reply.is(422, "validation_failed");
            assert_eq!(reply.json()["fields"][0]["field"], field, "{fields}");
        }
        let boundaries = test(json!({"traffic_share": 0.001, "min_samples": 2, "alpha": 0.499, "max_regression": 1, "max_duration_hours": 8_760}));
        let longest = json!({"prompt_name": "ä".repeat(200), "template": "x".repeat(65_536)});
        for fields in [boundaries, longest] {
            assert_eq!(create(app, fields).await.status, 201);
        }
    }

    async fn incomplete_or_mistyped_body_is_a_bad_request(app: TestApp) {
        let member = app.session(Role::Member);
        for body in [
            json!({}), json!({"project_id": app.project, "prompt_name": PROMPT_NAME}), json!({"project_id": app.project, "template": "t"}),
            json!({"prompt_name": PROMPT_NAME, "template": "t"}), json!({"project_id": "p", "prompt_name": PROMPT_NAME, "template": "t"}),
            json!({"project_id": app.project, "prompt_name": 1, "template": "t"}),
            json!({"project_id": app.project, "prompt_name": PROMPT_NAME, "template": "t", "ab": []}),
            json!({"project_id": app.project, "prompt_name": PROMPT_NAME, "template": "t", "ab": {"min_samples": 2.5}}),
            json!({"project_id": app.project, "prompt_name": PROMPT_NAME, "template": null}),
        ] {
            member.post("/v1/prompts/deployments", &body).await.is(400, "invalid_body");
        }
        let (other, other_key) = app.other_tenant(api::Plan::Team).await;
        let project = other_key.get("/v1/projects").await.ok()["projects"][0]["id"].clone();
        create(app, json!({"project_id": project})).await.is(404, "not_found");
        create(app, json!({"project_id": other})).await.is(404, "not_found");
    }

    async fn concurrent_creations_have_different_versions(app: TestApp) {
        let requests = (0..8).map(|_| created(app, json!({})));
        let mut versions: Vec<i64> =
            futures::future::join_all(requests).await.iter().map(|it| it["version"].as_i64().unwrap()).collect();
        versions.sort_unstable();
        assert_eq!(versions, (1..=8).collect::<Vec<_>>());
    }

    /// One of the tests runs, the other request names it.
    async fn concurrent_creations_start_one_test(app: TestApp) {
        create_metric(app).await;
        shipped(app, json!({})).await;
        let requests = (0..6).map(|_| create(app, json!({"ab": {"metric_name": METRIC_NAME}})));
        let replies = futures::future::join_all(requests).await;
        assert_eq!(replies.iter().filter(|it| it.status == 201).count(), 1);
        assert_eq!(replies.iter().filter(|it| it.status == 409).count(), 5);
    }
}
