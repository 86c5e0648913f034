//! Figures of what is taken in and committed.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Upper bounds of the durations of commits that are told apart, seconds.
const SECONDS: [f64; 6] = [0.002, 0.01, 0.05, 0.2, 1.0, 5.0];
/// Upper bounds of the sizes of groups that are told apart, requests.
const REQUESTS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Refused {
    code: &'static str,
}

/// Figures of what is taken in and committed.
#[derive(Debug)]
pub struct Ingest {
    /// Traces of which nothing was known.
    pub new: Counter,
    /// Traces of which something was known already.
    pub merged: Counter,
    /// Items whose trace was stored already.
    pub duplicate: Counter,
    /// Spans committed, those that were known included.
    pub spans: Counter,
    /// Bytes of the bodies whose traces were committed, unpacked.
    pub bytes: Counter,
    /// Requests that wait for a commit.
    pub waiting: Gauge,
    refused: Family<Refused, Counter>,
    commit_seconds: Histogram,
    commit_requests: Histogram,
    commits_failed: Counter,
}

impl Ingest {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let traces = Family::<Outcome, Counter>::default();
        let outcome = |outcome| traces.get_or_create_owned(&Outcome { outcome });
        let ingest = Self {
            new: outcome("new"),
            merged: outcome("merged"),
            duplicate: outcome("duplicate"),
            spans: Counter::default(),
            bytes: Counter::default(),
            waiting: Gauge::default(),
            refused: Family::default(),
            commit_seconds: Histogram::new(SECONDS),
            commit_requests: Histogram::new(REQUESTS),
            commits_failed: Counter::default(),
        };
        let text = "Traces committed: new, merged into a stored one, or known already";
        registry.register("loupe_ingest_traces", text, traces);
        registry.register("loupe_ingest_spans", "Spans committed", ingest.spans.clone());
        let text = "Size of the bodies that were committed, unpacked";
        registry.register_with_unit("loupe_ingest_body", text, Unit::Bytes, ingest.bytes.clone());
        let text = "Items and spans refused within requests that were accepted, by error code";
        registry.register("loupe_ingest_refused", text, ingest.refused.clone());
        let text = "Ingest requests that wait for a commit";
        registry.register("loupe_ingest_requests_waiting", text, ingest.waiting.clone());
        let text = "Time that commits of ingested data took";
        registry.register_with_unit(
            "loupe_commit_duration",
            text,
            Unit::Seconds,
            ingest.commit_seconds.clone(),
        );
        registry.register("loupe_commit_requests", "Requests in a commit", ingest.commit_requests.clone());
        registry.register("loupe_commits_failed", "Commits that failed", ingest.commits_failed.clone());
        ingest
    }

    /// Counts `n` items or spans that were refused, each for this reason.
    pub fn refuse(&self, code: &'static str, n: usize) {
        if n > 0 {
            self.refused.get_or_create_owned(&Refused { code }).inc_by(count(n));
        }
    }

    /// Counts the body of a request that was stored.
    pub fn stored(&self, bytes: usize) {
        self.bytes.inc_by(count(bytes));
    }

    /// Counts a commit of so many requests, and how long it took.
    pub fn committed(&self, requests: usize, took: Duration, succeeded: bool) {
        self.commit_seconds.observe(took.as_secs_f64());
        self.commit_requests.observe(f64::from(u32::try_from(requests).unwrap_or(u32::MAX)));
        if !succeeded {
            self.commits_failed.inc();
        }
    }
}

/// A length as a count.
pub fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
