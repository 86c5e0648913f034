//! Which changes in the traffic of a project are anomalies, and which are not.

use api::Plan;
use entities::{webhook, webhook_event};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use serde_json::{Value, json};
use server::clock::Clock;
use tests::{TestApp, app::TEST_START_MICROS, on_both_databases};
use uuid::Uuid;

use crate::traffic::{
    DAY, FAILING_SHAPE, HOUR, MINUTE, OUTAGE_SHAPE, Shape, Traffic, USUAL_SHAPE, anomalies, detectors,
    metrics_of,
};

/// Stores a webhook that is subscribed to anomalies.
async fn subscribe(app: &TestApp) {
    let row = webhook::Model {
        tenant_id: app.tenant,
        id: Uuid::from_u128(7),
        url: "https://example.com/hook".to_owned(),
        secret: vec![1; 32],
        previous_secret: None,
        previous_until: None,
        events: json!(["anomaly.detected"]).to_string(),
        enabled: true,
        disabled_reason: None,
        failing_since: None,
        last_delivery_at: None,
        created_at: TEST_START_MICROS,
        updated_at: TEST_START_MICROS,
    };
    let db = &app.app.db.write;
    webhook::Entity::insert(webhook::ActiveModel::from(row)).exec_without_returning(db).await.unwrap();
}

/// Returns the payloads of the published events, oldest first.
async fn events(app: &TestApp) -> Vec<Value> {
    let own = webhook_event::Column::TenantId.eq(app.tenant);
    let mut rows = webhook_event::Entity::find().filter(own).all(&app.app.db.write).await.unwrap();
    rows.sort_by_key(|it| it.id);
    rows.iter().map(|it| serde_json::from_str(&it.payload).unwrap()).collect()
}

