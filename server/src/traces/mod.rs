//! Traces over HTTP: lists, details, streams, exports and sessions.

pub mod endpoints;
pub mod view;

use crate::feature::Feature;

/// Reading and deleting traces.
pub const FEATURE: Feature = Feature { routes: endpoints::routes, ..Feature::NONE };
