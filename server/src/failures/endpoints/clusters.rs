//! Handlers of failure clusters.

use std::sync::Arc;

use api::{
    FailureType, Plan, Timestamp,
    enums::UnknownWord,
    failure::{ClusterFilter, ClusterStatus, FailureCluster, FailureClusterChange, FailureClusterList},
};
use axum::{
    Json,
    extract::{Path, State},
};
use entities::failure_cluster;
use serde_json::json;
use store::failure_clusters as table;

use super::failures::failure_type;
use crate::{
    access::{Access, Caller},
    app::App,
    audit::{self, AuditAction, AuditEvent},
    error::{Problem, Result, not_found},
    failures::view,
    http::{
        query::{Query, invalid, path_id},
        read::ApiJson,
        route::{Route, route},
    },
};

/// The status of a failure cluster was changed.
const CLUSTER_UPDATE: AuditAction = AuditAction::new("failure_cluster.update", "failure_cluster");

/// Length of the trends in lists, in hours.
const LISTED_TREND_HOURS: i64 = 24;
/// Length of the trend of a single cluster, in hours.
const TREND_HOURS: i64 = 7 * 24;

/// Returns the routes of failure clusters.
pub fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::viewer().plan(Plan::Team)),
        route!(detail, Access::viewer().plan(Plan::Team)),
        route!(update, Access::member().plan(Plan::Team)).audited(CLUSTER_UPDATE),
    ]
}

/// List failure clusters by their newest failures, newest first.
///
/// A cluster with a new failure moves to the front, also while its list is paged through.
#[utoipa::path(get, path = "/v1/failures/clusters", tag = "Failure clusters", params(
    ("project_id" = Option<Uuid>, Query, description = "of this project"),
    ("status" = Option<ClusterStatus>, Query, description = "with this status"),
    ("failure_type" = Option<FailureType>, Query, description = "of this type"),
    ("from" = Option<Timestamp>, Query, description = "last seen at this time or later"),
    ("to" = Option<Timestamp>, Query, description = "last seen at this time or earlier"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = FailureClusterList)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Query,
) -> Result<Json<FailureClusterList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let (from, to) = Query::ordered(("from", "to"), (query.time("from")?, query.time("to")?))?;
    let unknown = |it: UnknownWord| invalid("status", &format!("must be one of {}", it.expected));
    let filter = ClusterFilter {
        project_id: query.uuid("project_id")?,
        status: query.get("status").map(|it| it.parse().map_err(unknown)).transpose()?,
        failure_type: failure_type(&query, "failure_type")?,
        from: from.map(Timestamp::from_micros),
        to: to.map(Timestamp::from_micros),
    };
    let scope = format!("failure_clusters {filter:?}");
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let mut rows = table::page(&app.db.read, tenant, &filter, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.last_seen, it.id));
    let clusters = view::clusters(&app, tenant, rows, LISTED_TREND_HOURS, false).await?;
    Ok(Json(FailureClusterList { clusters, has_more: next_cursor.is_some(), next_cursor }))
}

/// Show a failure cluster with its samples.
#[utoipa::path(get, path = "/v1/failures/clusters/{id}", tag = "Failure clusters",
    params(("id" = Uuid, Path, description = "id of the cluster")),
    responses((status = 200, body = FailureCluster)))]
pub async fn detail(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<FailureCluster>> {
    let row = table::get(app.db.current(), caller.tenant_id, path_id(&id)?).await?;
    shown(&app, row.ok_or_else(|| not_found("failure cluster"))?).await
}

/// Change the status of a failure cluster.
///
/// A resolved cluster opens again when such a failure occurs. A muted one stays muted: its failures are counted and
/// fire no failure rule.
#[utoipa::path(patch, path = "/v1/failures/clusters/{id}", tag = "Failure clusters", request_body = FailureClusterChange,
    params(("id" = Uuid, Path, description = "id of the cluster")),
    responses((status = 200, body = FailureCluster)))]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    ApiJson(change): ApiJson<FailureClusterChange>,
) -> Result<Json<FailureCluster>> {
    let (tenant, id, now) = (caller.tenant_id, path_id(&id)?, app.clock.now());
    let status: ClusterStatus =
        change.status.parse().map_err(|it: UnknownWord| Problem::field("status", it.to_string()))?;
    let txn = app.db.begin().await?;
    let mut row =
        table::lock(&txn, tenant, &[id]).await?.pop().ok_or_else(|| not_found("failure cluster"))?;
    if row.status != status.as_str() {
        let was = std::mem::replace(&mut row.status, status.as_str().to_owned());
        row.resolved_at = (status == ClusterStatus::Resolved).then_some(now);
        row.updated_at = now;
        table::replace(&txn, row.clone()).await?;
        let event = AuditEvent::of(CLUSTER_UPDATE).on(id).with(json!({"from": was, "to": status}));
        audit::record(&txn, &caller, event, now).await?;
        txn.commit().await?;
    }
    shown(&app, row).await
}

async fn shown(app: &App, row: failure_cluster::Model) -> Result<Json<FailureCluster>> {
    let tenant = row.tenant_id;
    let mut clusters = view::clusters(app, tenant, vec![row], TREND_HOURS, true).await?;
    Ok(Json(clusters.pop().ok_or_else(|| not_found("failure cluster"))?))
}
