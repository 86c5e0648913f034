//! Who am I.

use std::sync::Arc;

use api::{
    Timestamp,
    tenant::{Me, Tenant},
};
use axum::{Json, extract::State};

use super::keys;
use crate::{
    access::{Caller, Credential},
    app::App,
    error::{Result, not_found},
    store,
};

/// Show whose credential this is and what it may do.
#[utoipa::path(get, path = "/v1/me", tag = "Access", responses((status = 200, body = Me)))]
pub async fn me(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Me>> {
    let row = app.tenant(caller.tenant_id).await?.ok_or_else(|| not_found("tenant"))?;
    let tenant = Tenant {
        id: row.tenant_id,
        name: row.name.clone(),
        plan: caller.plan,
        external_id: row.external_id.clone(),
        created_at: Timestamp::from_micros(row.created_at),
    };
    let (subject, api_key, expires_at) = match caller.credential {
        Credential::Key { id, .. } => {
            let key = store::keys::get(&app.db.read, caller.tenant_id, id)
                .await?
                .ok_or_else(|| not_found("API key"))?;
            (None, Some(keys::wire(key, None)?), None)
        }
        Credential::Session { subject, expires_at } => {
            (Some(subject), None, Some(Timestamp::from_micros(expires_at)))
        }
    };
    Ok(Json(Me { tenant, role: caller.role, subject, api_key, expires_at }))
}
