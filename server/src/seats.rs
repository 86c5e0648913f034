//! Seats: a user who signs in for the first time takes a seat and keeps it until removed. A removed
//! member is rejected even with a valid token.

use api::{ErrorCode, member::MemberStatus};
use entities::member;
use serde_json::json;
use store::{Connection, new_id};

use crate::{
    access::{Caller, Credential, plans::limits},
    app::App,
    audit::{self, AuditAction, AuditEvent},
    error::{Error, Result, problem},
};

/// A member took a seat.
const MEMBER_JOIN: AuditAction = AuditAction::new("member.join", "member");
/// A member signed in with another role.
const MEMBER_ROLE: AuditAction = AuditAction::new("member.role", "member");

/// Precision in microseconds of the recorded time of a member's last request.
const LAST_SEEN_PRECISION_MICROS: i64 = 3_600_000_000;

/// Admits the caller of a session and takes a seat if needed.
///
/// # Errors
///
/// Fails with `member_removed`, or `seat_limit_exceeded` when no seat is free.
pub async fn admit(app: &App, caller: &Caller) -> Result<()> {
    let Credential::Session { subject, .. } = &caller.credential else { return Ok(()) };
    match app.access_cache.member(caller.tenant_id, subject).await? {
        None => take_seat(app, caller, subject).await,
        Some(member) if member.status != MemberStatus::Active.as_str() => Err(member_removed()),
        Some(_) => Ok(()),
    }
}

/// Records the role and last request of an admitted member. Called only for requests within the rate
/// limit, because it may write.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn record_activity(app: &App, caller: &Caller) -> Result<()> {
    let Credential::Session { subject, .. } = &caller.credential else { return Ok(()) };
    let now = app.clock.now();
    match app.access_cache.member(caller.tenant_id, subject).await? {
        Some(member) if member.role != caller.role.as_str() => {
            record_role_change(app, caller, &member, now).await
        }
        Some(member) if member.last_seen_at + LAST_SEEN_PRECISION_MICROS <= now => {
            let before = app.access_cache.version();
            let row = store::members::seen(&app.db.write, member.as_ref().clone(), caller.role, now).await?;
            app.access_cache.put_member(row, before);
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn take_seat(app: &App, caller: &Caller, subject: &str) -> Result<()> {
    let (tenant, now, before) = (caller.tenant_id, app.clock.now(), app.access_cache.version());
    // Checked without a lock first, so that repeatedly rejected users do not block others.
    require_free_seat(app.db.current(), caller).await?;
    let txn = app.db.begin().await?;
    store::tenants::lock(&txn, tenant).await?;
    if let Some(member) = store::members::by_subject(&txn, tenant, subject).await? {
        txn.rollback().await?;
        return if member.status == MemberStatus::Active.as_str() { Ok(()) } else { Err(member_removed()) };
    }
    require_free_seat(&txn, caller).await?;
    let row = member::Model {
        tenant_id: tenant,
        id: new_id(),
        subject: subject.to_owned(),
        role: caller.role.as_str().to_owned(),
        status: MemberStatus::Active.as_str().to_owned(),
        created_at: now,
        last_seen_at: now,
        updated_at: now,
    };
    store::members::add(&txn, row.clone()).await?;
    let event = AuditEvent::of(MEMBER_JOIN).on(row.id).with(json!({"role": caller.role}));
    audit::record(&txn, caller, event, now).await?;
    txn.commit().await?;
    app.access_cache.put_member(row, before);
    Ok(())
}

/// Fails if every seat of the plan is taken.
///
/// # Errors
///
/// Fails with `seat_limit_exceeded`.
pub async fn require_free_seat(db: &impl Connection, caller: &Caller) -> Result<()> {
    let Some(limit) = limits(caller.plan).members else { return Ok(()) };
    if store::members::seats(db, caller.tenant_id).await? < limit {
        return Ok(());
    }
    Err(problem(
        ErrorCode::SeatLimitExceeded,
        format!("all {limit} seats of the {0} plan are taken; an owner can remove a member", caller.plan),
    ))
}

async fn record_role_change(app: &App, caller: &Caller, member: &member::Model, now: i64) -> Result<()> {
    let before = app.access_cache.version();
    let txn = app.db.begin().await?;
    let row = store::members::seen(&txn, member.clone(), caller.role, now).await?;
    let change = json!({"from": member.role, "to": caller.role});
    audit::record(&txn, caller, AuditEvent::of(MEMBER_ROLE).on(member.id).with(change), now).await?;
    txn.commit().await?;
    app.access_cache.put_member(row, before);
    Ok(())
}

fn member_removed() -> Error {
    problem(ErrorCode::MemberRemoved, "this member was removed from the tenant; an owner can restore it")
}
