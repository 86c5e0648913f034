//! The caller's own tenant, role and limits.

use std::sync::Arc;

use api::{
    Timestamp,
    tenant::{Me, Tenant, Usage},
};
use axum::{Json, extract::State};
use store::quotas::{Quota, month};

use crate::{
    access::{Access, Caller, Credential, Keys, endpoints::keys, plans::limits},
    app::App,
    error::{Result, not_found},
    http::route::{Route, route},
};

/// Returns the route of the caller.
pub fn routes() -> Vec<Route> {
    vec![route!(me, Access::viewer().keys(Keys::Any))]
}

/// Show the tenant, role and limits of the credential.
#[utoipa::path(get, path = "/v1/me", tag = "Access", responses((status = 200, body = Me)))]
pub async fn me(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Me>> {
    let row = app.access_cache.tenant(caller.tenant_id).await?.ok_or_else(|| not_found("tenant"))?;
    let tenant = Tenant {
        id: row.tenant_id,
        name: row.name.clone(),
        plan: caller.plan,
        external_id: row.external_id.clone(),
        created_at: Timestamp::from_micros(row.created_at),
    };
    let (subject, api_key, expires_at) = match caller.credential {
        Credential::Key { id, .. } => (None, Some(keys::of_caller(&app, caller.tenant_id, id).await?), None),
        Credential::Session { subject, expires_at } => {
            (Some(subject.to_string()), None, Some(Timestamp::from_micros(expires_at)))
        }
    };
    let (tenant_id, month) = (caller.tenant_id, month(app.clock.now()));
    let used = store::quotas::used(app.db.current(), tenant_id, month).await?;
    let members = store::members::seats(app.db.current(), tenant_id).await?;
    let usage = Usage {
        month: format!("{:04}-{:02}", month / 100, month % 100),
        traces: used(Quota::Traces),
        llm_evaluations: used(Quota::LlmEvaluations),
        members: i64::try_from(members).unwrap_or(i64::MAX),
    };
    Ok(Json(Me {
        tenant,
        role: caller.role,
        subject,
        api_key,
        expires_at,
        limits: limits(caller.plan),
        usage,
    }))
}
