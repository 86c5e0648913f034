//! Joins log records with their spans in the background.
//!
//! A request with log records stores them, and a job in the same transaction. The job of 200 ms of requests joins them with
//! the spans that are stored ([decision 41](../../docs/decisions/0042-log-records.md)). Log records whose span is missing
//! wait for it: the job comes back after a time that doubles, and at once when a process receives such spans from a tenant
//! that sends log records to it. After an hour, log records without a span are rejected.

mod join;
mod join_logs;
pub mod senders;

use std::time::Duration;

pub use join::LogJoins;
pub use join_logs::{JoinLogs, WaitingTrace, job, jobs};
use store::held_input::EXPIRING_HELD_INPUT;

use crate::feature::{Feature, RowExpiry};

/// How long log records wait for their spans, and how long spans are kept for their log records.
pub const HELD_FOR: Duration = Duration::from_secs(3_600);

/// Joining of log records with spans.
pub const FEATURE: Feature = Feature {
    jobs: |registry| registry.register::<JoinLogs>(),
    housekeeping: &[&RowExpiry { rows: EXPIRING_HELD_INPUT, after: HELD_FOR }],
    ..Feature::NONE
};