on_both_databases! {
    async fn error_burst_is_detected_and_closed(app: TestApp) {
        subscribe(app).await;
        let mut traffic = Traffic::new(app).await;
        traffic.learn(10, USUAL_SHAPE).await;
        assert_eq!(detectors(app).await[0].interval_micros, 15 * MINUTE);
        traffic.pass(120, USUAL_SHAPE).await;
        assert_eq!(anomalies(app).await, Vec::<Value>::new());

        let burst = app.clock.now();
        traffic.pass(60, FAILING_SHAPE).await;
        let found = anomalies(app).await;
        assert_eq!(metrics_of(&found), ["error_rate"]);
        let anomaly = &found[0];
        assert_eq!((&anomaly["direction"], &anomaly["status"]), (&json!("up"), &json!("open")));
        assert_eq!((&anomaly["project_id"], &anomaly["close_reason"]), (&json!(app.project), &Value::Null));
        let (observed, expected) = (anomaly["observed"].as_f64().unwrap(), anomaly["expected"].as_f64().unwrap());
        assert!(observed > 0.3 && expected < 0.1, "{anomaly}");
        assert!(anomaly["expected_high"].as_f64().unwrap() < observed, "{anomaly}");
        assert!(anomaly["score"].as_f64().unwrap() >= 4.8, "{anomaly}");
        let start: api::Timestamp = anomaly["window_start"].as_str().unwrap().parse().unwrap();
        assert!((start.micros() - burst).abs() <= 15 * MINUTE, "{anomaly}");
        // The anomaly was detected within half an hour.
        let created: api::Timestamp = anomaly["created_at"].as_str().unwrap().parse().unwrap();
        assert!(created.micros() - burst <= 32 * MINUTE, "{anomaly}");

        traffic.pass(150, USUAL_SHAPE).await;
        let closed = anomalies(app).await;
        assert_eq!(metrics_of(&closed), ["error_rate"]);
        assert_eq!((&closed[0]["status"], &closed[0]["close_reason"]), (&json!("closed"), &json!("recovered")));
        assert_eq!((&closed[0]["id"], &closed[0]["created_at"]), (&anomaly["id"], &anomaly["created_at"]));
        let end: api::Timestamp = closed[0]["window_end"].as_str().unwrap().parse().unwrap();
        assert!((end.micros() - burst - HOUR).abs() <= 30 * MINUTE, "{closed:?}");

        let events = events(app).await;
        assert!(!events.is_empty() && events.iter().all(|it| it["type"] == "anomaly.detected"), "{events:?}");
        assert_eq!(events[0]["project_id"], json!(app.project));
        assert_eq!((&events[0]["data"]["id"], &events[0]["data"]["metric"]), (&anomaly["id"], &json!("error_rate")));
        // One event reports the opening, and at most one more the rise of the severity to `high`.
        let high = closed[0]["severity"] == "high" && events[0]["data"]["severity"] != "high";
        assert_eq!(events.len(), if high { 2 } else { 1 }, "{events:?}");
    }

    /// An anomaly without any traces has the highest severity.
    async fn outage_is_of_high_severity(app: TestApp) {
        subscribe(app).await;
        let mut traffic = Traffic::new(app).await;
        traffic.learn(12, USUAL_SHAPE).await;
        traffic.pass(120, OUTAGE_SHAPE).await;
        let found = anomalies(app).await;
        assert_eq!(metrics_of(&found), ["volume"]);
        assert_eq!((&found[0]["direction"], &found[0]["severity"]), (&json!("down"), &json!("high")));
        let high = events(app).await.into_iter().filter(|it| it["data"]["severity"] == "high").count();
        assert_eq!(high, 1);
        let query = |it: &str| format!("/v1/anomalies?severity={it}");
        for (severity, count) in [("high", 1), ("low", 0)] {
            let list = app.full_key().get(&query(severity)).await.ok();
            assert_eq!(list["anomalies"].as_array().unwrap().len(), count, "{severity}");
        }
    }

    async fn slow_traces_are_detected(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        traffic.learn(5, USUAL_SHAPE).await;
        traffic.pass(120, Shape { latency_ms: 4_000, ..USUAL_SHAPE }).await;
        assert_eq!(metrics_of(&anomalies(app).await), ["latency_p95"]);
    }

    /// Learning from the past reports nothing, even if the past was bad.
    async fn past_anomalies_are_not_reported(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        let now = app.clock.now();
        traffic.store(now - 10 * DAY, now - 2 * DAY, USUAL_SHAPE).await;
        traffic.store(now - 2 * DAY, now - 2 * DAY + 2 * HOUR, FAILING_SHAPE).await;
        traffic.store(now - 2 * DAY + 2 * HOUR, now, USUAL_SHAPE).await;
        traffic.detect_everything().await;
        traffic.pass(60, USUAL_SHAPE).await;
        assert_eq!(detectors(app).await.len(), 1);
        assert_eq!(anomalies(app).await, Vec::<Value>::new());
    }

    /// An anomaly that is still open when learning ends is reported.
    async fn anomaly_that_began_in_the_past_is_reported(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        let now = app.clock.now();
        traffic.store(now - 10 * DAY, now - 2 * HOUR, USUAL_SHAPE).await;
        traffic.store(now - 2 * HOUR, now, FAILING_SHAPE).await;
        traffic.detect_everything().await;
        assert_eq!(metrics_of(&anomalies(app).await), ["error_rate"]);
    }

    async fn project_with_few_traces_has_hourly_intervals(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        let quiet = Shape { traces_per_hour: 3, ..USUAL_SHAPE };
        traffic.learn(12, quiet).await;
        traffic.pass(24 * 60, quiet).await;
        let rows = detectors(app).await;
        assert_eq!((rows.len(), rows[0].interval_micros), (1, HOUR));
        assert_eq!(rows[0].next_start, app.clock.now() - app.clock.now() % HOUR);
        assert_eq!(anomalies(app).await, Vec::<Value>::new());
    }

    /// Anomalies are part of every plan.
    async fn anomalies_are_detected_on_the_lowest_plan(app: TestApp) {
        app.set_plan(Plan::Starter).await;
        subscribe(app).await;
        let mut traffic = Traffic::new(app).await;
        traffic.learn(4, USUAL_SHAPE).await;
        traffic.pass(60, FAILING_SHAPE).await;
        assert_eq!(metrics_of(&anomalies(app).await), ["error_rate"]);
        // Webhooks are not part of this plan.
        assert_eq!(events(app).await, Vec::<Value>::new());
    }
}
