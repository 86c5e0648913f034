//! Joins log records with their spans in the background.
//!
//! A request with log records stores them, and a job in the same transaction. The job of 200 ms of requests joins them with
//! the spans that are stored ([decision 42](../../docs/decisions/0042-log-records.md)). Log records whose span is missing
//! wait for it: the job runs again after a delay that doubles, and at once when such spans are held. Log records that arrive
//! shortly before their spans are joined when these are converted (module `recent`). After an hour, log records without a
//! span are rejected.

mod expiry;
mod join;
mod join_logs;
pub mod recent;
pub mod senders;

use std::time::Duration;

pub use join_logs::{JoinLogs, jobs, jobs_of_held_spans};

use crate::feature::Feature;

/// How long log records wait for their spans, and how long spans are held for their log records.
pub const HELD_FOR: Duration = Duration::from_secs(3_600);

/// Joining of log records with spans.
pub const FEATURE: Feature = Feature {
    jobs: |registry| registry.register::<JoinLogs>(),
    housekeeping: &[&expiry::HeldInputExpiry],
    ..Feature::NONE
};
