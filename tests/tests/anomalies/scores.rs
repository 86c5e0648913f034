//! Anomalies of evaluation scores.

use entities::evaluation;
use sea_orm::EntityTrait;
use serde_json::{Value, json};
use server::clock::Clock;
use tests::{TestApp, on_both_databases};
use uuid::Uuid;

use crate::traffic::{DAY, HOUR, MINUTE, Traffic, USUAL_SHAPE, anomalies, metrics_of};

/// Stores evaluations that were completed within a period, two a minute, with scores around a mean.
async fn evaluate(app: &TestApp, context: &str, from: i64, end: i64, mean: f64) {
    let mut rng = fastrand::Rng::with_seed(u64::try_from(from).unwrap());
    let rows: Vec<_> = (from..end)
        .step_by(MINUTE as usize / 2)
        .map(|at| {
            evaluation::ActiveModel::from(evaluation::Model {
                tenant_id: app.tenant,
                id: store::new_id(),
                trace_id: store::new_id(),
                project_id: app.project,
                span_id: None,
                metric_name: "faithfulness".to_owned(),
                evaluator_type: "llm".to_owned(),
                evaluator_version: "1".to_owned(),
                config: None,
                model_tier: None,
                status: "complete".to_owned(),
                context: context.to_owned(),
                source_action_id: Uuid::nil(),
                original_evaluation_id: None,
                rule_id: None,
                bulk_id: None,
                score: Some((mean + (rng.f64() - 0.5) * 0.2).min(1.0)),
                label: None,
                reasoning: None,
                error: None,
                judge_model: None,
                prompt_tokens: None,
                completion_tokens: None,
                cost: None,
                attempts: 1,
                returns: 0,
                asked: 0,
                quota_month: None,
                created_at: at,
                completed_at: Some(at),
            })
        })
        .collect();
    for block in rows.chunks(200) {
        let insert = evaluation::Entity::insert_many(block.to_vec());
        insert.exec_without_returning(&app.app.db.write).await.unwrap();
    }
}

on_both_databases! {
    async fn falling_score_is_detected(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        let now = app.clock.now();
        evaluate(app, "fresh", now - 4 * DAY, now, 0.85).await;
        traffic.learn(4, USUAL_SHAPE).await;
        for _ in 0..4 {
            let now = app.clock.now();
            evaluate(app, "fresh", now - now % (15 * MINUTE), now - now % (15 * MINUTE) + 15 * MINUTE, 0.5).await;
            traffic.pass(15, USUAL_SHAPE).await;
        }
        let found = anomalies(app).await;
        assert_eq!(metrics_of(&found), ["score:faithfulness"]);
        assert_eq!((&found[0]["direction"], &found[0]["status"]), (&json!("down"), &json!("open")));
        let (observed, expected) = (found[0]["observed"].as_f64().unwrap(), found[0]["expected"].as_f64().unwrap());
        assert!((0.4..0.6).contains(&observed) && (0.8..0.9).contains(&expected), "{found:?}");
        let list = app.full_key().get("/v1/anomalies?metric=score:faithfulness").await.ok();
        assert_eq!(list["anomalies"].as_array().unwrap(), &found);
    }

    /// Evaluations of remediated outputs do not measure the application.
    async fn scores_of_remediations_do_not_count(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        let now = app.clock.now();
        evaluate(app, "fresh", now - 4 * DAY, now, 0.85).await;
        traffic.learn(4, USUAL_SHAPE).await;
        let start = now - now % (15 * MINUTE);
        evaluate(app, "fresh", start, start + HOUR, 0.85).await;
        evaluate(app, "remediation", start, start + HOUR, 0.2).await;
        traffic.pass(60, USUAL_SHAPE).await;
        assert_eq!(anomalies(app).await, Vec::<Value>::new());
    }
}
