//! Prompt deployments: versions of a prompt that are tested, shipped, watched and rolled back.
//!
//! Every change is one transaction that holds the lock of the prompt (`locked_prompt`). The versions that applications get
//! are served from the access cache ([`cached`]). Scores are counted by a job (`scores`) that the transaction which
//! stores them enqueues, if a test or a watch needs them.

mod autoship;
pub mod cached;
mod creation;
mod decisions;
mod endpoints;
pub mod jobs;
mod locked_prompt;
mod new_deployment;
mod replay;
mod replay_run;
mod scores;
mod serving;
pub mod state;
mod test_end;
mod view;

use std::time::Duration;

use store::prompt_tests::{EXPIRING_REPLAYS, EXPIRING_SCORES};

use crate::feature::{Feature, RowExpiry};

/// How long a counted score is kept: longer than a test takes, so that a repeated evaluation of a trace never counts in the
/// same test.
const SCORE_TTL: Duration = Duration::from_secs(400 * 86_400);
/// How long the pairs of a replay test are kept.
const REPLAY_TTL: Duration = Duration::from_secs(400 * 86_400);

/// Prompt deployments.
pub const FEATURE: Feature = Feature {
    routes: endpoints::routes,
    jobs: |registry| {
        registry.register::<jobs::CountScores>();
        registry.register::<jobs::ExpireTest>();
        registry.register::<jobs::ReplayTest>();
        registry.register::<jobs::ShipWaiting>();
    },
    housekeeping: &[
        &RowExpiry { rows: EXPIRING_SCORES, after: SCORE_TTL },
        &RowExpiry { rows: EXPIRING_REPLAYS, after: REPLAY_TTL },
    ],
    ..Feature::NONE
};
