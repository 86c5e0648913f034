//! Endpoints that accept traces, and the list of rejections.

mod json;
mod otlp;
mod otlp_logs;
mod otlp_request;
mod redaction;
mod rejections;
mod target_project;

use std::time::Duration;

use store::rejected_input::EXPIRING_INPUT;

use crate::{
    feature::{Feature, RowExpiry},
    http::route::Route,
};

/// How long rejected input is kept.
const REJECTED_INPUT_TTL: Duration = Duration::from_secs(7 * 86_400);

/// Acceptance of traces.
pub const FEATURE: Feature = Feature {
    routes,
    housekeeping: &[&RowExpiry { rows: EXPIRING_INPUT, after: REJECTED_INPUT_TTL }],
    ..Feature::NONE
};

fn routes() -> Vec<Route> {
    [json::routes(), otlp::routes(), otlp_logs::routes(), rejections::routes()].concat()
}
