//! The rules that the transactions of the store apply to traces.

use std::{collections::HashMap, sync::Arc};

use entities::{job, span, trace};
use queue::WakeUps;
use store::traces::{StoredGroup, TraceRules};
use uuid::Uuid;

use crate::{
    failures::record, ingest::trace_rollup, log_joining, long_trace, span_embedding::embed_spans, trace_ready,
};

/// Computes a trace's row from its spans, and returns the jobs that a stored trace needs.
#[derive(Debug)]
pub struct ProductRules {
    /// Wakes the pools of the jobs.
    pub wake_ups: Arc<WakeUps>,
}

impl TraceRules for ProductRules {
    fn summarise(&self, trace: &mut trace::Model, spans: &mut [span::Model], received_at: i64) {
        trace_rollup::roll_up(trace, spans, received_at);
    }

    fn jobs(&self, group: &StoredGroup<'_>) -> Vec<job::Model> {
        let now = group.now;
        let mut jobs: Vec<job::Model> =
            group.long.iter().map(|(tenant, trace)| long_trace::job(*tenant, *trace, now)).collect();
        jobs.extend(readiness(group));
        jobs.extend(embed_spans::jobs(group.embedded(), now));
        jobs.extend(record::jobs(group.stored(), now));
        let mut awaited: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
        for (tenant, trace) in group.awaited {
            awaited.entry(*tenant).or_default().push(*trace);
        }
        jobs.extend(
            awaited.into_iter().flat_map(|(tenant, it)| log_joining::jobs_of_held_spans(tenant, it, now)),
        );
        jobs
    }

    fn committed(&self, jobs: &[job::Model]) {
        self.wake_ups.wake_for(jobs);
    }
}

/// Returns one job for all traces of a tenant that will be ready at the same time.
fn readiness(group: &StoredGroup<'_>) -> impl Iterator<Item = job::Model> {
    let mut due: HashMap<(Uuid, i64), Vec<i64>> = HashMap::new();
    for trace in group.inserted().map(|it| &it.trace).chain(group.merged) {
        due.entry((trace.tenant_id, trace.ready_at)).or_default().push(trace.key);
    }
    let now = group.now;
    due.into_iter().map(move |((tenant, ready_at), keys)| trace_ready::job(tenant, ready_at, keys, now))
}
