//! Endpoints that accept traces.

mod json;
mod otlp;
mod target_project;

use crate::{feature::Feature, http::route::Route};

/// Acceptance of traces.
pub const FEATURE: Feature = Feature { routes, ..Feature::NONE };

fn routes() -> Vec<Route> {
    [json::routes(), otlp::routes()].concat()
}
