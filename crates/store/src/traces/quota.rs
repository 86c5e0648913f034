//! The monthly quota of traces, inside the transaction that stores them.
//!
//! New traces are counted before they are inserted, with one statement per tenant and commit. With a limit,
//! the row of the count makes other writers of the tenant wait until the commit, so the limit is never
//! exceeded. Without a limit, writers count in separate rows. Traces that turn out to be stored already are
//! subtracted again.

use std::collections::{BTreeMap, HashMap, HashSet};

use uuid::Uuid;

use super::{TraceChunk, statements::Statements};
use crate::quotas::{LIMITED, month};

/// The limits and features that apply to the tenants of a group.
#[derive(Clone, Debug, Default)]
pub struct Allowance {
    /// Maximum number of traces per month of each tenant that has a limit.
    pub limits: HashMap<Uuid, u64>,
    /// The tenants whose spans are embedded.
    pub embedding: HashSet<Uuid>,
    /// The slot in which this writer counts traces without a limit.
    pub slot: i16,
}

/// The number of traces counted for each tenant before the insert.
pub(super) struct Charged(BTreeMap<Uuid, i64>);

/// Counts the traces of the `parts` at these indexes, each of a different trace. Returns the indexes of
/// traces that exceed the quota.
pub(super) async fn charge(
    store: &mut impl Statements,
    parts: &[TraceChunk],
    places: &[usize],
    allowance: &Allowance,
    now: i64,
) -> sqlx::Result<(Charged, HashSet<usize>)> {
    let mut by_tenant: BTreeMap<Uuid, Vec<usize>> = BTreeMap::new();
    for place in places {
        by_tenant.entry(parts[*place].trace.tenant_id).or_default().push(*place);
    }
    let (mut charged, mut refused) = (BTreeMap::new(), HashSet::new());
    // In the order of the tenants, so that two writers can't deadlock.
    for (tenant, mut places) in by_tenant {
        let wanted = i64::try_from(places.len()).unwrap_or(i64::MAX);
        let limit = allowance.limits.get(&tenant).copied();
        let slot = if limit.is_some() { LIMITED } else { allowance.slot };
        let used = store.use_traces(tenant, month(now), slot, wanted).await?;
        charged.insert(tenant, wanted);
        let limit = limit.and_then(|it| i64::try_from(it).ok()).unwrap_or(i64::MAX);
        if used <= limit {
            continue;
        }
        let mut room = (limit - (used - wanted)).max(0);
        let ids: Vec<Uuid> = places.iter().map(|it| parts[*it].trace.id).collect();
        let known: HashSet<Uuid> = store.known_traces(tenant, &ids).await?.into_iter().collect();
        // Earlier chunks have precedence.
        places.sort_unstable();
        for place in places.into_iter().filter(|it| !known.contains(&parts[*it].trace.id)) {
            if room > 0 {
                room -= 1;
            } else {
                refused.insert(place);
            }
        }
    }
    Ok((Charged(charged), refused))
}

/// Subtracts the traces that were counted and not inserted.
pub(super) async fn settle(
    store: &mut impl Statements,
    Charged(charged): Charged,
    inserted: &HashSet<(Uuid, Uuid)>,
    allowance: &Allowance,
    now: i64,
) -> sqlx::Result<()> {
    for (tenant, counted) in charged {
        let stored = inserted.iter().filter(|it| it.0 == tenant).count();
        let less = i64::try_from(stored).unwrap_or(i64::MAX) - counted;
        if less != 0 {
            let slot = if allowance.limits.contains_key(&tenant) { LIMITED } else { allowance.slot };
            store.use_traces(tenant, month(now), slot, less).await?;
        }
    }
    Ok(())
}
