//! Webhooks: events of a tenant, sent to its HTTPS addresses.
//!
//! [`publish`] stores an event and one delivery for each subscribed webhook, in the transaction of the event's
//! cause. The job of [`deliver`] claims due deliveries of several webhooks, sends them with no transaction open
//! ([`send`], signed by [`signature`]), and stores the results together. [`schedule`] decides about the next
//! attempt.

pub mod address;
pub mod deliver;
mod endpoints;
pub mod event;
pub mod headers;
pub mod schedule;
pub mod send;
pub mod sending_limits;
pub mod signature;
mod target;

pub use event::{NewEvent, publish};

use std::time::Duration;

use store::webhooks::deliveries::{EXPIRING_ATTEMPTS, EXPIRING_DELIVERIES, EXPIRING_EVENTS};

use crate::feature::{Feature, RowExpiry};

/// How long deliveries and their attempts are kept.
const DELIVERY_TTL: Duration = Duration::from_secs(30 * 86_400);
/// How long events are kept: longer than deliveries, so that a redelivery can make all its attempts.
const EVENT_TTL: Duration = Duration::from_secs(34 * 86_400);

/// Webhooks.
pub const FEATURE: Feature = Feature {
    routes: endpoints::routes,
    jobs: |registry| registry.register::<deliver::DeliverWebhooks>(),
    housekeeping: &[
        &RowExpiry { rows: EXPIRING_DELIVERIES, after: DELIVERY_TTL },
        &RowExpiry { rows: EXPIRING_ATTEMPTS, after: DELIVERY_TTL },
        &RowExpiry { rows: EXPIRING_EVENTS, after: EVENT_TTL },
    ],
    ..Feature::NONE
};
