//! Several processes, repeated jobs and restarts.

use serde_json::json;
use server::clock::Clock;
use server::metric_folding;
use tests::on_both_databases;

use crate::traffic::{
    FAILING_SHAPE, MINUTE, Traffic, USUAL_SHAPE, anomalies, detectors, enqueue_again, metrics_of,
};

on_both_databases! {
    /// Two processes that work on the same intervals at the same time, as after a lost lease, store each anomaly
    /// once.
    async fn two_processes_report_an_anomaly_once(app: TestApp) {
        let beside = app.beside().await;
        let mut traffic = Traffic::new(app).await;
        traffic.learn(4, USUAL_SHAPE).await;
        for _ in 0..4 {
            traffic.store_quarter(FAILING_SHAPE).await;
            enqueue_again(app).await;
            tokio::join!(app.drain(), beside.drain());
            assert_eq!(detectors(app).await[0].due_at - app.clock.now(), 14 * MINUTE);
        }
        assert_eq!(metrics_of(&anomalies(app).await), ["error_rate"]);
        beside.stop().await;
    }

    async fn repeated_job_changes_nothing(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        traffic.learn(4, USUAL_SHAPE).await;
        traffic.pass(60, FAILING_SHAPE).await;
        let (found, rows) = (anomalies(app).await, detectors(app).await);
        assert_eq!(metrics_of(&found), ["error_rate"]);
        for _ in 0..2 {
            enqueue_again(app).await;
            assert!(app.drain().await > 0);
            assert_eq!((anomalies(app).await, detectors(app).await), (found.clone(), rows.clone()));
        }
        // An interval that was computed before it was lost is not stored again.
        let stale = entities::anomaly_detector::Model { next_start: rows[0].next_start - 15 * MINUTE, ..rows[0].clone() };
        let txn = app.app.db.begin().await.unwrap();
        assert!(!store::anomalies::detectors::advance(&txn, &stale, rows[0].clone()).await.unwrap());
        assert!(!store::anomalies::detectors::remove(&txn, &stale).await.unwrap());
        txn.commit().await.unwrap();
        assert_eq!(detectors(app).await, rows);
    }

    /// Another process continues from the stored state while an anomaly is open.
    async fn restart_continues_an_open_anomaly(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        traffic.learn(4, USUAL_SHAPE).await;
        traffic.pass(60, FAILING_SHAPE).await;
        let opened = anomalies(app).await;
        assert_eq!(opened[0]["status"], "open");
        for _ in 0..10 {
            let later = app.beside().await;
            traffic.store_quarter(USUAL_SHAPE).await;
            metric_folding::run_round(&later.app, i64::MAX).await.unwrap();
            later.drain().await;
            later.stop().await;
        }
        let closed = anomalies(app).await;
        assert_eq!((closed.len(), &closed[0]["id"]), (1, &opened[0]["id"]));
        assert_eq!((&closed[0]["status"], &closed[0]["close_reason"]), (&json!("closed"), &json!("recovered")));
    }

    /// Intervals without traces that are processed long after their end say nothing: the server was down.
    async fn downtime_is_not_an_anomaly(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        traffic.learn(12, USUAL_SHAPE).await;
        traffic.pass(30, USUAL_SHAPE).await;
        app.advance(4 * 3_600);
        app.drain().await;
        traffic.pass(60, USUAL_SHAPE).await;
        assert_eq!(metrics_of(&anomalies(app).await), Vec::<&str>::new());
    }

    /// The processing of several due intervals equals their processing one by one.
    async fn late_processing_finds_the_same_anomalies(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        traffic.learn(4, USUAL_SHAPE).await;
        for _ in 0..4 {
            traffic.store_quarter(FAILING_SHAPE).await;
        }
        assert_eq!(anomalies(app).await.len(), 0);
        app.drain().await;
        assert_eq!(metrics_of(&anomalies(app).await), ["error_rate"]);
    }
}
