//! Remediation regressions: outputs of actions that score lower than the original.

use api::webhook::EventType;
use serde_json::{Value, json};

use crate::{scene::Scene, with_provider};

/// Scores a trace with `baseline`, executes a retry whose output scores `score`, and returns the failures of the trace.
async fn failures_after(scene: &Scene, min_score_drop: Value, baseline: f64, score: f64) -> Vec<Value> {
    let rule = scene.judged_rule(json!({"min_score_drop": min_score_drop})).await;
    scene.provider.set_scores([baseline, score]);
    let trace = scene.trace().await;
    scene.app.drain().await;
    scene.execute(&trace, "retry", json!({})).await;
    scene.app.drain().await;
    scene.member().delete(&format!("/v1/eval-rules/{rule}")).await.ok();
    let list = scene.get(&format!("/v1/failures?limit=200&trace_id={trace}")).await;
    list["failures"].as_array().unwrap().clone()
}

with_provider! {
    async fn drop_of_at_least_the_minimum_is_a_regression(scene: Scene) {
        for (min_score_drop, baseline, score, expected) in [
            (json!(null), 0.8, 0.8, false),
            (json!(null), 0.8, 0.9, false),
            (json!(null), 0.8, 0.79, true),
            (json!(0.0), 0.8, 0.79, true),
            (json!(0.0), 0.0, 1.0, false),
            (json!(0.05), 0.8, 0.75, true),
            (json!(0.05), 0.9, 0.85, true),
            (json!(0.05), 0.8, 0.751, false),
            (json!(0.05), 0.8, 0.749, true),
            (json!(1.0), 1.0, 0.0, true),
            (json!(1.0), 1.0, 0.001, false),
            (json!(2.0), 1.0, 0.0, false),
            // The last drops differ from the minimum by less than the tolerance for binary fractions, and
            // by more.
            (json!(null), 0.5, 0.5 - 1e-10, false),
            (json!(null), 0.5, 0.5 - 1e-8, true),
            (json!(0.1), 0.5, 0.4 + 1e-10, true),
            (json!(0.1), 0.5, 0.4 + 1e-8, false),
        ] {
            let failures = failures_after(scene, min_score_drop.clone(), baseline, score).await;
            let found = failures.iter().filter(|it| it["type"] == "RemediationRegression").count();
            assert_eq!(found, usize::from(expected), "{min_score_drop} {baseline} {score}: {failures:?}");
        }
    }

    async fn regression_joins_a_cluster_and_reaches_webhooks_through_a_rule(scene: Scene) {
        scene.subscribe(EventType::FailureDetected).await;
        let failure = failures_after(scene, json!(0.05), 0.9, 0.2).await.remove(0);
        assert_eq!((&failure["type"], &failure["message"].as_str().unwrap().contains("0.9")), (&json!("RemediationRegression"), &true), "{failure}");
        let clusters = scene.get("/v1/failures/clusters?failure_type=RemediationRegression").await;
        assert_eq!((&clusters["clusters"][0]["count"], &clusters["clusters"][1]), (&json!(1), &Value::Null));
        assert_eq!(scene.events().await, Vec::<Value>::new(), "no failure rule matches regressions");
        let rule = json!({"name": "made worse", "failure_types": ["RemediationRegression"]});
        let rule = scene.app.full_key().post("/v1/failure-rules", &rule).await.ok();
        let failure = failures_after(scene, json!(0.05), 0.9, 0.2).await.remove(0);
        let events = scene.events().await;
        let [event] = &events[..] else { panic!("{events:?}") };
        assert_eq!((&event["type"], &event["data"]["trace"]["id"]), (&json!("failure.detected"), &failure["trace_id"]));
        assert_eq!(event["data"]["rules"][0]["id"], rule["id"]);
        let clusters = scene.get("/v1/failures/clusters?failure_type=RemediationRegression").await;
        assert_eq!(clusters["clusters"][0]["count"], 2, "{clusters}");
    }

    async fn changed_minimum_applies_to_later_evaluations(scene: Scene) {
        let rule = scene.judged_rule(json!({"min_score_drop": 0.5})).await;
        let path = format!("/v1/eval-rules/{rule}");
        scene.provider.set_scores([0.8, 0.6]);
        let trace = scene.trace().await;
        scene.app.drain().await;
        let count = async || scene.get("/v1/failures?type=RemediationRegression").await["failures"].as_array().unwrap().len();
        scene.execute(&trace, "retry", json!({})).await;
        scene.app.drain().await;
        assert_eq!(count().await, 0);
        let member = scene.member();
        member.send(member.request(reqwest::Method::PATCH, &path).json(&json!({"min_score_drop": null}))).await.ok();
        scene.execute(&trace, "retry", json!({})).await;
        scene.app.drain().await;
        assert_eq!(count().await, 1);
    }
}
