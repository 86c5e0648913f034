//! The job that detects the anomalies of a tenant. It is enqueued once and snoozes until the next intervals end.
//!
//! Only one process has the job's lease. If a process loses the lease while it computes, nothing is stored twice
//! either: each project's row is replaced only if it still has the interval that was read.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use anomalies::{Anomaly, AnomalyChange, CloseReason, Severity};
use anyhow::Context;
use api::webhook::EventType;
use entities::{anomaly, anomaly_detector, job};
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::{
    Connection, DbError,
    anomalies::detectors::{self, DueDetector},
    derived_id,
};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::{
    DAY, HOUR, MINUTE, PROJECTS_PER_BATCH, floor,
    interval::{self, Period, TotalsByInterval},
    record,
    state::{self, DetectionProgress, MetricChange},
};
use crate::{
    app::App,
    error::Result,
    pools,
    webhooks::{NewEvent, publish},
};

/// Time in microseconds after the end of an interval for which late traces are awaited.
pub const LATE_DATA_GRACE: i64 = 45_000_000;
/// The shortest interval in microseconds; the job runs at least this often, for detectors that were just added.
const MIN_INTERVAL: i64 = 5 * MINUTE;
/// Number of batches after which the job continues later, so that other tenants are served.
const BATCHES_PER_RUN: usize = 16;
/// Delay in microseconds before a failed run is repeated.
const RETRY_DELAY_MICROS: i64 = MINUTE;

/// Detects the anomalies of a tenant.
#[derive(Debug, Serialize, Deserialize)]
pub struct DetectAnomalies {}

impl Job for DetectAnomalies {
    const KIND: &'static str = "detect_anomalies";
    const POOL: &'static WorkerPool = &pools::ANOMALIES_POOL;
    // The job runs as long as the tenant exists, and a process may be killed during any run.
    const MAX_ATTEMPTS: i32 = i32::MAX;
}

/// Returns the job of a tenant. There is one at a time.
pub fn job(tenant: Uuid, now: i64) -> job::Model {
    let mut job = new_job(tenant, &DetectAnomalies {}, now, now);
    job.id = derived_id(tenant, "detect anomalies");
    job
}

impl RunJob<App> for DetectAnomalies {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match detect(app, row.tenant_id).await {
            Ok(Some(until)) => JobResult::Snooze { until },
            Ok(None) => JobResult::Done,
            Err(error) => {
                tracing::warn!(tenant = %row.tenant_id, %error, "detection of anomalies failed and will be retried");
                JobResult::Snooze { until: app.clock.now() + RETRY_DELAY_MICROS }
            }
        }
    }
}

/// Processes the intervals of a tenant that have ended. Returns the time of the next run; `None` if the tenant has
/// no detectors.
async fn detect(app: &Arc<App>, tenant: Uuid) -> Result<Option<i64>> {
    for _ in 0..BATCHES_PER_RUN {
        let ended = app.clock.now() - LATE_DATA_GRACE;
        let due = detectors::due(&app.db, tenant, ended, PROJECTS_PER_BATCH as u32).await?;
        if due.is_empty() {
            let next = detectors::next_due(&app.db, tenant).await?;
            let latest = floor(ended, MIN_INTERVAL) + MIN_INTERVAL;
            return Ok(next.map(|it| it.min(latest) + LATE_DATA_GRACE));
        }
        if app.is_stopping() {
            break;
        }
        let (archived, active): (Vec<_>, Vec<_>) = due.into_iter().partition(|it| it.is_archived);
        stop_detection(app, tenant, archived).await?;
        let mut by_period: BTreeMap<(i64, i64), Vec<anomaly_detector::Model>> = BTreeMap::new();
        for DueDetector { row, .. } in active {
            by_period.entry((row.interval_micros, row.next_start)).or_default().push(row);
        }
        // The latest intervals first: new anomalies are not delayed by learning.
        for ((interval, from), rows) in by_period.into_iter().rev() {
            let longest = if interval < HOUR { DAY } else { 7 * DAY };
            let end = floor(ended, interval).min(from + longest);
            if app.is_stopping() || !process(app, tenant, rows, Period { from, end, interval }).await? {
                return Ok(Some(app.clock.now() + if app.is_stopping() { 0 } else { RETRY_DELAY_MICROS }));
            }
        }
    }
    Ok(Some(app.clock.now()))
}

