//! Failures: they are recorded, grouped into clusters, and compared with failure rules.
//!
//! A commit of spans enqueues one job for each tenant with failing spans ([`record`]). The job stores the failures with
//! their clusters and fires rules, in one transaction ([`recorder`], `firing`). A rule can also fire on the scores of
//! evaluations ([`scores`]), and a rule with a filter is checked again when the trace is ready (`ready_match`).

mod changes;
pub mod cluster_cache;
mod cluster_expiry;
mod endpoints;
mod event;
mod firing;
mod ready_match;
pub mod record;
pub mod recorder;
pub mod regressions;
pub mod rule_set;
pub mod scores;
mod view;

use std::time::Duration;

use store::{
    failure_clusters::{EXPIRING_CLUSTERS, EXPIRING_TRENDS},
    failure_rules::EXPIRING_MATCHES,
};

use self::cluster_expiry::ClusterExpiry;

use crate::feature::{Feature, RowExpiry};

/// How long clusters without failures are kept, and the trends of all clusters.
const CLUSTER_TTL: Duration = Duration::from_secs(90 * 86_400);
/// How long it is remembered that a rule matched a trace.
const MATCH_TTL: Duration = Duration::from_secs(30 * 86_400);

/// Failures, failure clusters and failure rules.
pub const FEATURE: Feature = Feature {
    routes: endpoints::routes,
    jobs: |registry| {
        registry.register::<record::RecordFailures>();
        registry.register::<ready_match::MatchReadyTraces>();
        registry.register::<scores::MatchScores>();
        registry.register::<regressions::DetectRegressions>();
    },
    housekeeping: &[
        &ClusterExpiry(RowExpiry { rows: EXPIRING_CLUSTERS, after: CLUSTER_TTL }),
        &RowExpiry { rows: EXPIRING_TRENDS, after: CLUSTER_TTL },
        &RowExpiry { rows: EXPIRING_MATCHES, after: MATCH_TTL },
    ],
    ..Feature::NONE
};
