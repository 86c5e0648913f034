//! How much each tenant sends in log records.

use std::time::Duration;

use moka::sync::Cache;
use uuid::Uuid;

/// How long a tenant counts as a sender after its last log record.
const SENDER_TTL: Duration = Duration::from_secs(3_600);
/// Maximum number of tenants.
const MAX_SENDERS: u64 = 100_000;
/// Maximum size in bytes of the log records of a tenant that a process stores in an hour, after compression.
const MAX_BYTES_PER_HOUR: u64 = 1 << 30;
const HOUR_MICROS: i64 = 3_600_000_000;

/// How much each tenant sent in log records to this process in the present hour, which is limited.
#[derive(Debug)]
pub struct LogSenders(Cache<Uuid, (i64, u64)>);

impl Default for LogSenders {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MAX_SENDERS).time_to_live(SENDER_TTL).build())
    }
}

impl LogSenders {
    /// Counts log records of a tenant. Returns whether they may be stored.
    pub fn add(&self, tenant: Uuid, bytes: usize, now: i64) -> bool {
        let hour = now.div_euclid(HOUR_MICROS);
        let entry = self.0.entry(tenant).and_upsert_with(|found| {
            let sent = found.map(|it| it.into_value()).filter(|it| it.0 == hour).map_or(0, |it| it.1);
            (hour, sent.saturating_add(bytes as u64))
        });
        entry.into_value().1 <= MAX_BYTES_PER_HOUR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_records_of_a_tenant_are_bounded_in_each_hour() {
        let (senders, tenant) = (LogSenders::default(), Uuid::from_u128(1));
        let half = usize::try_from(MAX_BYTES_PER_HOUR / 2).unwrap();
        assert!(senders.add(tenant, half, 0) && senders.add(tenant, half, HOUR_MICROS - 1));
        assert!(!senders.add(tenant, 1, HOUR_MICROS - 1));
        assert!(senders.add(Uuid::from_u128(2), half, 0));
        assert!(senders.add(tenant, half, HOUR_MICROS));
    }
}
