//! Records the spans and traces that ingest rejects within accepted requests, so that users find the SDK that sends them.
//!
//! Senders decide how often this happens, so it is bounded: a process inserts a limited number of rows per tenant and
//! hour, and counts further requests in the last row of their project and protocol. It executes at most one statement for
//! these counts at a time per tenant.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::rejection::{RejectionReason, RejectionSource};
use entities::rejected_input;
use moka::sync::Cache;
use store::{
    Db, DbError, new_id,
    rejected_input::{RejectedCount, add, insert},
};
use uuid::Uuid;

/// Maximum number of rows that a process inserts for a tenant in an hour.
const MAX_ROWS_PER_HOUR: u32 = 100;
/// Maximum number of reasons in a row.
pub const MAX_REASONS: usize = 5;
/// Maximum length of a reason in characters.
const MAX_MESSAGE_CHARS: usize = 300;
/// Maximum length in characters of the name and of the version of an SDK.
const MAX_SDK_CHARS: usize = 100;
/// Maximum number of tenants whose rows are counted.
const MAX_TENANTS: u64 = 100_000;
const HOUR_MICROS: i64 = 3_600_000_000;

/// The rejected items of a request.
#[derive(Clone, Debug)]
pub struct RejectedItems {
    /// The tenant.
    pub tenant_id: Uuid,
    /// The project of the request.
    pub project_id: Uuid,
    /// The protocol of the request.
    pub source: RejectionSource,
    /// The SDK.
    pub sdk: Option<String>,
    /// Version of the SDK.
    pub sdk_version: Option<String>,
    /// Number of rejected items.
    pub rejected: usize,
    /// Reasons of the first rejected items. At most [`MAX_REASONS`] are stored.
    pub reasons: Vec<RejectionReason>,
    /// ID of the request.
    pub request_id: Arc<str>,
}

/// Records rejected items in the database.
pub struct RejectionRecorder {
    tenants: Cache<Uuid, Arc<TenantRows>>,
}

impl Default for RejectionRecorder {
    fn default() -> Self {
        let tenants = Cache::builder()
            .max_capacity(MAX_TENANTS)
            .time_to_idle(Duration::from_micros(HOUR_MICROS.unsigned_abs()));
        Self { tenants: tenants.build() }
    }
}

impl RejectionRecorder {
    /// Records the rejected items of a request. Logs a failure: the request succeeds without the record.
    pub async fn record(&self, db: &Db, items: RejectedItems, now: i64) {
        let tenant = items.tenant_id;
        let rows = self.tenants.get_with(tenant, Arc::default);
        if let Err(error) = store_items(&rows, db, items, now).await {
            tracing::warn!(%tenant, %error, "rejected input could not be recorded");
        }
    }
}

async fn store_items(rows: &TenantRows, db: &Db, items: RejectedItems, now: i64) -> Result<(), DbError> {
    let (tenant, origin) = (items.tenant_id, (items.project_id, items.source));
    let rejected = i64::try_from(items.rejected).unwrap_or(i64::MAX);
    if rows.claim_row(origin, rejected, now) {
        let row = row(items, rejected, now)?;
        let id = row.id;
        let inserted = insert(&db.write, row).await;
        rows.end_insertion(origin, inserted.is_ok().then_some(id));
        inserted?;
    }
    // The request that gets the lock adds the counts of all that wait for it.
    let _guard = rows.addition.lock().await;
    if let Some((id, count)) = rows.take_count(origin) {
        let added = add(&db.write, tenant, id, count).await;
        if added.is_err() {
            rows.lock().origins.entry(origin).or_default().uncounted.merge(count);
        }
        added?;
    }
    Ok(())
}

/// The project and the protocol of requests.
type Origin = (Uuid, RejectionSource);

/// The rows of a tenant in an hour.
#[derive(Default)]
struct TenantRows {
    counts: Mutex<HourlyCounts>,
    /// Held while counts are added to a row.
    addition: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct HourlyCounts {
    /// Hours since 1970.
    hour: i64,
    /// Number of rows that were or are being inserted.
    inserted: u32,
    origins: HashMap<Origin, OriginCounts>,
}

/// The rows of an origin in an hour.
#[derive(Default)]
struct OriginCounts {
    /// The last inserted row.
    last_id: Option<Uuid>,
    /// Number of rows that are being inserted.
    inserting: u32,
    /// Counts that are not stored yet.
    uncounted: RejectedCount,
}

impl TenantRows {
    fn lock(&self) -> MutexGuard<'_, HourlyCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the request may insert a row; otherwise adds its items to the uncounted ones. The first request
    /// of an origin always inserts one, to which the counts of later requests are added.
    fn claim_row(&self, origin: Origin, rejected: i64, now: i64) -> bool {
        let mut counts = self.lock();
        let hour = now.div_euclid(HOUR_MICROS);
        if hour > counts.hour {
            (counts.hour, counts.inserted) = (hour, 0);
            counts.origins.retain(|_, it| it.uncounted.requests > 0);
        }
        let is_below_limit = counts.inserted < MAX_ROWS_PER_HOUR;
        let of_origin = counts.origins.entry(origin).or_default();
        if is_below_limit || (of_origin.last_id.is_none() && of_origin.inserting == 0) {
            of_origin.inserting += 1;
            counts.inserted = counts.inserted.saturating_add(1);
            return true;
        }
        of_origin.uncounted.merge(RejectedCount { rejected, requests: 1, last_at: now });
        false
    }

