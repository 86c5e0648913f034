//! Metrics of ingest.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Upper bounds of the commit duration buckets, in seconds.
const DURATION_BUCKETS: [f64; 6] = [0.002, 0.01, 0.05, 0.2, 1.0, 5.0];
/// Upper bounds of the group size buckets, in requests.
const GROUP_SIZE_BUCKETS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct IngestLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct IngestErrorLabels {
    code: &'static str,
}

/// Metrics of ingest.
#[derive(Debug)]
pub struct IngestMetrics {
    /// Traces stored for the first time.
    pub new: Counter,
    /// Traces merged into stored ones.
    pub merged: Counter,
    /// Items whose trace was stored already.
    pub duplicate: Counter,
    /// Spans committed, including known ones.
    pub spans: Counter,
    /// Bytes of the committed request bodies, decompressed.
    pub bytes: Counter,
    /// Requests that wait for a commit.
    pub waiting: Gauge,
    refused: Family<IngestErrorLabels, Counter>,
    commit_seconds: Histogram,
    commit_requests: Histogram,
    commits_failed: Counter,
}

impl IngestMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let traces = Family::<IngestLabels, Counter>::default();
        let outcome = |outcome| traces.get_or_create_owned(&IngestLabels { outcome });
        let ingest = Self {
            new: outcome("new"),
            merged: outcome("merged"),
            duplicate: outcome("duplicate"),
            spans: Counter::default(),
            bytes: Counter::default(),
            waiting: Gauge::default(),
            refused: Family::default(),
            commit_seconds: Histogram::new(DURATION_BUCKETS),
            commit_requests: Histogram::new(GROUP_SIZE_BUCKETS),
            commits_failed: Counter::default(),
        };
        let text = "Traces committed: new, merged into a stored one, or duplicate";
        registry.register("loupe_ingest_traces", text, traces);
        registry.register("loupe_ingest_spans", "Spans committed", ingest.spans.clone());
        let text = "Size of the committed request bodies, decompressed";
        registry.register_with_unit("loupe_ingest_body", text, Unit::Bytes, ingest.bytes.clone());
        let text = "Items and spans rejected within accepted requests, by error code";
        registry.register("loupe_ingest_refused", text, ingest.refused.clone());
        let text = "Ingest requests that wait for a commit";
        registry.register("loupe_ingest_requests_waiting", text, ingest.waiting.clone());
        let text = "Duration of commits of ingested data";
        registry.register_with_unit(
            "loupe_commit_duration",
            text,
            Unit::Seconds,
            ingest.commit_seconds.clone(),
        );
        registry.register("loupe_commit_requests", "Requests per commit", ingest.commit_requests.clone());
        registry.register("loupe_commits_failed", "Failed commits", ingest.commits_failed.clone());
        ingest
    }

    /// Counts `n` rejected items or spans.
    pub fn count_rejected(&self, code: &'static str, n: usize) {
        if n > 0 {
            self.refused.get_or_create_owned(&IngestErrorLabels { code }).inc_by(count(n));
        }
    }

    /// Counts the body of a stored request.
    pub fn count_body(&self, bytes: usize) {
        self.bytes.inc_by(count(bytes));
    }

    /// Counts a commit with its number of requests and duration.
    pub fn count_commit(&self, requests: usize, took: Duration, succeeded: bool) {
        self.commit_seconds.observe(took.as_secs_f64());
        self.commit_requests.observe(f64::from(u32::try_from(requests).unwrap_or(u32::MAX)));
        if !succeeded {
            self.commits_failed.inc();
        }
    }
}

/// Converts a length to a count.
pub fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
