//! The list of rejections, and the description of rejected items for the handlers of ingest.

use std::sync::Arc;

use api::{
    Timestamp,
    rejection::{Rejection, RejectionList, RejectionReason, RejectionSource},
};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header::USER_AGENT},
};
use entities::rejected_input;
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::Result,
    http::{
        query::Query,
        route::{Route, route},
    },
    ingest::rejections::RejectedItems,
};

/// Returns the routes of rejected input.
pub fn routes() -> Vec<Route> {
    vec![route!(rejections, Access::viewer().keys(Keys::Query))]
}

/// List the rejections of the last 7 days, newest first: spans and traces rejected within accepted requests.
///
/// One rejection describes one request. After 100 rejections of a tenant in an hour, a process counts further
/// requests of that hour in the last one of their project.
#[utoipa::path(get, path = "/v1/rejections", tag = "Ingest", params(
    ("project_id" = Option<Uuid>, Query, description = "of requests to this project"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = RejectionList)))]
pub async fn rejections(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Query,
) -> Result<Json<RejectionList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let project = query.uuid("project_id")?;
    let scope = format!("rejections {project:?}");
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let mut rows =
        store::rejected_input::page(&app.db.read, tenant, project, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.received_at, it.id));
    Ok(Json(RejectionList {
        rejections: rows.into_iter().map(to_wire).collect::<Result<_>>()?,
        has_more: next_cursor.is_some(),
        next_cursor,
    }))
}

/// Describes the rejected items of a request. Without the name of an SDK, the product that the request's `User-Agent`
/// names is taken.
pub fn rejected_items(
    caller: &Caller,
    project_id: Uuid,
    source: RejectionSource,
    headers: &HeaderMap,
    rejected: usize,
    reasons: Vec<RejectionReason>,
) -> RejectedItems {
    let (sdk, sdk_version) = product(headers).unzip();
    RejectedItems {
        tenant_id: caller.tenant_id,
        project_id,
        source,
        sdk,
        sdk_version: sdk_version.flatten(),
        rejected,
        reasons,
        request_id: Arc::clone(&caller.request_id),
    }
}

/// Records rejected items. A client that disconnects meanwhile does not prevent it.
pub async fn record(app: &Arc<App>, items: RejectedItems, now: i64) {
    let (recorded, when_recorded) = tokio::sync::oneshot::channel();
    let recording_app = Arc::clone(app);
    app.spawn(async move {
        recording_app.rejections.record(&recording_app.db, items, now).await;
        _ = recorded.send(());
    });
    _ = when_recorded.await;
}

/// Returns the first product of the `User-Agent` with its version.
fn product(headers: &HeaderMap) -> Option<(String, Option<String>)> {
    let sent = headers.get(USER_AGENT)?.to_str().ok()?.trim();
    // The name of a product may have spaces: OpenTelemetry Collector/0.1 (linux/amd64).
    let (name, version) = match sent.split_once('/') {
        Some((name, rest)) => (name.trim(), rest.split_whitespace().next()),
        None => (sent, None),
    };
    (!name.is_empty()).then(|| (name.to_owned(), version.map(str::to_owned)))
}

fn to_wire(row: rejected_input::Model) -> Result<Rejection> {
    let rejected_input::Model {
        tenant_id: _,
        id,
        project_id,
        source,
        sdk,
        sdk_version,
        rejected,
        requests,
        reasons,
        request_id,
        received_at,
        last_at,
    } = row;
    Ok(Rejection {
        id,
        project_id,
        source: source.parse().map_err(anyhow::Error::from)?,
        sdk,
        sdk_version,
        rejected,
        requests,
        reasons: serde_json::from_str(&reasons).map_err(anyhow::Error::from)?,
        request_id,
        received_at: Timestamp::from_micros(received_at),
        last_at: Timestamp::from_micros(last_at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_of_user_agent_has_a_name_and_a_version() {
        for (sent, expected) in [
            ("OTel-OTLP-Exporter-Python/1.27.0", Some(("OTel-OTLP-Exporter-Python", Some("1.27.0")))),
            (
                "OpenTelemetry Collector Contrib/0.9 (linux/amd64)",
                Some(("OpenTelemetry Collector Contrib", Some("0.9"))),
            ),
            ("curl", Some(("curl", None))),
            ("curl/", Some(("curl", None))),
            ("/1", None),
            ("", None),
        ] {
            let headers =
                HeaderMap::from_iter([(USER_AGENT, sent.parse().unwrap_or_else(|_| unreachable!()))]);
            let expected = expected.map(|(name, version)| (name.to_owned(), version.map(str::to_owned)));
            assert_eq!(product(&headers), expected, "{sent}");
        }
        assert_eq!(product(&HeaderMap::new()), None);
    }
}
