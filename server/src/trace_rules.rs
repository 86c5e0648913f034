//! The rules that the transactions of the store apply to traces.

use std::collections::HashMap;

use entities::{job, span, trace};
use store::traces::{StoredGroup, TraceRules};
use uuid::Uuid;

use crate::{ingest::part, long_trace, span_embedding::spans, trace_ready};

/// How a trace follows from its spans, and which jobs a stored trace needs.
#[derive(Clone, Copy, Debug)]
pub struct ProductRules;

impl TraceRules for ProductRules {
    fn summarise(&self, trace: &mut trace::Model, spans: &mut [span::Model], received_at: i64) {
        part::summarise(trace, spans, received_at);
    }

    fn jobs(&self, group: &StoredGroup<'_>) -> Vec<job::Model> {
        let now = group.now;
        let mut jobs: Vec<job::Model> =
            group.long.iter().map(|(tenant, trace)| long_trace::job(*tenant, *trace, now)).collect();
        jobs.extend(readiness(group));
        jobs.extend(spans::jobs(group.embedded(), now));
        jobs
    }
}

/// Returns one job for all traces of a tenant that will be ready at the same time.
fn readiness(group: &StoredGroup<'_>) -> impl Iterator<Item = job::Model> {
    let mut due: HashMap<(Uuid, i64), Vec<Uuid>> = HashMap::new();
    for trace in group.inserted().map(|it| &it.trace).chain(group.merged) {
        due.entry((trace.tenant_id, trace.ready_at)).or_default().push(trace.id);
    }
    let now = group.now;
    due.into_iter().map(move |((tenant, ready_at), traces)| trace_ready::job(tenant, ready_at, traces, now))
}
