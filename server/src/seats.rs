//! Seats: whoever comes with a session of the tenant for the first time takes one, and keeps it
//! until removed. A removed member stays out, however good the token.

use api::{ErrorCode, member::MemberStatus};
use entities::member;
use serde_json::json;
use store::{Connection, new_id};

use crate::{
    access::{Caller, Credential, plans::limits},
    app::App,
    audit::{self, Action, Event},
    error::{Error, Result, problem},
};

/// How precisely it is noted when a member was last seen, microseconds.
const SEEN: i64 = 3_600_000_000;

/// Lets the caller of a session in, who then has a seat.
///
/// # Errors
/// `member_removed`, or `seat_limit_exceeded` when the plan has no seat left.
pub async fn admit(app: &App, caller: &Caller) -> Result<()> {
    let Credential::Session { subject, .. } = &caller.credential else { return Ok(()) };
    match app.known.member(caller.tenant_id, subject).await? {
        None => take_seat(app, caller, subject).await,
        Some(member) if member.status != MemberStatus::Active.as_str() => Err(removed()),
        Some(_) => Ok(()),
    }
}

/// Notes what is new about a member who was let in: the role, and about when it was seen. For
/// requests within the limit alone, because each may write.
///
/// # Errors
/// When the database fails.
pub async fn note(app: &App, caller: &Caller) -> Result<()> {
    let Credential::Session { subject, .. } = &caller.credential else { return Ok(()) };
    let now = app.clock.now();
    match app.known.member(caller.tenant_id, subject).await? {
        Some(member) if member.role != caller.role.as_str() => note_role(app, caller, &member, now).await,
        Some(member) if member.last_seen_at + SEEN <= now => {
            let before = app.known.generation();
            let row = store::members::seen(&app.db.write, member.as_ref().clone(), caller.role, now).await?;
            app.known.remember_member(row, before);
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn take_seat(app: &App, caller: &Caller, subject: &str) -> Result<()> {
    let (tenant, now, before) = (caller.tenant_id, app.clock.now(), app.known.generation());
    // Looked at without a lock first: whoever is turned away again and again must not hold
    // others up.
    refuse_if_full(app.db.current(), caller).await?;
    let txn = app.db.begin().await?;
    store::tenants::lock(&txn, tenant).await?;
    if let Some(member) = store::members::by_subject(&txn, tenant, subject).await? {
        txn.rollback().await?;
        return if member.status == MemberStatus::Active.as_str() { Ok(()) } else { Err(removed()) };
    }
    refuse_if_full(&txn, caller).await?;
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
    let event = Event::of(Action::MemberJoin).on(row.id).with(json!({"role": caller.role}));
    audit::record(&txn, caller, event, now).await?;
    txn.commit().await?;
    app.known.remember_member(row, before);
    Ok(())
}

/// Refuses one more member where every seat of the plan is taken.
///
/// # Errors
/// `seat_limit_exceeded`.
pub async fn refuse_if_full(db: &impl Connection, caller: &Caller) -> Result<()> {
    let Some(limit) = limits(caller.plan).members else { return Ok(()) };
    if store::members::seats(db, caller.tenant_id).await? < limit {
        return Ok(());
    }
    Err(problem(
        ErrorCode::SeatLimitExceeded,
        format!("the {} plan has {limit} seats and all are taken; an owner can free one", caller.plan),
    ))
}

async fn note_role(app: &App, caller: &Caller, member: &member::Model, now: i64) -> Result<()> {
    let before = app.known.generation();
    let txn = app.db.begin().await?;
    let row = store::members::seen(&txn, member.clone(), caller.role, now).await?;
    let change = json!({"from": member.role, "to": caller.role});
    audit::record(&txn, caller, Event::of(Action::MemberRole).on(member.id).with(change), now).await?;
    txn.commit().await?;
    app.known.remember_member(row, before);
    Ok(())
}

fn removed() -> Error {
    problem(ErrorCode::MemberRemoved, "this member was removed from the tenant; an owner can restore it")
}