    /// Ends the insertion of a claimed row; `id` is `None` if it failed.
    fn end_insertion(&self, origin: Origin, id: Option<Uuid>) {
        let mut counts = self.lock();
        if id.is_none() {
            counts.inserted = counts.inserted.saturating_sub(1);
        }
        let of_origin = counts.origins.entry(origin).or_default();
        of_origin.inserting = of_origin.inserting.saturating_sub(1);
        of_origin.last_id = id.or(of_origin.last_id);
    }

    /// Takes the counts of an origin that are not stored yet, with the row that they are added to.
    fn take_count(&self, origin: Origin) -> Option<(Uuid, RejectedCount)> {
        let mut counts = self.lock();
        let of_origin = counts.origins.get_mut(&origin)?;
        if of_origin.uncounted.requests == 0 {
            return None;
        }
        let id = of_origin.last_id?;
        Some((id, std::mem::take(&mut of_origin.uncounted)))
    }
}

fn row(items: RejectedItems, rejected: i64, now: i64) -> Result<rejected_input::Model, DbError> {
    let RejectedItems {
        tenant_id,
        project_id,
        source,
        sdk,
        sdk_version,
        rejected: _,
        mut reasons,
        request_id,
    } = items;
    reasons.truncate(MAX_REASONS);
    for reason in &mut reasons {
        reason.message = bounded(&reason.message, MAX_MESSAGE_CHARS);
    }
    let reasons = serde_json::to_string(&reasons)
        .map_err(|error| DbError::Custom(format!("reasons of rejected input: {error}")))?;
    Ok(rejected_input::Model {
        tenant_id,
        id: new_id(),
        project_id,
        source: source.as_str().to_owned(),
        sdk: sdk.map(|it| bounded(&it, MAX_SDK_CHARS)),
        sdk_version: sdk_version.map(|it| bounded(&it, MAX_SDK_CHARS)),
        rejected,
        requests: 1,
        reasons,
        request_id: request_id.as_ref().to_owned(),
        received_at: now,
        last_at: now,
    })
}

/// Returns the text without NUL characters, and cut if it is too long.
fn bounded(text: &str, max_chars: usize) -> String {
    let is_longer = text.chars().nth(max_chars).is_some();
    let kept = if is_longer { max_chars - 1 } else { max_chars };
    let mut bounded: String =
        text.chars().take(kept).map(|it| if it == '\0' { '\u{fffd}' } else { it }).collect();
    if is_longer {
        bounded.push('…');
    }
    bounded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_cut_and_has_no_nul() {
        assert_eq!(bounded("a\0b", 3), "a\u{fffd}b");
        assert_eq!(bounded("äöüß", 3), "äö…");
        assert_eq!(bounded("", 3), "");
    }

    #[test]
    fn row_insertions_are_limited_per_hour() {
        let rows = TenantRows::default();
        let (shop, desk) = ((new_id(), RejectionSource::Otlp), (new_id(), RejectionSource::Json));
        let hour = |n: i64| n * HOUR_MICROS;
        assert!((0..MAX_ROWS_PER_HOUR).all(|_| rows.claim_row(shop, 1, hour(5))));
        assert!(!rows.claim_row(shop, 3, hour(5)) && !rows.claim_row(shop, 4, hour(6) - 1));
        assert_eq!(rows.take_count(shop), None, "no row is stored");
        let id = new_id();
        rows.end_insertion(shop, Some(id));
        let count = RejectedCount { rejected: 7, requests: 2, last_at: hour(6) - 1 };
        assert_eq!(rows.take_count(shop), Some((id, count)));
        assert_eq!(rows.take_count(shop), None);
        // Another origin gets one row beyond the limit.
        assert!(rows.claim_row(desk, 1, hour(5)) && !rows.claim_row(desk, 1, hour(5)));
        // A failed insertion does not count.
        rows.end_insertion(desk, None);
        assert!(rows.claim_row(desk, 1, hour(5)));
        assert!(rows.claim_row(shop, 1, hour(6)));
    }
}
