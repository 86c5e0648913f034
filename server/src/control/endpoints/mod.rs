//! Endpoints of the control loop.

mod actions;
mod diff;
mod policies;

use crate::http::route::Route;

/// Returns the routes of the control loop.
pub fn routes() -> Vec<Route> {
    [policies::routes(), actions::routes(), diff::routes()].concat()
}
