//! The beginning and the end of detection and of anomalies.

use entities::anomaly_detector;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use serde_json::{Value, json};
use server::{features, housekeeping};
use tests::on_both_databases;

use crate::traffic::{
    DAY, FAILING_SHAPE, HOUR, MINUTE, Shape, Traffic, USUAL_SHAPE, anomalies, detectors, metrics_of,
};

on_both_databases! {
    /// A project without traces has no detectors, so it costs nothing.
    async fn project_without_traces_has_no_detectors(app: TestApp) {
        Traffic::new(app).await.detect_everything().await;
        assert_eq!(detectors(app).await.len(), 0);
    }

    async fn archived_project_has_no_detection(app: TestApp) {
        let owner = app.session(api::Role::Owner);
        let second = owner.post("/v1/projects", &json!({"name": "second"})).await.ok();
        let second: uuid::Uuid = second["id"].as_str().unwrap().parse().unwrap();
        let mut traffic = Traffic::of_project(app, second).await;
        traffic.learn(4, USUAL_SHAPE).await;
        traffic.pass(60, FAILING_SHAPE).await;
        assert_eq!(anomalies(app).await[0]["status"], "open");

        let owner = app.session(api::Role::Owner);
        owner.post(&format!("/v1/projects/{second}/archive"), &json!({})).await.ok();
        traffic.pass(15, FAILING_SHAPE).await;
        assert_eq!(detectors(app).await.len(), 0);
        let closed = anomalies(app).await;
        assert_eq!((closed.len(), &closed[0]["close_reason"]), (1, &json!("detection_stopped")));
        housekeeping::run_round(&app.app, features::ALL).await.unwrap();
        assert_eq!(detectors(app).await.len(), 0);

        let owner = app.session(api::Role::Owner);
        owner.post(&format!("/v1/projects/{second}/unarchive"), &json!({})).await.ok();
        traffic.detect_everything().await;
        assert_eq!(detectors(app).await.len(), 1);
    }

    /// Detectors are removed after a week without traces.
    async fn silent_project_costs_nothing_after_a_week(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        traffic.learn(3, Shape { traces_per_hour: 3, ..USUAL_SHAPE }).await;
        assert_eq!(detectors(app).await.len(), 1);
        for _ in 0..9 {
            app.advance(DAY / 1_000_000);
            traffic.detect_everything().await;
        }
        assert_eq!(detectors(app).await.len(), 0);
        traffic.pass(15, USUAL_SHAPE).await;
        traffic.detect_everything().await;
        assert_eq!(detectors(app).await.len(), 1);
    }

    /// A project with much more traffic gets shorter intervals on the next day, and its detectors learn again.
    async fn interval_follows_the_traffic(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        traffic.learn(2, Shape { traces_per_hour: 10, ..USUAL_SHAPE }).await;
        assert_eq!(detectors(app).await[0].interval_micros, HOUR);
        for _ in 0..3 {
            traffic.pass(24 * 60, Shape { traces_per_hour: 90, ..USUAL_SHAPE }).await;
        }
        let rows = detectors(app).await;
        assert_eq!((rows.len(), rows[0].interval_micros), (1, 15 * MINUTE));
        assert!(!rows[0].state.is_empty() && rows[0].next_start > rows[0].live_from);
        assert_eq!(metrics_of(&anomalies(app).await), Vec::<&str>::new());
    }

    /// A state that this version cannot read is rebuilt from the metrics.
    async fn unreadable_state_is_rebuilt(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        traffic.learn(4, USUAL_SHAPE).await;
        for damaged in [vec![250_u8, 1, 2], vec![1_u8, 9, 9, 9]] {
            anomaly_detector::Entity::update_many()
                .col_expr(anomaly_detector::Column::State, damaged.into())
                .filter(anomaly_detector::Column::TenantId.eq(app.tenant))
                .exec(&app.app.db.write)
                .await
                .unwrap();
            traffic.pass(30, USUAL_SHAPE).await;
        }
        traffic.pass(60, FAILING_SHAPE).await;
        assert_eq!(metrics_of(&anomalies(app).await), ["error_rate"]);
    }

    async fn anomalies_expire_after_ninety_days(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        traffic.learn(4, USUAL_SHAPE).await;
        traffic.pass(60, FAILING_SHAPE).await;
        assert_eq!(anomalies(app).await.len(), 1);
        app.advance(89 * DAY / 1_000_000);
        housekeeping::run_round(&app.app, features::ALL).await.unwrap();
        assert_eq!(anomalies(app).await.len(), 1);
        app.advance(DAY / 1_000_000);
        housekeeping::run_round(&app.app, features::ALL).await.unwrap();
        assert_eq!(anomalies(app).await, Vec::<Value>::new());
    }
}
