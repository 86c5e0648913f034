//! The features of the server. A new feature is one line in [`ALL`]; everything else follows from it.

use std::sync::{Arc, LazyLock};

use queue::Registry;

use crate::{
    access::endpoints as access,
    app::{App, Features},
    endpoints, evals,
    feature::Feature,
    housekeeping,
    http::{self, openapi, route::Route},
    ingest::endpoints as ingest,
    limits::feature as limits,
    long_trace, metric_folding,
    metrics::endpoints as metrics,
    retention,
    search::endpoints as search,
    span_embedding,
    telemetry::http::Name,
    trace_ready, trace_removal,
    trace_rules::ProductRules,
    traces,
};

/// Every feature. The page of access requirements has their routes in this order.
pub const ALL: &[Feature] = &[
    endpoints::health::FEATURE,
    endpoints::server_metrics::FEATURE,
    endpoints::api_document::FEATURE,
    ingest::FEATURE,
    traces::FEATURE,
    metrics::FEATURE,
    endpoints::feedback::FEATURE,
    evals::FEATURE,
    search::FEATURE,
    access::FEATURE,
    endpoints::projects::FEATURE,
    endpoints::models::FEATURE,
    endpoints::audit_log::FEATURE,
    trace_ready::FEATURE,
    long_trace::FEATURE,
    trace_removal::FEATURE,
    retention::FEATURE,
    metric_folding::FEATURE,
    span_embedding::FEATURE,
    http::idempotency::FEATURE,
    limits::FEATURE,
];

/// Returns what the features add to a process.
pub fn all() -> Features {
    let mut jobs = Registry::default();
    ALL.iter().for_each(|it| (it.jobs)(&mut jobs));
    let mut start: Vec<fn(&Arc<App>)> = ALL.iter().map(|it| it.start).collect();
    start.push(|app| housekeeping::start(app, ALL));
    let endpoints = routes().iter().map(|it| Name { method: it.method.as_str(), route: &it.path });
    Features { jobs, start, rules: Arc::new(ProductRules), endpoints: endpoints.collect(), openapi_json }
}

/// Returns all routes, with their aliases.
pub fn routes() -> &'static [Route] {
    static ROUTES: LazyLock<Vec<Route>> =
        LazyLock::new(|| ALL.iter().flat_map(|it| (it.routes)()).flat_map(Route::with_aliases).collect());
    &ROUTES
}

/// Returns the OpenAPI document as JSON.
fn openapi_json() -> anyhow::Result<&'static [u8]> {
    static JSON: LazyLock<serde_json::Result<Vec<u8>>> =
        LazyLock::new(|| serde_json::to_vec(&openapi::document(routes())));
    JSON.as_deref().map_err(|error| anyhow::anyhow!("the OpenAPI document: {error}"))
}
