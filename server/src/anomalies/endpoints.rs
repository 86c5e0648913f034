//! Handlers of anomalies.

use std::sync::Arc;

use api::{
    Timestamp,
    anomaly::{AnomalyList, AnomalySeverity},
};
use axum::{Json, extract::State};
use store::anomalies::AnomalyFilter;

use super::record::to_wire;
use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::Result,
    http::{
        query::{Query, invalid},
        route::{Route, route},
    },
};

/// Returns the routes of anomalies.
pub fn routes() -> Vec<Route> {
    vec![route!(list, Access::viewer().keys(Keys::Query))]
}

/// List anomalies, by the time at which they were detected, newest first.
///
/// Anomalies are detected within about a minute after the end of an interval of 5 minutes, 15 minutes or an hour,
/// depending on the traffic of the project. They are kept for 90 days.
#[utoipa::path(get, path = "/v1/anomalies", tag = "Anomalies", params(
    ("project_id" = Option<Uuid>, Query, description = "of this project"),
    ("metric" = Option<String>, Query, description = "of this metric, exactly, such as error_rate"),
    ("severity" = Option<AnomalySeverity>, Query, description = "of this severity"),
    ("from" = Option<Timestamp>, Query, description = "detected at this time or later"),
    ("to" = Option<Timestamp>, Query, description = "detected at this time or earlier"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = AnomalyList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<AnomalyList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let (from, to) = Query::ordered(("from", "to"), (query.time("from")?, query.time("to")?))?;
    let severity = |it: &str| it.parse().map_err(|_| invalid("severity", "must be low, medium or high"));
    let filter = AnomalyFilter {
        project_id: query.uuid("project_id")?,
        metric: query.text("metric"),
        severity: query.get("severity").map(severity).transpose()?,
        from,
        to,
    };
    let scope = format!("anomalies {filter:?}");
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let mut rows = store::anomalies::page(&app.db.read, tenant, &filter, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.created_at, it.id));
    Ok(Json(AnomalyList {
        anomalies: rows.into_iter().map(to_wire).collect::<Result<_>>()?,
        has_more: next_cursor.is_some(),
        next_cursor,
    }))
}
