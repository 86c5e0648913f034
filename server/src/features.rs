//! The features of the server. A new feature is one line in [`all`].

use std::sync::Arc;

use crate::{
    app::{Feature, Features},
    evals, housekeeping, long_trace, metric_folding, retention, routes, span_embedding, trace_ready,
    trace_removal,
    trace_rules::ProductRules,
};

/// Returns every feature, with what the store and the telemetry need to know of them.
pub fn all() -> Features {
    const ALL: &[Feature] = &[
        trace_ready::FEATURE,
        long_trace::FEATURE,
        housekeeping::FEATURE,
        retention::FEATURE,
        trace_removal::FEATURE,
        span_embedding::FEATURE,
        evals::FEATURE,
        metric_folding::FEATURE,
    ];
    Features { all: ALL, rules: Arc::new(ProductRules), endpoints: routes::names().collect() }
}