/// Removes the detectors of archived projects, and closes their anomalies.
async fn stop_detection(app: &App, tenant: Uuid, archived: Vec<DueDetector>) -> Result<()> {
    if archived.is_empty() {
        return Ok(());
    }
    let txn = app.db.begin().await?;
    for DueDetector { row, .. } in archived {
        if detectors::remove(&txn, &row).await? {
            store::anomalies::close_all(&txn, tenant, row.project_id, app.clock.now()).await?;
        }
    }
    Ok(txn.commit().await?)
}

/// Processes intervals of projects. Returns false if that is not possible yet, because traces of an earlier version
/// are still being counted.
async fn process(
    app: &App,
    tenant: Uuid,
    rows: Vec<anomaly_detector::Model>,
    period: Period,
) -> Result<bool> {
    let projects: Vec<Uuid> = rows.iter().map(|it| it.project_id).collect();
    let Some(totals) = interval::read(&app.db, tenant, &projects, period).await? else { return Ok(false) };
    let now = app.clock.now();
    let computed = spawn_blocking(move || advance_all(rows, totals, period.end, now));
    let computed = computed.await.context("the detection of anomalies was interrupted")??;
    save(app, tenant, computed, now).await?;
    Ok(true)
}

fn advance_all(
    rows: Vec<anomaly_detector::Model>,
    totals: HashMap<Uuid, TotalsByInterval>,
    end: i64,
    now: i64,
) -> anyhow::Result<Vec<(anomaly_detector::Model, DetectionProgress)>> {
    let nothing = TotalsByInterval::new();
    let advance = |row: anomaly_detector::Model| {
        let progress = state::advance(&row, totals.get(&row.project_id).unwrap_or(&nothing), end, now)?;
        Ok((row, progress))
    };
    rows.into_iter().map(advance).collect()
}

/// Stores the new states with the changes that they report, and publishes events, in one transaction.
async fn save(
    app: &App,
    tenant: Uuid,
    mut computed: Vec<(anomaly_detector::Model, DetectionProgress)>,
    now: i64,
) -> Result<()> {
    // Rows are locked in the order of their keys.
    computed.sort_by_key(|it| it.0.project_id);
    let has_changes = computed.iter().any(|it| !it.1.changes.is_empty());
    let subscriptions = if has_changes { Some(app.access_cache.subscriptions(tenant).await?) } else { None };
    let mut events = Vec::new();
    let txn = app.db.begin().await?;
    for (before, DetectionProgress { changes, row }) in computed {
        let is_learning_again = row.as_ref().is_none_or(|it| it.state.is_empty());
        let is_stored = match row {
            Some(after) => detectors::advance(&txn, &before, after).await?,
            None => detectors::remove(&txn, &before).await?,
        };
        if !is_stored {
            continue;
        }
        for change in changes {
            if let Some(row) = save_change(&txn, &before, change, now).await? {
                let data = serde_json::to_value(record::to_wire(row)?).context("an anomaly as JSON")?;
                let (event_type, project_id) = (EventType::AnomalyDetected, Some(before.project_id));
                events.push(NewEvent { event_type, project_id, trace_id: None, data });
            }
        }
        if is_learning_again {
            store::anomalies::close_all(&txn, tenant, before.project_id, now).await?;
        }
    }
    let jobs = match subscriptions {
        Some(subscriptions) => publish(&txn, &subscriptions, tenant, &events, now).await?,
        None => Vec::new(),
    };
    txn.commit().await?;
    app.wake_ups().wake_for(&jobs);
    Ok(())
}

/// Stores a change. Returns the anomaly if it needs an event: it is new, or its severity has risen to `high`.
async fn save_change(
    txn: &impl Connection,
    detectors: &anomaly_detector::Model,
    (metric, change): MetricChange,
    now: i64,
) -> Result<Option<anomaly::Model>, DbError> {
    let row = |reported: &Anomaly, reason: Option<CloseReason>| {
        record::row((detectors.tenant_id, detectors.project_id), &metric, reported, reason, now)
    };
    match change {
        AnomalyChange::Opened(it) => {
            let (row, is_new) = store::anomalies::open(txn, row(&it, None)).await?;
            Ok(is_new.then_some(row))
        }
        AnomalyChange::Updated(it) => {
            let changed = store::anomalies::change(txn, row(&it, None)).await?;
            Ok(changed.filter(|_| it.severity == Severity::High))
        }
        AnomalyChange::Closed(it, reason) => {
            store::anomalies::change(txn, row(&it, Some(reason))).await?;
            Ok(None)
        }
    }
}
