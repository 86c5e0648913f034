//! Which webhooks of a tenant receive which events.

use std::collections::BTreeMap;

use api::{Plan, webhook::EventType};
use uuid::Uuid;

/// The enabled webhooks of a tenant by the events that they subscribe to. Empty on plans without webhooks.
#[derive(Debug, Default)]
pub struct Subscriptions(BTreeMap<EventType, Vec<Uuid>>);

impl Subscriptions {
    /// Reads the stored webhooks.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn read(db: &impl store::Connection, tenant: Uuid) -> Result<Self, store::DbError> {
        let plan = store::tenants::get(db, tenant).await?.and_then(|it| it.plan.parse::<Plan>().ok());
        if plan.is_none_or(|it| it < Plan::Pro) {
            return Ok(Self::default());
        }
        let mut subscriptions = Self::default();
        for (webhook, events) in store::webhooks::enabled(db, tenant).await? {
            match serde_json::from_str::<Vec<EventType>>(&events) {
                Ok(events) => events.into_iter().for_each(|it| subscriptions.add(it, webhook)),
                Err(error) => {
                    tracing::error!(%webhook, %error, "the events of a webhook can't be parsed; it receives none")
                }
            }
        }
        Ok(subscriptions)
    }

    /// Returns the webhooks that receive this event, ordered by ID.
    pub fn of(&self, event: EventType) -> &[Uuid] {
        self.0.get(&event).map_or(&[], Vec::as_slice)
    }

    /// Whether a webhook receives this event.
    pub fn has(&self, event: EventType) -> bool {
        self.0.contains_key(&event)
    }

    fn add(&mut self, event: EventType, webhook: Uuid) {
        self.0.entry(event).or_default().push(webhook);
    }
}
