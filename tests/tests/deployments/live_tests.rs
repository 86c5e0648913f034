//! Live tests: which scores count, and how a test ends.

use entities::prompt_score;
use sea_orm::{ColumnTrait, QueryFilter};
use serde_json::json;
use tests::on_both_databases;

use super::*;

/// Ships a version and begins the test of another.
async fn begin(app: &TestApp, min_samples: usize) -> Value {
    evaluate_traces(app).await;
    shipped(app, json!({})).await;
    tested(app, min_samples).await
}

fn counts(shown: &Value) -> (i64, i64) {
    let count = |arm: &str| shown["ab"][arm]["n"].as_i64().unwrap();
    (count("baseline"), count("candidate"))
}

on_both_databases! {
    async fn better_candidate_passes_and_waits_for_approval(app: TestApp) {
        subscribe(app, &[EventType::PromptDeploymentAbPassed]).await;
        let test = begin(app, 20).await;
        scores(app, 1, &outputs(8, 12)).await;
        let halfway = shown(app, &test).await;
        assert_eq!((&halfway["status"], counts(&halfway)), (&json!("ab_running"), (20, 0)));
        assert!((halfway["ab"]["baseline"]["mean"].as_f64().unwrap() - 0.4).abs() < 1e-9, "{halfway}");
        scores(app, 2, &outputs(17, 3)).await;
        let passed = shown(app, &test).await;
        assert_eq!((&passed["status"], counts(&passed)), (&json!("ab_passed"), (20, 20)));
        let ab = &passed["ab"];
        let near = |found: &Value, expected: f64| (found.as_f64().unwrap() - expected).abs() < 1e-6;
        // scipy.stats.ttest_ind([1]*17 + [0]*3, [1]*8 + [0]*12, equal_var=False, alternative="greater")
        assert!(near(&ab["effect"], 0.45) && near(&ab["candidate"]["stddev"], 0.366_347_549), "{ab}");
        assert!(ab["p_value"].as_f64().unwrap() < 0.002 && ab["lower_bound"].as_f64().unwrap() > 0.2, "{ab}");
        assert!(ab["completed_at"].is_string() && passed["reason"].is_null() && passed["decided_by"].is_null());
        let sent = events(app).await;
        // The first version passed at once.
        assert_eq!(sent.len(), 2, "{sent:?}");
        assert_eq!((&sent[1]["type"], &sent[1]["data"]["deployment"]), (&json!("prompt_deployment.ab_passed"), &passed));
        // Later scores change nothing.
        scores(app, 1, &outputs(20, 0)).await;
        assert_eq!(shown(app, &test).await, passed);
        decide(app, &test, "approve").await.ok();
        assert_eq!(served(app, "subject=x").await["version"], 2);
    }

    async fn candidate_without_an_effect_fails_with_the_figures(app: TestApp) {
        let test = begin(app, 10).await;
        scores(app, 1, &outputs(5, 5)).await;
        scores(app, 2, &outputs(5, 5)).await;
        let failed = shown(app, &test).await;
        assert_eq!((&failed["status"], &failed["ab"]["effect"]), (&json!("ab_failed"), &json!(0.0)));
        let reason = failed["reason"].as_str().unwrap();
        assert!(reason.contains(METRIC_NAME) && reason.contains("lower bound"), "{reason}");
        assert_eq!(served(app, "subject=x").await["arm"], json!(null));
        // The next test may begin.
        assert_eq!(tested(app, 10).await["status"], "ab_running");
    }

    async fn candidate_within_the_tolerance_passes(app: TestApp) {
        evaluate_traces(app).await;
        shipped(app, json!({})).await;
        let test = created(app, json!({"ab": {"metric_name": METRIC_NAME, "min_samples": 10, "max_regression": 0.9}})).await;
        scores(app, 1, &outputs(5, 5)).await;
        scores(app, 2, &outputs(5, 5)).await;
        assert_eq!(status(app, &test).await, "ab_passed");
    }

    async fn undecided_test_fails_after_its_time(app: TestApp) {
        evaluate_traces(app).await;
        shipped(app, json!({})).await;
        let test = created(app, json!({"ab": {"metric_name": METRIC_NAME, "min_samples": 10, "max_duration_hours": 2}})).await;
        scores(app, 1, &outputs(3, 0)).await;
        app.advance(2 * 3_600 - 120);
        app.drain().await;
        assert_eq!(status(app, &test).await, "ab_running");
        app.advance(120);
        app.drain().await;
        let failed = shown(app, &test).await;
        assert_eq!((&failed["status"], &failed["ab"]["p_value"]), (&json!("ab_failed"), &json!(null)));
        let reason = failed["reason"].as_str().unwrap();
        assert!(reason.contains("2 hours") && reason.contains("3 of the baseline") && reason.contains("0 of the candidate"), "{reason}");
        scores(app, 2, &outputs(10, 0)).await;
        assert_eq!(shown(app, &test).await, failed);
    }

    async fn trace_counts_once_and_only_with_its_version(app: TestApp) {
        let test = begin(app, 10).await;
        let ids = scores(app, 1, &outputs(1, 0)).await;
        scores(app, 3, &outputs(2, 0)).await;
        app.full_key().post("/v1/ingest", &json!({"name": "chat", "output": "good"})).await.ok();
        let odd = json!({"name": "chat", "output": "good", "tags": {"prompt.name": PROMPT_NAME, "prompt.version": "two"}});
        app.full_key().post("/v1/ingest", &odd).await.ok();
        app.advance(60);
        app.drain().await;
        assert_eq!(counts(&shown(app, &test).await), (1, 0));
        // Another evaluation of the trace.
        let again = json!({"trace_id": ids[0], "metric_name": METRIC_NAME, "evaluator_type": "rule"});
        assert_eq!(app.full_key().post("/v1/eval", &again).await.status, 202);
        app.drain().await;
        assert_eq!(counts(&shown(app, &test).await), (1, 0));
    }

    /// Traces from before the test and other metrics do not count.
    async fn other_scores_do_not_count(app: TestApp) {
        evaluate_traces(app).await;
        shipped(app, json!({})).await;
        let early = ingest(app, 1, &outputs(2, 0)).await;
        app.advance(1);
        let test = tested(app, 10).await;
        app.advance(60);
        app.drain().await;
        let other = json!({"trace_id": early[0], "metric_name": "latency_threshold", "evaluator_type": "rule", "config": {"max_latency_ms": 1}});
        app.full_key().post("/v1/eval", &other).await.ok();
        app.drain().await;
        assert_eq!(counts(&shown(app, &test).await), (0, 0));
    }

    async fn score_without_a_deployment_causes_no_job(app: TestApp) {
        evaluate_traces(app).await;
        app.drain().await;
        ingest(app, 1, &outputs(1, 0)).await;
        app.advance(60);
        let without = app.drain().await;
        shipped(app, json!({})).await;
        tested(app, 10).await;
        ingest(app, 1, &outputs(1, 0)).await;
        app.advance(60);
        assert_eq!(app.drain().await, without + 1);
    }

    async fn deleted_trace_remains_counted(app: TestApp) {
        let test = begin(app, 10).await;
        let ids = scores(app, 1, &outputs(2, 0)).await;
        assert_eq!(app.full_key().delete(&format!("/v1/traces/{}", ids[0])).await.status, 204);
        assert_eq!(counts(&shown(app, &test).await), (2, 0));
        // A deleted trace is not counted later.
        let ids = ingest(app, 1, &outputs(1, 0)).await;
        assert_eq!(app.full_key().delete(&format!("/v1/traces/{}", ids[0])).await.status, 204);
        app.advance(60);
        app.drain().await;
        assert_eq!(counts(&shown(app, &test).await), (2, 0));
        let rows = prompt_score::Entity::find().filter(prompt_score::Column::TenantId.eq(app.tenant));
        let rows = rows.all(&app.app.db.write).await.unwrap();
        assert_eq!(rows.len(), 1, "the rows of deleted traces are deleted");
    }

    async fn test_does_not_progress_on_a_lower_plan(app: TestApp) {
        let test = begin(app, 2).await;
        app.set_plan(api::Plan::Pro).await;
        scores(app, 1, &outputs(2, 0)).await;
        assert_eq!(served(app, "subject=x").await["arm"], json!(null));
        app.session(Role::Viewer).get("/v1/prompts/deployments").await.is(402, "plan_upgrade_required");
        app.set_plan(api::Plan::Team).await;
        assert_eq!(counts(&shown(app, &test).await), (0, 0));
        scores(app, 1, &outputs(1, 0)).await;
        assert_eq!(counts(&shown(app, &test).await), (1, 0));
    }
}
