//! Deletes the counters of past minutes.

use std::time::Duration;

use store::rates::EXPIRING_WINDOWS;

use crate::feature::{Expired, Feature};

/// How long the counters of a minute are kept after its beginning.
const WINDOW_TTL: Duration = Duration::from_secs(3_600);

/// Deletion of old counters.
pub const FEATURE: Feature =
    Feature { housekeeping: &[&Expired { rows: EXPIRING_WINDOWS, after: WINDOW_TTL }], ..Feature::NONE };
