//! Evaluations: how they are created and executed.
//!
//! They are created on demand ([`ask`]), by eval rules when a trace is ready ([`fire`]), and in bulk
//! ([`bulk`]). In every case, one transaction inserts a `pending` row and its job, and reserves the
//! monthly quota of LLM evaluations. Code evaluators are run by [`by_rule`], several at a time; judges
//! are called by [`by_judge`], each in a job of its own, because they are slow.

pub mod ask;
pub mod bulk;
pub mod by_judge;
pub mod by_rule;
pub mod decide;
mod endpoints;
pub mod fill;
pub mod fire;
pub mod forget;
pub mod matching;
pub mod preview;
pub mod rules;
pub mod subject;
pub mod view;

use std::time::Duration;

use crate::feature::{Expired, Feature};

/// How long bulk runs are kept; their evaluations are kept longer.
const BULK_RUN_TTL: Duration = Duration::from_secs(30 * 86_400);

/// Evaluations of traces.
pub const FEATURE: Feature = Feature {
    routes: endpoints::routes,
    jobs: |registry| {
        registry.register::<by_rule::EvaluateByRule>();
        registry.register::<by_judge::EvaluateByJudge>();
        registry.register::<fill::FillBulk>();
        registry.register::<forget::ForgetRule>();
    },
    housekeeping: &[&Expired { rows: store::bulk_runs::EXPIRING_RUNS, after: BULK_RUN_TTL }],
    ..Feature::NONE
};
