//! The watch over shipped versions.

use serde_json::json;
use tests::on_both_databases;

use super::*;

/// Ships a version after a test of 10 scores of each arm, in which the baseline had the mean 0.5.
async fn ship_tested(app: &TestApp) -> Value {
    evaluate_traces(app).await;
    shipped(app, json!({})).await;
    let test = tested(app, 10).await;
    scores(app, 1, &outputs(5, 5)).await;
    scores(app, 2, &outputs(10, 0)).await;
    decide(app, &test, "approve").await.ok()
}

on_both_databases! {
    async fn falling_scores_regress_and_publish_an_event(app: TestApp) {
        subscribe(app, &[EventType::PromptDeploymentRegressed]).await;
        let made = ship_tested(app).await;
        assert_eq!(made["watch"], json!(null));
        scores(app, 2, &outputs(9, 2)).await;
        let watched = shown(app, &made).await;
        let watch = &watched["watch"];
        assert_eq!((&watched["status"], &watch["windows"], &watch["current"]["n"]), (&json!("shipped"), &json!(1), &json!(1)));
        assert!((watch["effect"].as_f64().unwrap() - 0.4).abs() < 0.11, "{watch}");
        assert_eq!(events(app).await.len(), 0);
        scores(app, 2, &outputs(0, 9)).await;
        let regressed = shown(app, &made).await;
        assert_eq!((&regressed["status"], &regressed["watch"]["windows"]), (&json!("regressed"), &json!(2)), "{regressed}");
        let reason = regressed["reason"].as_str().unwrap();
        assert!(reason.contains(METRIC_NAME) && reason.contains("10 scores"), "{reason}");
        let sent = events(app).await;
        assert_eq!((sent.len(), &sent[0]["type"], &sent[0]["data"]["deployment"]["status"]), (1, &json!("prompt_deployment.regressed"), &json!("regressed")));
        // It is served until an owner rolls it back.
        assert_eq!(served(app, "").await["version"], 2);
        scores(app, 2, &outputs(0, 20)).await;
        assert_eq!(events(app).await.len(), 1);
        decide(app, &made, "rollback").await.ok();
        assert_eq!(served(app, "").await["version"], 1);
    }

    async fn only_traces_after_shipping_are_watched(app: TestApp) {
        evaluate_traces(app).await;
        shipped(app, json!({})).await;
        let fields = json!({"ab": {"metric_name": METRIC_NAME, "min_samples": 3, "max_regression": 1}});
        let test = created(app, fields).await;
        scores(app, 1, &["poor", "good", "poor"]).await;
        scores(app, 2, &outputs(3, 0)).await;
        ingest(app, 2, &outputs(0, 3)).await;
        app.advance(1);
        decide(app, &test, "approve").await.ok();
        app.advance(60);
        app.drain().await;
        assert_eq!(shown(app, &test).await["watch"], json!(null));
        // Scores of other versions do not count either.
        scores(app, 1, &outputs(0, 3)).await;
        assert_eq!(shown(app, &test).await["watch"], json!(null));
    }

    /// A version without a baseline has nothing to compare with.
    async fn first_version_is_not_watched(app: TestApp) {
        evaluate_traces(app).await;
        let made = shipped(app, json!({})).await;
        scores(app, 1, &outputs(0, 5)).await;
        assert_eq!(shown(app, &made).await["watch"], json!(null));
    }

    async fn restored_version_begins_a_new_window(app: TestApp) {
        let made = ship_tested(app).await;
        scores(app, 2, &outputs(12, 0)).await;
        let other = created(app, json!({"ab": {"metric_name": METRIC_NAME, "min_samples": 5, "max_regression": 1}})).await;
        scores(app, 2, &outputs(4, 1)).await;
        scores(app, 3, &outputs(5, 0)).await;
        decide(app, &other, "approve").await.ok();
        assert_eq!(shown(app, &made).await["watch"]["current"]["n"], 7);
        decide(app, &other, "rollback").await.ok();
        let restored = shown(app, &made).await;
        assert_eq!((&restored["status"], &restored["watch"]["windows"], &restored["watch"]["current"]["n"]), (&json!("shipped"), &json!(1), &json!(0)));
    }
}
