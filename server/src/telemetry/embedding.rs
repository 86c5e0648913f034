//! Metrics of embedding.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Upper bounds of the duration buckets, in seconds.
const DURATION_BUCKETS: [f64; 6] = [0.025, 0.1, 0.25, 1.0, 5.0, 20.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct EmbeddingLabels {
    outcome: &'static str,
}

/// Metrics of embedding.
#[derive(Debug)]
pub struct EmbeddingMetrics {
    /// Spans that were embedded.
    pub spans: Counter,
    /// Spans that the provider rejected individually.
    pub rejected: Counter,
    requests: Family<EmbeddingLabels, Counter>,
    seconds: Histogram,
}

impl EmbeddingMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let embedding = Self {
            spans: Counter::default(),
            rejected: Counter::default(),
            requests: Family::default(),
            seconds: Histogram::new(DURATION_BUCKETS),
        };
        let text = "Spans embedded in the background";
        registry.register("loupe_embedding_spans", text, embedding.spans.clone());
        let text = "Spans rejected by embedding providers";
        registry.register("loupe_embedding_spans_refused", text, embedding.rejected.clone());
        let text = "Requests to embedding providers";
        registry.register("loupe_embedding_requests", text, embedding.requests.clone());
        let text = "Duration of requests to embedding providers";
        let seconds = embedding.seconds.clone();
        registry.register_with_unit("loupe_embedding_request_duration", text, Unit::Seconds, seconds);
        embedding
    }

    /// Counts a request with its outcome and duration.
    pub fn count_request(&self, outcome: &'static str, took: Duration) {
        self.requests.get_or_create_owned(&EmbeddingLabels { outcome }).inc();
        self.seconds.observe(took.as_secs_f64());
    }
}
