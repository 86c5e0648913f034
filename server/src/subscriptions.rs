//! Which webhooks of a tenant receive which events.

use std::collections::BTreeMap;

use api::{Plan, webhook::EventType};
use uuid::Uuid;

/// Maximum number of deliveries that a transaction stores, unless one event has more.
const MAX_DELIVERIES_PER_TRANSACTION: usize = 2_000;

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

    /// Returns how many of these events a transaction may publish, at least one, so that the number of deliveries that it
    /// stores is bounded.
    pub fn max_events_per_transaction(&self, event: EventType) -> usize {
        (MAX_DELIVERIES_PER_TRANSACTION / self.of(event).len().max(1)).max(1)
    }

    /// Whether a webhook receives this event.
    pub fn has(&self, event: EventType) -> bool {
        self.0.contains_key(&event)
    }

    fn add(&mut self, event: EventType, webhook: Uuid) {
        self.0.entry(event).or_default().push(webhook);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_transaction_become_fewer_with_more_webhooks() {
        let mut subscriptions = Subscriptions::default();
        let mut added = 0;
        for (count, expected) in [(0, 2_000), (1, 2_000), (3, 666), (100, 20), (2_000, 1), (5_000, 1)] {
            while added < count {
                subscriptions.add(EventType::FailureDetected, Uuid::from_u128(added));
                added += 1;
            }
            let most = subscriptions.max_events_per_transaction(EventType::FailureDetected);
            assert_eq!(most, expected, "{count} webhooks");
        }
        assert_eq!(subscriptions.max_events_per_transaction(EventType::AnomalyDetected), 2_000);
    }
}
