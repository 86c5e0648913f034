//! Metrics of jobs and database connections.

use std::time::{Duration, Instant};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};
use queue::{Depth, JobResult, WorkerPool, depths};
use store::Db;
use tokio::sync::Mutex;

/// How long measured queue lengths are reused.
const MEASUREMENT_TTL: Duration = Duration::from_secs(10);
/// Maximum time of measuring queue lengths: metrics are served even if the database does not respond.
const MEASUREMENT_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct JobLabels {
    kind: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct JobCountLabels {
    lane: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PoolLabels {
    lane: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ConnectionLabels {
    pool: &'static str,
    state: &'static str,
}

/// Metrics of jobs and database connections.
#[derive(Debug)]
pub struct JobMetrics {
    ended: Family<JobLabels, Counter>,
    jobs: Family<JobCountLabels, Gauge>,
    oldest: Family<PoolLabels, Gauge>,
    connections: Family<ConnectionLabels, Gauge>,
    /// Time of the last measurement of the queue.
    measured_at: Mutex<Option<Instant>>,
    pools: Vec<&'static WorkerPool>,
}

impl JobMetrics {
    pub(super) fn new(registry: &mut Registry, pools: Vec<&'static WorkerPool>) -> Self {
        let work = Self {
            ended: Family::default(),
            jobs: Family::default(),
            oldest: Family::default(),
            connections: Family::default(),
            measured_at: Mutex::new(None),
            pools,
        };
        registry.register("loupe_jobs_ended", "Finished attempts of jobs", work.ended.clone());
        let text = "Jobs that are due, running or dead, in the whole database; counted up to 100,000";
        registry.register("loupe_jobs", text, work.jobs.clone());
        let text = "Time since the oldest job became due";
        registry.register_with_unit("loupe_jobs_oldest_due", text, Unit::Seconds, work.oldest.clone());
        registry.register(
            "loupe_database_connections",
            "Connections to the database",
            work.connections.clone(),
        );
        work
    }

    /// Counts a finished attempt.
    pub fn count_ended(&self, kind: &str, outcome: &JobResult) {
        let outcome = match outcome {
            JobResult::Done => "done",
            JobResult::Retry { .. } => "retry",
            JobResult::Snooze { .. } => "snoozed",
            JobResult::Discard { .. } => "discarded",
        };
        self.ended.get_or_create_owned(&JobLabels { kind: kind.to_owned(), outcome }).inc();
    }

    /// Measures the queue, unless that was done recently, and the connections.
    pub(super) async fn measure(&self, db: &Db, now: i64) {
        for (pool, open, idle) in db.connections() {
            let set = |state, n: usize| {
                let gauge = self.connections.get_or_create_owned(&ConnectionLabels { pool, state });
                gauge.set(i64::try_from(n).unwrap_or(i64::MAX));
            };
            set("idle", idle);
            set("busy", open.saturating_sub(idle));
        }
        // Another request is measuring; the previous values are used.
        let Ok(mut measured_at) = self.measured_at.try_lock() else { return };
        if measured_at.is_some_and(|it| it.elapsed() < MEASUREMENT_TTL) {
            return;
        }
        match tokio::time::timeout(MEASUREMENT_TIMEOUT, depths(db, &self.pools, now)).await {
            Ok(Ok(depths)) => depths.iter().for_each(|it| self.set_depth(it, now)),
            // No value is better than an outdated one.
            Ok(Err(_)) | Err(_) => {
                self.jobs.clear();
                self.oldest.clear();
            }
        }
        *measured_at = Some(Instant::now());
    }

    fn set_depth(&self, depth: &Depth, now: i64) {
        let lane = depth.pool.name;
        for (status, jobs) in [("due", depth.due), ("running", depth.running), ("dead", depth.dead)] {
            self.jobs.get_or_create_owned(&JobCountLabels { lane, status }).set(jobs);
        }
        let age = depth.oldest.map_or(0, |it| (now - it).max(0) / 1_000_000);
        self.oldest.get_or_create_owned(&PoolLabels { lane }).set(age);
    }
}
