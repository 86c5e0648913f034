//! The server's own metrics, for Prometheus.

use std::sync::Arc;

use axum::{extract::State, http::header, response::IntoResponse};

use crate::{
    access::Access,
    app::App,
    error::Result,
    feature::Feature,
    http::route::{Route, route},
};

/// The server's own metrics.
pub const FEATURE: Feature = Feature { routes, ..Feature::NONE };

fn routes() -> Vec<Route> {
    vec![route!(show, Access::Open).on_metrics_address()]
}

/// Show metrics of this process: requests, ingest, jobs, database, memory.
#[utoipa::path(get, path = "/metrics", tag = "Health",
    responses((status = 200, description = "OpenMetrics 1.0", body = String, content_type = "application/openmetrics-text")))]
pub async fn show(State(app): State<Arc<App>>) -> Result<impl IntoResponse> {
    let waiting = i64::try_from(app.writer.waiting()).unwrap_or(i64::MAX);
    app.telemetry.ingest.waiting.set(waiting);
    let page = app.telemetry.render(&app.db, app.clock.now()).await.map_err(anyhow::Error::from)?;
    Ok(([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], page))
}
