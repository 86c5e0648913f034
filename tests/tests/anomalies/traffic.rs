//! Traffic of a project, stored as metrics without rows of traces, and a clock that moves with it.

use entities::{anomaly_detector, job, trace};
use fastrand::Rng;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use serde_json::{Value, json};
use server::{clock::Clock, features, housekeeping, metric_folding};
use store::metrics::{self, delta::Delta};
use tests::{TestApp, app::TEST_START_MICROS};
use uuid::Uuid;

pub const MINUTE: i64 = 60_000_000;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;
/// The time after the end of an interval at which it has certainly been processed.
const PROCESSED_SECONDS: i64 = 60;

/// What the traces of a period look like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub traces_per_hour: i64,
    pub failing_percent: u8,
    pub latency_ms: i64,
}

/// Fifteen traces in an interval of a quarter of an hour.
pub const USUAL_SHAPE: Shape = Shape { traces_per_hour: 60, failing_percent: 2, latency_ms: 900 };
pub const FAILING_SHAPE: Shape = Shape { failing_percent: 60, ..USUAL_SHAPE };
pub const OUTAGE_SHAPE: Shape = Shape { traces_per_hour: 0, ..USUAL_SHAPE };

/// Feeds a project with traffic.
pub struct Traffic<'a> {
    pub app: &'a TestApp,
    pub project: Uuid,
    template: trace::Model,
    rng: Rng,
}

impl<'a> Traffic<'a> {
    /// Creates the traffic of the test's project. A stored trace is the pattern of the others.
    pub async fn new(app: &'a TestApp) -> Self {
        Self::of_project(app, app.project).await
    }

    pub async fn of_project(app: &'a TestApp, project: Uuid) -> Self {
        let own = || trace::Entity::find().filter(trace::Column::TenantId.eq(app.tenant));
        let template = match own().one(&app.app.db.write).await.unwrap() {
            Some(it) => it,
            None => {
                let item = json!({"started_at": api::Timestamp::from_micros(TEST_START_MICROS - 40 * DAY), "cost": 0.002});
                app.full_key().post("/v1/ingest", &item).await.ok();
                own().one(&app.app.db.write).await.unwrap().unwrap()
            }
        };
        Self { app, project, template, rng: Rng::with_seed(5) }
    }

    /// Stores days of usual traffic before the current time, and lets the detectors learn from them.
    pub async fn learn(&mut self, days: i64, shape: Shape) {
        let now = self.app.clock.now();
        for day in (1..=days).rev() {
            self.store(now - day * DAY, now - (day - 1) * DAY, shape).await;
        }
        self.detect_everything().await;
    }

    /// Finds new projects, and processes all due intervals.
    pub async fn detect_everything(&self) {
        metric_folding::run_round(&self.app.app, i64::MAX).await.unwrap();
        housekeeping::run_round(&self.app.app, features::ALL).await.unwrap();
        self.app.drain().await;
    }

    /// Lets time pass with traffic of this shape. Each quarter of an hour is processed after its end.
    pub async fn pass(&mut self, minutes: i64, shape: Shape) {
        for _ in 0..minutes / 15 {
            self.store_quarter(shape).await;
            self.app.drain().await;
        }
    }

    /// Lets a quarter of an hour pass without processing it.
    pub async fn store_quarter(&mut self, shape: Shape) {
        let now = self.app.clock.now();
        let start = now - now.rem_euclid(15 * MINUTE);
        self.store(start, start + 15 * MINUTE, shape).await;
        let wanted = start + 15 * MINUTE + PROCESSED_SECONDS * 1_000_000;
        self.app.advance((wanted - now) / 1_000_000);
    }

    /// Stores traces that start within a period.
    pub async fn store(&mut self, from: i64, end: i64, shape: Shape) {
        let mut delta = Delta::default();
        let expected = (end - from) * shape.traces_per_hour;
        let count = expected / HOUR + i64::from(self.rng.i64(0..HOUR) < expected % HOUR);
        for number in 0..count {
            let slot = (end - from) / count;
            let noise = self.rng.i64(-200..200);
            delta.add(&trace::Model {
                project_id: self.project,
                started_at: from + number * slot + self.rng.i64(0..slot),
                error: (self.rng.u8(0..100) < shape.failing_percent).then(|| "timed out".to_owned()),
                latency_ms: Some(shape.latency_ms + noise * shape.latency_ms / 1_000),
                total_tokens: 1_000 + noise,
                cost: Some(2_000_000_000 + noise * 1_000_000),
                ..self.template.clone()
            });
        }
        let (db, tenant) = (&self.app.app.db, self.app.tenant);
        metrics::add(&db.write, tenant, delta, self.app.clock.now()).await.unwrap();
        metric_folding::run_round(&self.app.app, i64::MAX).await.unwrap();
    }
}

/// Returns all anomalies of the tenant, newest first.
pub async fn anomalies(app: &TestApp) -> Vec<Value> {
    let list = app.full_key().get("/v1/anomalies?limit=200").await.ok();
    assert_eq!(list["has_more"], false);
    list["anomalies"].as_array().unwrap().clone()
}

/// Returns the metrics of anomalies.
pub fn metrics_of(anomalies: &[Value]) -> Vec<&str> {
    anomalies.iter().map(|it| it["metric"].as_str().unwrap()).collect()
}

/// Returns the rows of the tenant's detectors, by project.
pub async fn detectors(app: &TestApp) -> Vec<anomaly_detector::Model> {
    let own = anomaly_detector::Column::TenantId.eq(app.tenant);
    let mut rows = anomaly_detector::Entity::find().filter(own).all(&app.app.db.write).await.unwrap();
    rows.sort_by_key(|it| it.project_id);
    rows
}

/// Enqueues another detection job that is due now, as if the lease of the first had been lost.
pub async fn enqueue_again(app: &TestApp) {
    let row = job::Model {
        tenant_id: app.tenant,
        id: store::new_id(),
        lane: "anomalies".to_owned(),
        kind: "detect_anomalies".to_owned(),
        payload: "{}".to_owned(),
        status: "ready".to_owned(),
        run_at: app.clock.now(),
        attempts: 0,
        max_attempts: 10,
        lease_until: None,
        fence: 0,
        last_error: None,
        created_at: app.clock.now(),
    };
    job::Entity::insert(job::ActiveModel::from(row)).exec_without_returning(&app.app.db.write).await.unwrap();
}
