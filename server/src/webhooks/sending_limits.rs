//! Limits the batches of webhook deliveries that a process sends concurrently.

use queue::{ConcurrencyLimits, ConcurrencyPermit};
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

/// Maximum number of batches.
const MAX_BATCHES: usize = 64;
/// Maximum number of batches of a tenant, so that a tenant whose receivers hang leaves some to others.
const MAX_BATCHES_PER_TENANT: usize = 56;
/// Maximum number of batches of a webhook.
const MAX_BATCHES_PER_WEBHOOK: usize = 2;

/// The batches of deliveries that are being sent, by tenant and webhook.
#[derive(Debug)]
pub struct SendingLimits {
    all: Semaphore,
    tenants: ConcurrencyLimits<Uuid>,
    webhooks: ConcurrencyLimits<Uuid>,
}

/// A permit to send a batch.
#[derive(Debug)]
pub struct SendingPermit<'a> {
    _all: SemaphorePermit<'a>,
    _tenant: ConcurrencyPermit<'a, Uuid>,
    _webhook: ConcurrencyPermit<'a, Uuid>,
}

impl Default for SendingLimits {
    fn default() -> Self {
        let (tenants, webhooks) = (ConcurrencyLimits::default(), ConcurrencyLimits::default());
        Self { all: Semaphore::new(MAX_BATCHES), tenants, webhooks }
    }
}

impl SendingLimits {
    /// Takes a permit to send a batch to a webhook, if one is free.
    pub fn take(&self, tenant: Uuid, webhook: Uuid) -> Option<SendingPermit<'_>> {
        Some(SendingPermit {
            _webhook: self.webhooks.take(&webhook, MAX_BATCHES_PER_WEBHOOK)?,
            _tenant: self.tenants.take(&tenant, MAX_BATCHES_PER_TENANT)?,
            _all: self.all.try_acquire().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_limited_by_webhook_tenant_and_process() {
        let limits = SendingLimits::default();
        let (tenant, other) = (Uuid::from_u128(1_000), Uuid::from_u128(2_000));
        let webhook = Uuid::from_u128;
        let mut permits =
            vec![limits.take(tenant, webhook(0)).unwrap(), limits.take(tenant, webhook(0)).unwrap()];
        assert!(limits.take(tenant, webhook(0)).is_none(), "two batches of a webhook");
        permits.extend((1..=54).map(|it| limits.take(tenant, webhook(it)).unwrap()));
        assert!(limits.take(tenant, webhook(55)).is_none(), "56 batches of a tenant");
        permits.extend((0..8).map(|it| limits.take(other, webhook(100 + it)).unwrap()));
        assert!(limits.take(other, webhook(200)).is_none(), "64 batches");
        permits.clear();
        assert!(limits.take(other, webhook(0)).is_some());
    }
}
