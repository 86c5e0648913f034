//! Evaluations of remediated outputs.

use serde_json::{Value, json};

use crate::with_provider;

with_provider! {
    async fn output_of_an_action_is_evaluated_with_its_baseline(scene: Scene) {
        let (judged, checked) = (scene.judged_rule(json!({})).await, scene.output_rule().await);
        scene.provider.set_scores([0.3, 0.9]);
        let trace = scene.trace().await;
        scene.app.drain().await;
        let fresh = scene.evaluations(&format!("trace_id={trace}")).await;
        assert_eq!(fresh.len(), 2);
        for it in &fresh {
            assert_eq!((&it["context"], &it["source_action_id"], &it["original_evaluation_id"]), (&json!("fresh"), &Value::Null, &Value::Null));
        }
        scene.app.advance(1);
        let action = scene.execute(&trace, "retry", json!({})).await;
        for (rule, before, after) in [(&judged, 0.3, 0.9), (&checked, 0.0, 1.0)] {
            let rows = scene.evaluations(&format!("trace_id={trace}&rule_id={rule}")).await;
            let [again, first] = &rows[..] else { panic!("{rows:?}") };
            assert_eq!((&first["score"], &again["score"]), (&json!(before), &json!(after)));
            assert_eq!((&again["context"], &again["status"], &again["source_action_id"]), (&json!("remediation"), &json!("complete"), &action["id"]));
            assert_eq!(again["original_evaluation_id"], first["id"]);
            assert_eq!(scene.get(&format!("/v1/eval/{}", again["id"].as_str().unwrap())).await, *again);
        }
        // A second action has the same baseline: the trace as ingested.
        let second = scene.execute(&trace, "retry", json!({})).await;
        let rows = scene.evaluations(&format!("trace_id={trace}&rule_id={judged}")).await;
        assert_eq!((rows.len(), &rows[0]["source_action_id"], &rows[0]["original_evaluation_id"]), (3, &second["id"], &rows[2]["id"]));
    }

    async fn output_without_earlier_evaluation_has_no_baseline(scene: Scene) {
        let trace = scene.trace().await;
        scene.app.drain().await;
        let rule = scene.output_rule().await;
        scene.execute(&trace, "retry", json!({})).await;
        let rows = scene.evaluations(&format!("rule_id={rule}&context=remediation")).await;
        assert_eq!((rows.len(), &rows[0]["score"], &rows[0]["original_evaluation_id"]), (1, &json!(1.0), &Value::Null), "{rows:?}");
    }

    async fn rules_that_do_not_apply_evaluate_no_output(scene: Scene) {
        let disabled = scene.judged_rule(json!({"enabled": false})).await;
        let other = scene.judged_rule(json!({"filter": {"model": "claude-x"}})).await;
        let trace = scene.trace().await;
        scene.app.drain().await;
        scene.execute(&trace, "retry", json!({})).await;
        for rule in [disabled, other] {
            assert_eq!(scene.evaluations(&format!("rule_id={rule}")).await, Vec::<Value>::new());
        }
    }

    /// A sample applies to traces, not to the outputs of actions.
    async fn outputs_are_not_sampled_out(scene: Scene) {
        let rule = scene.judged_rule(json!({"sample_rate": 0.01})).await;
        let mut unsampled = 0;
        for _ in 0..3 {
            let trace = scene.trace().await;
            scene.app.drain().await;
            unsampled += usize::from(scene.evaluations(&format!("trace_id={trace}")).await.is_empty());
            scene.execute(&trace, "retry", json!({})).await;
        }
        assert!(unsampled > 0);
        assert_eq!(scene.evaluations(&format!("rule_id={rule}&context=remediation")).await.len(), 3);
    }

    /// The evaluation of the failed call has no score, which a rule would otherwise try again when the trace changes.
    async fn output_is_not_evaluated_as_that_of_the_application(scene: Scene) {
        let rule = scene.output_rule().await;
        let trace = scene.failing_trace().await;
        scene.app.drain().await;
        let fresh = scene.evaluations(&format!("rule_id={rule}")).await;
        assert_eq!((fresh.len(), &fresh[0]["status"]), (1, &json!("failed")), "{fresh:?}");
        assert_eq!(scene.execute(&trace, "retry", json!({})).await["status"], "succeeded");
        scene.app.advance(600);
        scene.app.drain().await;
        let contexts: Vec<Value> = scene.evaluations(&format!("rule_id={rule}")).await.iter().map(|it| it["context"].clone()).collect();
        assert_eq!(contexts, ["remediation", "fresh"]);
    }

    /// A score of one metric is no baseline of another one.
    async fn changed_metric_of_a_rule_has_no_baseline(scene: Scene) {
        let rule = scene.judged_rule(json!({})).await;
        let trace = scene.trace().await;
        scene.app.drain().await;
        scene.app.advance(1);
        let key = scene.app.full_key();
        let path = format!("/v1/eval-rules/{rule}");
        let change = json!({"metric_name": "toxicity"});
        key.send(key.request(reqwest::Method::PATCH, &path).json(&change)).await.ok();
        scene.execute(&trace, "retry", json!({})).await;
        let rows = scene.evaluations(&format!("rule_id={rule}&context=remediation")).await;
        assert_eq!((&rows[0]["metric_name"], &rows[0]["original_evaluation_id"]), (&json!("toxicity"), &Value::Null));
    }

    async fn failed_action_is_not_evaluated(scene: Scene) {
        let rule = scene.output_rule().await;
        let trace = scene.trace_with(json!({"input": null})).await;
        scene.app.drain().await;
        assert_eq!(scene.execute(&trace, "retry", json!({})).await["status"], "failed");
        assert_eq!(scene.evaluations(&format!("rule_id={rule}")).await.len(), 1);
    }

    /// Each evaluation of an output by a judge counts towards the monthly quota; beyond it, the output is kept
    /// without a score.
    async fn evaluations_beyond_the_quota_are_dropped(scene: Scene) {
        let (judged, checked) = (scene.judged_rule(json!({})).await, scene.output_rule().await);
        let trace = scene.trace().await;
        scene.app.use_evaluations(250_000).await;
        assert_eq!(scene.execute(&trace, "retry", json!({})).await["status"], "succeeded");
        assert_eq!(scene.evaluations(&format!("rule_id={judged}")).await, Vec::<Value>::new());
        assert_eq!(scene.evaluations(&format!("rule_id={checked}&context=remediation")).await.len(), 1);
    }
}
