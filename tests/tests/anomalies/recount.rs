//! Detection while the tokens of the traces of an earlier version are being counted.

use entities::trace;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use server::{anomalies::FEATURE, clock::Clock, features, housekeeping};
use tests::{TestApp, on_both_databases};

use crate::traffic::{DAY, Traffic, USUAL_SHAPE, detectors};

/// Marks the tokens of the stored traces as uncounted, as a migration does.
async fn mark_uncounted(app: &TestApp) {
    trace::Entity::update_many()
        .col_expr(trace::Column::TokensMeasured, false.into())
        .filter(trace::Column::TenantId.eq(app.tenant))
        .exec(&app.app.db.write)
        .await
        .unwrap();
}

on_both_databases! {
    async fn detection_waits_until_all_traces_are_counted(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        traffic.learn(4, USUAL_SHAPE).await;
        let before = detectors(app).await;
        mark_uncounted(app).await;
        traffic.pass(30, USUAL_SHAPE).await;
        assert_eq!(detectors(app).await, before);
        housekeeping::run_round(&app.app, features::ALL).await.unwrap();
        traffic.pass(15, USUAL_SHAPE).await;
        let after = detectors(app).await;
        assert!(after[0].next_start > before[0].next_start, "{} {}", after[0].next_start, app.clock.now());
    }

    /// The length of the intervals follows from the traffic, which is unknown until then.
    async fn new_detectors_wait_until_all_traces_are_counted(app: TestApp) {
        let mut traffic = Traffic::new(app).await;
        let now = app.clock.now();
        traffic.store(now - 4 * DAY, now, USUAL_SHAPE).await;
        mark_uncounted(app).await;
        housekeeping::run_round(&app.app, &[FEATURE]).await.unwrap();
        assert_eq!(detectors(app).await.len(), 0);
        housekeeping::run_round(&app.app, features::ALL).await.unwrap();
        housekeeping::run_round(&app.app, &[FEATURE]).await.unwrap();
        assert_eq!(detectors(app).await.len(), 1);
    }
}
