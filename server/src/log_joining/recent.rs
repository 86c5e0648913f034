//! Log records that this process stored recently, for spans that may follow.
//!
//! By default, OpenTelemetry SDKs export log records every second, and spans every five seconds. So most log records arrive
//! before their spans, which are then converted together with them, and stored once. Otherwise, the job converts the spans
//! again and replaces the stored ones. Whether a log record is found here changes the work only, not the stored trace.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use moka::{Expiry, ops::compute::Op, policy::EvictionPolicy, sync::Cache};
use semantics::{
    draft::{HeldSpan, ResourceGroup, SpanDraft},
    otlp::{LogJoin, RecordData},
};
use store::{
    otel_span_id,
    traces::{JoinedRecords, TraceChunk},
};
use uuid::Uuid;

/// How long the log records of a trace are kept, from the first one on.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// Maximum memory in bytes of the log records of all traces.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum memory in bytes of the log records of one trace. The job joins further ones.
const MAX_TRACE_BYTES: usize = 256 * 1024;
/// Maximum number of rows of log records of one trace.
const MAX_TRACE_ROWS: usize = 64;
/// Memory in bytes of a row in addition to its log records and span IDs, approximate.
const ROW_BYTES: usize = 200;

/// The OpenTelemetry IDs of a trace and of a span.
type OtelKey = ([u8; 16], [u8; 8]);

/// Log records by tenant and trace.
#[derive(Debug)]
pub struct RecentRecords(Cache<(Uuid, Uuid), Vec<Arc<RecordRow>>>);

/// A stored row of log records.
#[derive(Debug)]
struct RecordRow {
    id: Uuid,
    /// The spans that the log records name, ascending.
    span_ids: Vec<[u8; 8]>,
    /// The encoded log records.
    data: Vec<u8>,
}

impl RecordRow {
    fn bytes(&self) -> usize {
        ROW_BYTES + self.data.len() + size_of_val(self.span_ids.as_slice())
    }
}

fn bytes_of(rows: &[Arc<RecordRow>]) -> usize {
    rows.iter().map(|it| it.bytes()).sum()
}

/// Further log records of a trace do not prolong the time of the first ones.
struct FromFirstRow;

impl Expiry<(Uuid, Uuid), Vec<Arc<RecordRow>>> for FromFirstRow {
    fn expire_after_create(&self, _: &(Uuid, Uuid), _: &Vec<Arc<RecordRow>>, _: Instant) -> Option<Duration> {
        Some(KEPT_FOR)
    }
}

impl Default for RecentRecords {
    fn default() -> Self {
        let weight =
            |_: &(Uuid, Uuid), rows: &Vec<Arc<RecordRow>>| u32::try_from(bytes_of(rows)).unwrap_or(u32::MAX);
        let cache = Cache::builder().weigher(weight).max_capacity(MAX_BYTES);
        // By default, a full cache prefers keys that are used often. Each trace is used once.
        Self(cache.eviction_policy(EvictionPolicy::lru()).expire_after(FromFirstRow).build())
    }
}

impl RecentRecords {
    /// Adds log records of a trace, which are stored in the row with this ID.
    pub fn add(&self, tenant: Uuid, (trace, row): (Uuid, Uuid), records: RecordData) {
        // The span with a response ID is known only when all spans of the trace are converted.
        let Some(span_ids) = records.span_ids else { return };
        let row = Arc::new(RecordRow { id: row, span_ids, data: records.data });
        _ = self.0.entry((tenant, trace)).and_compute_with(|found| {
            let mut rows = found.map(|it| it.into_value()).unwrap_or_default();
            if rows.len() == MAX_TRACE_ROWS || bytes_of(&rows) + row.bytes() > MAX_TRACE_BYTES {
                return Op::Nop;
            }
            rows.push(row);
            Op::Put(rows)
        });
    }

    /// Removes the rows whose log records name only held spans of a request, and returns them.
    pub fn take(&self, tenant: Uuid, held: &[HeldSpan]) -> RecordsOfSpans {
        let mut traces: BTreeMap<[u8; 16], HashSet<[u8; 8]>> = BTreeMap::new();
        for span in held {
            if self.0.contains_key(&(tenant, Uuid::from_bytes(span.trace_id))) {
                traces.entry(span.trace_id).or_default().insert(span.span_id);
            }
        }
        let mut found = RecordsOfSpans::default();
        for (trace_id, spans) in traces {
            let rows = self.take_rows(tenant, Uuid::from_bytes(trace_id), &spans);
            if !rows.is_empty() {
                found.0.push((trace_id, rows));
            }
        }
        found
    }

    /// Removes the rows of a trace whose log records name only these spans, and returns them.
    fn take_rows(&self, tenant: Uuid, trace: Uuid, spans: &HashSet<[u8; 8]>) -> Vec<Arc<RecordRow>> {
        let mut taken = Vec::new();
        _ = self.0.entry((tenant, trace)).and_compute_with(|found| {
            let Some(rows) = found.map(|it| it.into_value()) else { return Op::Nop };
            let kept: Vec<Arc<RecordRow>>;
            (taken, kept) = rows.into_iter().partition(|it| it.span_ids.iter().all(|id| spans.contains(id)));
            match (taken.is_empty(), kept.is_empty()) {
                (true, _) => Op::Nop,
                (false, true) => Op::Remove,
                (false, false) => Op::Put(kept),
            }
        });
        taken
    }
}

/// Rows of log records, by trace, that name only held spans of one resource of a request.
#[derive(Debug, Default)]
pub struct RecordsOfSpans(Vec<([u8; 16], Vec<Arc<RecordRow>>)>);

