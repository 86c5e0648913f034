//! The label of a score: from the threshold of the config, or from the level of the scale.

use super::{over_http::METRIC_NAME, scene_requests::scoring, *};

on_both! {
    async fn evaluation_label_follows_score_and_threshold(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let trace = scene.store_trace().await;
        for (threshold, labelled) in [
            (Value::Null, [(1.0, "pass"), (0.7, "pass"), (0.69, "warn"), (0.5, "warn"), (0.49, "fail"), (0.0, "fail")].as_slice()),
            (json!(0.9), &[(0.9, "pass"), (0.89, "warn"), (0.7, "warn"), (0.69, "fail")]),
            (json!(1), &[(1.0, "pass"), (0.99, "warn"), (0.8, "warn"), (0.79, "fail")]),
            (json!(0.1), &[(0.1, "pass"), (0.09, "warn"), (0.0, "warn")]),
            (json!(0), &[(0.0, "pass")]),
        ] {
            let config = if threshold.is_null() { json!({}) } else { json!({"threshold": threshold}) };
            for (score, label) in labelled {
                scene.own.set_behaviours([scoring(*score)]);
                let done = scene.evaluate_trace(&trace, METRIC_NAME, json!({"config": config})).await;
                assert_eq!((&done["score"], &done["label"]), (&json!(score), &json!(label)), "{config}");
            }
        }
        for (label, count) in [("pass", 6), ("warn", 8), ("fail", 4)] {
            let list = scene.get(&format!("/v1/eval?label={label}")).await;
            assert_eq!(list["evaluations"].as_array().unwrap().len(), count, "{label}");
        }
        scene.stop().await;
    }

    async fn rule_threshold_applies_to_its_evaluations(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let rule = scene.create_rule().await;
        scene.patch(&rule, &json!({"config": {"threshold": 0.8}})).await.ok();
        scene.app.advance(1);
        scene.store_trace().await;
        scene.fire_rules().await;
        let done = &scene.evaluations().await[0];
        assert_eq!((&done["score"], &done["label"]), (&json!(0.75), &json!("warn")), "{done}");
        scene.stop().await;
    }

    /// The label of a level does not depend on the threshold.
    async fn level_label_ignores_the_threshold(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let levels = json!([{"label": "polite", "score": 1}, {"label": "curt", "score": 0.6}, {"label": "rude", "score": 0}]);
        scene.create_evaluator(json!({"name": "manners", "evaluator_type": "llm", "rubric": "How polite is {{output}}?", "scale": {"levels": levels}})).await;
        let trace = scene.store_trace().await;
        for (verdict, score) in [("polite", 1.0), ("curt", 0.6), ("rude", 0.0)] {
            scene.own.set_behaviours([Behaviour::RepliesWith(json!({"reasoning": "So it is.", "verdict": verdict}).to_string())]);
            for config in [json!({}), json!({"threshold": 0.5})] {
                let done = scene.evaluate_trace(&trace, "manners", json!({"config": config})).await;
                let found = (&done["status"], &done["score"], &done["label"]);
                assert_eq!(found, (&json!("complete"), &json!(score), &json!(verdict)), "{config}");
            }
            let listed = scene.get(&format!("/v1/eval?label={verdict}")).await;
            assert_eq!(listed["evaluations"].as_array().unwrap().len(), 2, "{listed}");
        }
        scene.own.set_behaviours([Behaviour::RepliesWith(json!({"reasoning": "So it is.", "verdict": "gruff"}).to_string())]);
        let done = scene.evaluate_trace(&trace, "manners", json!({})).await;
        assert_eq!((&done["status"], &done["label"]), (&json!("failed"), &Value::Null), "a reply with an unknown level: {done}");
        scene.stop().await;
    }
}
