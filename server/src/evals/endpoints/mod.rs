//! Endpoints of evaluations, eval rules and evaluators.

mod eval_rules;
mod evaluations;
mod evaluators;

use crate::http::route::Route;

/// Returns the routes of evaluations, evaluators and eval rules.
pub fn routes() -> Vec<Route> {
    [evaluations::routes(), evaluators::routes(), eval_rules::routes()].concat()
}