impl RecordsOfSpans {
    /// Returns the traces and IDs of the rows.
    pub fn rows(&self) -> Vec<(Uuid, Uuid)> {
        let rows = |(trace, rows): &([u8; 16], Vec<Arc<RecordRow>>)| {
            let trace = Uuid::from_bytes(*trace);
            rows.iter().map(|it| (trace, it.id)).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(rows).collect()
    }

    /// Drops the rows that are not `stored` any more, because their trace was removed.
    pub fn retain(&mut self, stored: &HashSet<(Uuid, Uuid)>) {
        for (trace, rows) in &mut self.0 {
            rows.retain(|it| stored.contains(&(Uuid::from_bytes(*trace), it.id)));
        }
    }

    /// Converts the held spans again, together with the log records.
    pub fn join(self, group: &mut ResourceGroup) -> JoinedTraces {
        let mut joined = JoinedTraces::default();
        let mut converted: HashMap<OtelKey, SpanDraft> = HashMap::new();
        if self.0.is_empty() {
            return joined;
        }
        let held: HashMap<OtelKey, &HeldSpan> =
            group.held.iter().map(|it| ((it.trace_id, it.span_id), it)).collect();
        for (trace_id, rows) in self.0 {
            let trace = Uuid::from_bytes(trace_id);
            // Rows that cannot be read are left to the job, which reports them.
            let Some(drafts) = convert(&rows, |id| held.get(&(trace_id, id)).copied()) else { continue };
            converted.extend(drafts.into_iter().map(|(id, draft)| ((trace_id, id), draft)));
            let rows = rows.iter().map(|row| JoinedRecords {
                id: row.id,
                spans: row.span_ids.iter().map(|it| otel_span_id(trace, *it)).collect(),
            });
            joined.0.entry(trace).or_default().extend(rows);
        }
        for span in &mut group.spans {
            if let Some(draft) = converted.remove(&(span.trace_id, span.span_id)) {
                *span = draft;
            }
        }
        joined
    }
}

/// Converts the spans that the log records of these rows name. Returns `None` if one of them cannot be converted.
fn convert<'a>(
    rows: &[Arc<RecordRow>],
    held_span: impl Fn([u8; 8]) -> Option<&'a HeldSpan>,
) -> Option<Vec<([u8; 8], SpanDraft)>> {
    let mut join = LogJoin::default();
    let mut ids = BTreeSet::new();
    for row in rows {
        join.add_records(&row.data).ok()?;
        ids.extend(row.span_ids.iter().copied());
    }
    ids.into_iter()
        .map(|id| {
            join.add_span(id, held_span(id)?.data());
            Some((id, join.convert(id).ok()??))
        })
        .collect()
}

/// Rows of log records by trace, with which the spans of a request were converted.
#[derive(Debug, Default)]
pub struct JoinedTraces(HashMap<Uuid, Vec<JoinedRecords>>);

impl JoinedTraces {
    /// Adds the rows to the chunks of their traces, so that they are marked as joined when the spans are stored.
    pub fn add_to(mut self, chunks: &mut [TraceChunk]) {
        if self.0.is_empty() {
            return;
        }
        for chunk in chunks {
            chunk.joined = self.0.remove(&chunk.trace.id).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(span: u8, bytes: usize) -> RecordData {
        RecordData { count: 1, decoded_bytes: 0, data: vec![0; bytes], span_ids: Some(vec![[span; 8]]) }
    }

    #[test]
    fn rows_are_taken_when_all_of_their_spans_are_there() {
        let (recent, tenant, trace) = (RecentRecords::default(), Uuid::from_u128(1), Uuid::from_u128(2));
        let both = RecordData { span_ids: Some(vec![[3; 8], [4; 8]]), ..records(3, 10) };
        recent.add(tenant, (trace, Uuid::from_u128(5)), records(3, 10));
        recent.add(tenant, (trace, Uuid::from_u128(6)), both);
        recent.add(tenant, (trace, Uuid::from_u128(7)), RecordData { span_ids: None, ..records(3, 10) });
        let ids = |trace: Uuid, spans: &[u8]| {
            let spans = spans.iter().map(|it| [*it; 8]).collect();
            recent.take_rows(tenant, trace, &spans).iter().map(|it| it.id.as_u128()).collect::<Vec<_>>()
        };
        assert_eq!(ids(trace, &[4]), [0; 0]);
        assert_eq!(ids(Uuid::from_u128(9), &[3, 4]), [0; 0]);
        assert_eq!(ids(trace, &[3]), [5]);
        assert_eq!(ids(trace, &[3, 4]), [6]);
        assert_eq!(ids(trace, &[3, 4]), [0; 0]);
    }

    #[test]
    fn further_log_records_do_not_prolong_the_time_of_the_first() {
        let now = Instant::now();
        let at_first = FromFirstRow.expire_after_create(&Default::default(), &Vec::new(), now);
        assert_eq!(at_first, Some(KEPT_FOR));
        let left = Some(Duration::from_secs(7));
        assert_eq!(FromFirstRow.expire_after_update(&Default::default(), &Vec::new(), now, left), left);
    }

    #[test]
    fn log_records_of_a_trace_are_bounded() {
        let (recent, tenant) = (RecentRecords::default(), Uuid::from_u128(1));
        let rows = |trace: u128| recent.0.get(&(tenant, Uuid::from_u128(trace))).map_or(0, |it| it.len());
        for row in 0..100 {
            recent.add(tenant, (Uuid::from_u128(1), Uuid::from_u128(row)), records(1, 10));
            recent.add(tenant, (Uuid::from_u128(2), Uuid::from_u128(row)), records(1, MAX_TRACE_BYTES / 4));
        }
        assert_eq!((rows(1), rows(2)), (MAX_TRACE_ROWS, 3));
    }
}
