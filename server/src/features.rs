//! The features of the server. A new feature is one line in [`ALL`]; everything else follows from it.

use std::sync::{Arc, LazyLock};

use queue::Registry;

use crate::{
    access::endpoints as access,
    anomalies,
    app::{App, Features},
    control, deployments, endpoints, evals, failures,
    feature::Feature,
    housekeeping,
    http::{self, openapi, route::Route},
    ingest::endpoints as ingest,
    limits::feature as limits,
    log_joining, long_trace, metric_folding,
    metrics::endpoints as metrics,
    remediation, retention,
    search::endpoints as search,
    span_embedding,
    telemetry::http::EndpointName,
    trace_indexing, trace_ready, trace_removal,
    trace_rules::ProductRules,
    traces, webhooks,
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
    anomalies::FEATURE,
    evals::FEATURE,
    failures::FEATURE,
    control::FEATURE,
    remediation::FEATURE,
    deployments::FEATURE,
    webhooks::FEATURE,
    search::FEATURE,
    access::FEATURE,
    endpoints::projects::FEATURE,
    endpoints::models::FEATURE,
    endpoints::audit_log::FEATURE,
    trace_ready::FEATURE,
    log_joining::FEATURE,
    long_trace::FEATURE,
    trace_removal::FEATURE,
    retention::FEATURE,
    metric_folding::FEATURE,
    trace_indexing::FEATURE,
    span_embedding::FEATURE,
    http::idempotency::FEATURE,
    limits::FEATURE,
];

/// Collects the jobs, tasks, rules and endpoints of all features.
pub fn assemble() -> Features {
    let mut jobs = Registry::default();
    ALL.iter().for_each(|it| (it.jobs)(&mut jobs));
    let mut start: Vec<fn(&Arc<App>)> = ALL.iter().map(|it| it.start).collect();
    start.push(|app| housekeeping::start(app, ALL));
    let endpoints = routes().iter().map(|it| EndpointName { method: it.method.as_str(), route: &it.path });
    let rules = Arc::new(ProductRules { wake_ups: Arc::clone(jobs.wake_ups()) });
    Features { jobs, start, rules, endpoints: endpoints.collect(), openapi_json }
}

/// Returns all routes, with their aliases.
pub fn routes() -> &'static [Route] {
    static ALL_ROUTES: LazyLock<Vec<Route>> =
        LazyLock::new(|| ALL.iter().flat_map(|it| (it.routes)()).flat_map(Route::with_aliases).collect());
    &ALL_ROUTES
}

/// Returns the OpenAPI document as JSON.
fn openapi_json() -> anyhow::Result<&'static [u8]> {
    static OPENAPI_JSON: LazyLock<serde_json::Result<Vec<u8>>> =
        LazyLock::new(|| serde_json::to_vec(&openapi::document(routes())));
    OPENAPI_JSON.as_deref().map_err(|error| anyhow::anyhow!("the OpenAPI document: {error}"))
}
