//! Starts the detection in projects that have traces and no detectors.

use anomalies::interval_for;
use entities::anomaly_detector;
use futures::future::BoxFuture;
use store::{DbError, anomalies::detectors};
use uuid::Uuid;

use super::{
    DAY, HISTORY_DAYS, MINUTE, PROJECTS_PER_BATCH,
    detect::{self, LATE_DATA_GRACE},
    floor,
    interval::traces_by_day,
    state::learning_row,
};
use crate::{app::App, feature::HousekeepingTask};

/// Time in microseconds after which unprocessed intervals show that the job of the tenant is missing.
const MAX_OVERDUE: i64 = 10 * MINUTE;
/// Number of complete days whose traces are used to estimate the traffic of a project.
const TRAFFIC_DAYS: i64 = 7;

/// Projects with traces of today or yesterday and without detectors. Their detectors first learn from the last four
/// weeks.
pub struct NewProjects;

impl HousekeepingTask for NewProjects {
    fn next_tenant<'a>(&'a self, app: &'a App, last: Uuid) -> BoxFuture<'a, Result<Option<Uuid>, DbError>> {
        Box::pin(detectors::next_tenant_with_projects(&app.db, last))
    }

    fn run<'a>(&'a self, app: &'a App, tenant: Uuid) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(start_detection(app, tenant))
    }
}

/// Creates the detectors of projects of a tenant that have recent traces and no detectors, and their job.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn start_detection(app: &App, tenant: Uuid) -> Result<(), DbError> {
    let now = app.clock.now();
    let today = floor(now, DAY);
    let mut is_new = false;
    while !app.is_stopping() {
        let days = (today - DAY, today);
        let projects = detectors::projects_without(&app.db, tenant, days, PROJECTS_PER_BATCH as u32).await?;
        if projects.is_empty() {
            break;
        }
        let history = (today - HISTORY_DAYS * DAY, today + DAY);
        // The history and the traffic of these projects are known after all traces are counted.
        let Some(traces) = traces_by_day(&app.db, tenant, &projects, history).await? else { break };
        for project in projects {
            let days = traces.get(&project);
            let recent = days.into_iter().flatten().filter(|it| *it.0 >= today - TRAFFIC_DAYS * DAY);
            let (first, count) = recent.fold((today, 0), |(first, sum), it| (first.min(*it.0), sum + it.1));
            let elapsed = ((now - first) as f64 / DAY as f64).max(1.0);
            let interval = interval_for(count as f64 / elapsed);
            let empty = anomaly_detector::Model {
                tenant_id: tenant,
                project_id: project,
                interval_micros: interval,
                next_start: 0,
                due_at: 0,
                live_from: 0,
                state: Vec::new(),
                updated_at: now,
            };
            let row = learning_row(&empty, interval, now - LATE_DATA_GRACE, now);
            let first = days.into_iter().flatten().find(|it| *it.1 > 0).map_or(row.live_from, |it| *it.0);
            let next_start = row.next_start.max(first.min(row.live_from));
            let row = anomaly_detector::Model { next_start, due_at: next_start + interval, ..row };
            detectors::add(&app.db.write, row).await?;
        }
        is_new = true;
    }
    let is_overdue = || async {
        let due = detectors::next_due(&app.db, tenant).await?;
        Ok::<_, DbError>(due.is_some_and(|it| it < now - MAX_OVERDUE))
    };
    if is_new || is_overdue().await? {
        queue::enqueue_once(&app.db.write, detect::job(tenant, now)).await?;
    }
    Ok(())
}
