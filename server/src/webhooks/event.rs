//! Publishes events: stores them with a delivery for each subscribed webhook.

use std::collections::BTreeSet;

use api::{
    Timestamp,
    webhook::{DeliveryStatus, EventType},
};
use entities::{job, webhook_delivery, webhook_event};
use serde::Serialize;
use serde_json::{Value, json};
use store::{Connection, DbError, new_id};
use uuid::Uuid;

use super::deliver;
use crate::subscriptions::Subscriptions;

/// Maximum length in bytes of a text in the data of an event that would exceed [`MAX_PAYLOAD_BYTES`] otherwise.
const MAX_TEXT_BYTES: usize = 1_024;
/// Maximum length of a payload in bytes: workers hold several in memory.
const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

/// An event to publish.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// What happened.
    pub event_type: EventType,
    /// The project that it belongs to.
    pub project_id: Option<Uuid>,
    /// The trace that it concerns. The event is deleted with it.
    pub trace_id: Option<Uuid>,
    /// The `data` of the payload.
    pub data: Value,
}

/// The body of a delivery.
#[derive(Serialize)]
pub struct Payload<'a> {
    /// The event's ID.
    pub id: Uuid,
    /// What happened.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// Time of the event.
    pub created_at: Timestamp,
    /// The tenant.
    pub tenant_id: Uuid,
    /// The project that it belongs to.
    pub project_id: Option<Uuid>,
    /// The details, which depend on the type.
    pub data: &'a Value,
}

impl Payload<'_> {
    /// Returns the text that is sent.
    ///
    /// # Errors
    ///
    /// Never fails, because all keys are texts.
    pub fn to_text(&self) -> Result<String, DbError> {
        serde_json::to_string(self).map_err(|it| DbError::Custom(format!("payload of an event: {it}")))
    }
}

/// Stores events and their deliveries to the subscribed webhooks, in the caller's transaction. Events without a
/// subscribed webhook are not stored. The texts of very large events are shortened. Returns the jobs that deliver the
/// events, whose pool the caller wakes after the commit.
///
/// The caller holds a lock that a deletion of an event's trace waits for, so that no event outlives its trace.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn publish(
    txn: &impl Connection,
    subscriptions: &Subscriptions,
    tenant: Uuid,
    events: &[NewEvent],
    now: i64,
) -> Result<Vec<job::Model>, DbError> {
    let (mut stored, mut deliveries, mut webhooks) = (Vec::new(), Vec::new(), BTreeSet::new());
    for event in events {
        let subscribed = subscriptions.of(event.event_type);
        if subscribed.is_empty() {
            continue;
        }
        let row = event_row(tenant, event, now)?;
        deliveries.extend(subscribed.iter().map(|it| delivery(&row, *it, now)));
        webhooks.extend(subscribed);
        stored.push(row);
    }
    if stored.is_empty() {
        return Ok(Vec::new());
    }
    store::webhooks::deliveries::add(txn, &stored, &deliveries).await?;
    let jobs = vec![deliver::job(tenant, webhooks.into_iter().collect(), now)];
    queue::enqueue_all(txn, jobs.clone()).await?;
    Ok(jobs)
}

fn event_row(tenant: Uuid, event: &NewEvent, now: i64) -> Result<webhook_event::Model, DbError> {
    let id = new_id();
    let payload = |data: &Value| {
        Payload {
            id,
            event_type: event.event_type,
            created_at: Timestamp::from_micros(now),
            tenant_id: tenant,
            project_id: event.project_id,
            data,
        }
        .to_text()
    };
    let mut text = payload(&event.data)?;
    if text.len() > MAX_PAYLOAD_BYTES {
        let mut data = event.data.clone();
        shorten(&mut data);
        text = payload(&data)?;
    }
    if text.len() > MAX_PAYLOAD_BYTES {
        text = payload(&json!({"truncated": true}))?;
    }
    Ok(webhook_event::Model {
        tenant_id: tenant,
        id,
        project_id: event.project_id,
        trace_id: event.trace_id,
        event_type: event.event_type.as_str().to_owned(),
        payload: text,
        created_at: now,
    })
}

/// Returns a pending delivery of an event, due now.
pub fn delivery(event: &webhook_event::Model, webhook: Uuid, now: i64) -> webhook_delivery::Model {
    webhook_delivery::Model {
        tenant_id: event.tenant_id,
        id: new_id(),
        webhook_id: webhook,
        event_id: event.id,
        event_type: event.event_type.clone(),
        status: DeliveryStatus::Pending.as_str().to_owned(),
        attempts: 0,
        due_at: Some(now),
        created_at: now,
        completed_at: None,
    }
}

/// Shortens the texts of a value.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > MAX_TEXT_BYTES => {
            text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
            text.push('…');
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(object) => object.values_mut().for_each(shorten),
        _ => {}
    }
}
