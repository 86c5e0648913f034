//! Handlers of members.

use std::sync::Arc;

use api::{
    Timestamp,
    enums::UnknownWord,
    member::{Member, MemberChange, MemberList, MemberStatus},
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use entities::member;
use uuid::Uuid;

use crate::{
    access::{Access, Caller},
    app::App,
    audit::{self, AuditAction, AuditEvent},
    error::{Problem, Result, not_found},
    http::{
        query::{Query, path_id},
        read::ApiJson,
        route::{Route, route},
    },
    seats,
};

/// A member was removed.
const MEMBER_REMOVE: AuditAction = AuditAction::new("member.remove", "member");
/// A removed member was restored.
const MEMBER_RESTORE: AuditAction = AuditAction::new("member.restore", "member");

/// Returns the routes of members.
pub fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::viewer()),
        route!(remove, Access::owner()).audited(MEMBER_REMOVE),
        route!(update, Access::owner()).audited(MEMBER_RESTORE),
    ]
}

/// List members, newest first, including removed ones.
#[utoipa::path(get, path = "/v1/members", tag = "Members", params(
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = MemberList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<MemberList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, "members", it)).transpose()?;
    let mut rows = store::members::page(&app.db.read, tenant, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, "members", &mut rows, limit, |it| (it.created_at, it.id));
    let members = rows.into_iter().map(to_wire).collect::<Result<_>>()?;
    Ok(Json(MemberList { members, has_more: next_cursor.is_some(), next_cursor }))
}

/// Remove a member. The seat is freed, and the member's tokens are rejected from now on.
#[utoipa::path(delete, path = "/v1/members/{id}", tag = "Members",
    params(("id" = Uuid, Path, description = "id of the member")), responses((status = 204)))]
pub async fn remove(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    set_status(&app, &caller, path_id(&id)?, MemberStatus::Removed).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Restore a removed member, if a seat is free.
#[utoipa::path(patch, path = "/v1/members/{id}", tag = "Members", request_body = MemberChange,
    params(("id" = Uuid, Path, description = "id of the member")), responses((status = 200, body = Member)))]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    ApiJson(change): ApiJson<MemberChange>,
) -> Result<Json<Member>> {
    let status = change.status.parse();
    let status = status.map_err(|it: UnknownWord| Problem::field("status", it.to_string()))?;
    let row = set_status(&app, &caller, path_id(&id)?, status).await?;
    Ok(Json(to_wire(row)?))
}

async fn set_status(app: &App, caller: &Caller, id: Uuid, status: MemberStatus) -> Result<member::Model> {
    let (tenant, now) = (caller.tenant_id, app.clock.now());
    let txn = app.db.begin().await?;
    // A lock, so that concurrent requests cannot exceed the number of seats.
    store::tenants::lock(&txn, tenant).await?;
    let was = store::members::get(&txn, tenant, id).await?.ok_or_else(|| not_found("member"))?;
    if was.status == status.as_str() {
        return Ok(was);
    }
    let action = match status {
        MemberStatus::Active => {
            seats::require_free_seat(&txn, caller).await?;
            MEMBER_RESTORE
        }
        MemberStatus::Removed => MEMBER_REMOVE,
    };
    let row = store::members::set_status(&txn, was, status, now).await?;
    audit::record(&txn, caller, AuditEvent::of(action).on(id), now).await?;
    app.commit(txn).await?;
    Ok(row)
}

fn to_wire(row: member::Model) -> Result<Member> {
    let member::Model { tenant_id: _, id, subject, role, status, created_at, last_seen_at, updated_at: _ } =
        row;
    Ok(Member {
        id,
        subject,
        role: role.parse().map_err(anyhow::Error::from)?,
        status: status.parse().map_err(anyhow::Error::from)?,
        created_at: Timestamp::from_micros(created_at),
        last_seen_at: Timestamp::from_micros(last_seen_at),
    })
}
