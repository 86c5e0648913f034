//! Endpoints of failures, failure clusters and failure rules.

mod clusters;
mod failure_rules;
mod failures;

use crate::http::route::Route;

/// Returns the routes of failures, failure clusters and failure rules.
pub fn routes() -> Vec<Route> {
    [failures::routes(), clusters::routes(), failure_rules::routes()].concat()
}
