//! Traces over HTTP: lists, details, streams, exports and sessions.

pub mod endpoints;
mod export;
mod sessions;
mod stream;
pub mod view;

use crate::{feature::Feature, http::route::Route};

/// Reading and deleting traces.
pub const FEATURE: Feature = Feature { routes, ..Feature::NONE };

fn routes() -> Vec<Route> {
    [endpoints::routes(), stream::routes(), export::routes(), sessions::routes()].concat()
}
