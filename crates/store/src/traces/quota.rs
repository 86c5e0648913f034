//! The monthly quota of traces, inside the transaction that stores them.
//!
//! A tenant's new traces are counted before they are inserted, with one statement a tenant and
//! commit. Where there is a limit, its row keeps other writers of the tenant waiting until the
//! commit, so that the limit is never passed; where there is none, every writer counts in a row
//! of its own. What turns out to be stored already is taken off again.

use std::collections::{BTreeMap, HashMap, HashSet};

use uuid::Uuid;

use super::{super::quotas::LIMITED, statements::Statements};
use crate::{quotas::month, traces::TraceChunk};

/// What a group of parts may use.
#[derive(Clone, Debug, Default)]
pub struct Allowance {
    /// Traces a month of the tenants that have a limit.
    pub limits: HashMap<Uuid, u64>,
    /// The tenants whose spans are to be embedded.
    pub embedding: HashSet<Uuid>,
    /// The row in which this writer counts what has no limit.
    pub slot: i16,
}

/// What was counted for each tenant before anything was inserted.
pub(super) struct Charged(BTreeMap<Uuid, i64>);

/// Counts the traces of `parts` at these places, each another trace; answers the places for
/// which there is no room.
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
    // In the order of the tenants, so that two writers can't wait for each other.
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
        // First come, first kept.
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

/// Takes off again what was not inserted.
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
