//! The monthly quota of traces, inside the transaction that stores them.
//!
//! New traces are counted before they are inserted, with one statement per tenant and commit. With a limit,
//! the row of the count makes other writers of the tenant wait until the commit, so the limit is never
//! exceeded. Without a limit, writers count in separate rows. Traces that turn out to be stored already are
//! subtracted again.

use std::collections::{BTreeMap, HashMap, HashSet};

use uuid::Uuid;

use super::{TraceChunk, statements::WriteStatements};
use crate::quotas::{LIMITED_SLOT, month};

/// The limits and features that apply to the tenants of a group.
#[derive(Clone, Debug, Default)]
pub struct Allowance {
    /// Maximum number of traces per month of each tenant that has a limit.
    pub limits: HashMap<Uuid, u64>,
    /// The tenants whose spans are embedded.
    pub embedding: HashSet<Uuid>,
    /// The slot in which this writer counts traces without a limit.
    pub slot: i16,
    /// Whether the spans are outputs of control actions: those of traces that are not stored are refused, and a trace that
    /// is ready stays ready, so that eval rules do not evaluate it again as the application's own.
    pub are_action_outputs: bool,
}

/// The number of traces counted for each tenant before the insert.
pub(super) struct CountedTraces(BTreeMap<Uuid, i64>);

/// Counts the traces of the `parts` at these indexes, each of a different trace. Returns the indexes of
/// traces that exceed the quota.
pub(super) async fn count_new_traces(
    store: &mut impl WriteStatements,
    chunks: &[TraceChunk],
    places: &[usize],
    allowance: &Allowance,
    now: i64,
) -> sqlx::Result<(CountedTraces, HashSet<usize>)> {
    let mut by_tenant: BTreeMap<Uuid, Vec<usize>> = BTreeMap::new();
    for place in places {
        by_tenant.entry(chunks[*place].trace.tenant_id).or_default().push(*place);
    }
    let (mut counted_traces, mut refused) = (BTreeMap::new(), HashSet::new());
    // In the order of the tenants, so that two writers cannot deadlock.
    for (tenant, mut places) in by_tenant {
        let wanted = i64::try_from(places.len()).unwrap_or(i64::MAX);
        let limit = allowance.limits.get(&tenant).copied();
        let slot = if limit.is_some() { LIMITED_SLOT } else { allowance.slot };
        let used = store.use_traces(tenant, month(now), slot, wanted).await?;
        counted_traces.insert(tenant, wanted);
        let limit = limit.and_then(|it| i64::try_from(it).ok()).unwrap_or(i64::MAX);
        if used <= limit {
            continue;
        }
        let mut remaining = (limit - (used - wanted)).max(0);
        let ids: Vec<Uuid> = places.iter().map(|it| chunks[*it].trace.id).collect();
        let known: HashSet<Uuid> = store.known_traces(tenant, &ids).await?.into_iter().collect();
        // Earlier chunks have precedence.
        places.sort_unstable();
        for place in places.into_iter().filter(|it| !known.contains(&chunks[*it].trace.id)) {
            if remaining > 0 {
                remaining -= 1;
            } else {
                refused.insert(place);
            }
        }
    }
    Ok((CountedTraces(counted_traces), refused))
}

/// Subtracts the traces that were counted and not inserted.
pub(super) async fn uncount_stored_traces(
    store: &mut impl WriteStatements,
    CountedTraces(counted_traces): CountedTraces,
    inserted: &HashSet<(Uuid, Uuid)>,
    allowance: &Allowance,
    now: i64,
) -> sqlx::Result<()> {
    for (tenant, counted) in counted_traces {
        let stored = inserted.iter().filter(|it| it.0 == tenant).count();
        let less = i64::try_from(stored).unwrap_or(i64::MAX) - counted;
        if less != 0 {
            let slot = if allowance.limits.contains_key(&tenant) { LIMITED_SLOT } else { allowance.slot };
            store.use_traces(tenant, month(now), slot, less).await?;
        }
    }
    Ok(())
}
