//! Handlers of the audit log.

use std::sync::Arc;

use api::{
    Timestamp,
    audit::{Actor, AuditLog, AuditRecord, Target},
};
use axum::{Json, extract::State};
use entities::audit_record;
use serde_json::value::RawValue;
use store::audit::AuditFilter;

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::Result,
    feature::Feature,
    http::{
        query::Query,
        route::{Route, route},
    },
};

/// The audit log.
pub const FEATURE: Feature = Feature { routes, ..Feature::NONE };

fn routes() -> Vec<Route> {
    vec![route!(list, Access::owner().keys(Keys::Full))]
}

/// List audit records, newest first.
#[utoipa::path(get, path = "/v1/audit-log", tag = "Audit log", params(
    ("action" = Option<String>, Query, description = "only this action, such as `api_key.create`"),
    ("actor" = Option<String>, Query, description = "only of this actor: a session's subject or an API key's ID"),
    ("from" = Option<String>, Query, description = "not before, RFC 3339"),
    ("to" = Option<String>, Query, description = "not after, RFC 3339"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = AuditLog)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<AuditLog>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let (from, to) = Query::ordered(("from", "to"), (query.time("from")?, query.time("to")?))?;
    let (action, actor) = (query.filled_text("action")?, query.filled_text("actor")?);
    let filter = AuditFilter { action, actor, from, to };
    let scope = format!("audit-log {filter:?}");
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let mut rows = store::audit::page(&app.db.read, tenant, &filter, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.created_at, it.id));
    let audit_log = rows.into_iter().map(to_wire).collect::<Result<_>>()?;
    Ok(Json(AuditLog { audit_log, has_more: next_cursor.is_some(), next_cursor }))
}

fn to_wire(row: audit_record::Model) -> Result<AuditRecord> {
    let audit_record::Model {
        tenant_id: _,
        id,
        action,
        actor_kind,
        actor,
        target_kind,
        target,
        result,
        request_id,
        detail,
        created_at,
    } = row;
    Ok(AuditRecord {
        id,
        action,
        actor: Actor { kind: actor_kind.parse().map_err(anyhow::Error::from)?, id: actor },
        target: target_kind.zip(target).map(|(kind, id)| Target { kind, id }),
        result,
        request_id,
        detail: detail.map(RawValue::from_string).transpose().map_err(anyhow::Error::from)?,
        created_at: Timestamp::from_micros(created_at),
    })
}
