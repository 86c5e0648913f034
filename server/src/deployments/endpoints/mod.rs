//! Endpoints of prompt deployments.

mod deployments;
mod prompt;

use crate::http::route::Route;

/// Returns the routes of prompt deployments.
pub fn routes() -> Vec<Route> {
    [deployments::routes(), prompt::routes()].concat()
}
