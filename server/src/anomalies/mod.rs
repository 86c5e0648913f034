//! Anomalies: periods in which a metric of a project differs from its usual values.
//!
//! The crate `anomalies` decides. This module feeds it: `start` finds projects with traces and creates their
//! detectors, `detect` processes the intervals that have ended, `interval` sums up their traces and scores from
//! the roll-up tree and the index of scores, `state` advances the detectors of a project, and `record` converts
//! their reports. `docs/decisions/0034-anomaly-jobs.md` explains the costs.

mod detect;
mod endpoints;
mod interval;
mod record;
mod start;
mod state;

pub use start::start_detection;

use std::time::Duration;

use store::anomalies::EXPIRING_ANOMALIES;

use crate::feature::{Feature, RowExpiry};

/// How long anomalies are kept.
const ANOMALY_TTL: Duration = Duration::from_secs(90 * 86_400);

/// Anomalies and their detection.
pub const FEATURE: Feature = Feature {
    routes: endpoints::routes,
    jobs: |registry| registry.register::<detect::DetectAnomalies>(),
    housekeeping: &[&start::NewProjects, &RowExpiry { rows: EXPIRING_ANOMALIES, after: ANOMALY_TTL }],
    ..Feature::NONE
};

/// A day in microseconds.
const DAY: i64 = 86_400_000_000;
/// An hour in microseconds.
const HOUR: i64 = 3_600_000_000;
/// A minute in microseconds.
const MINUTE: i64 = 60_000_000;

/// Days of history from which new detectors learn.
const HISTORY_DAYS: i64 = 28;
/// Number of projects whose intervals are read and stored together.
const PROJECTS_PER_BATCH: usize = 32;

/// Returns the start of the period of this length that contains a time.
const fn floor(at: i64, length: i64) -> i64 {
    at - at.rem_euclid(length)
}
