//! Endpoints of keys, members, credentials and the caller.

mod credentials;
mod keys;
mod me;
mod members;

use crate::{feature::Feature, http::route::Route};

/// API keys, members, provider credentials, and the description of the caller.
pub const FEATURE: Feature = Feature { routes, ..Feature::NONE };

fn routes() -> Vec<Route> {
    [keys::routes(), me::routes(), members::routes(), credentials::routes()].concat()
}
