//! The server's metrics for its operator: counters, gauges and histograms, served at `GET /metrics`.
//! Their cost per request is a few atomic additions.
//!
//! **Invariant:** no tenant, key or ID is named. Metrics show how the server performs, not which tenants it
//! serves.

mod embedding;
pub mod http;
pub mod ingest;
mod judge;
pub mod process;
mod work;

use std::fmt;

use prometheus_client::{encoding::text, metrics::info::Info, registry::Registry};
use queue::WorkerPool;
use store::Db;

/// The metrics of a server process.
#[derive(Debug)]
pub struct Telemetry {
    /// Requests and connections.
    pub http: http::HttpMetrics,
    /// Ingest.
    pub ingest: ingest::IngestMetrics,
    /// Embedding.
    pub embedding: embedding::EmbeddingMetrics,
    /// Judges.
    pub judge: judge::JudgeMetrics,
    /// Jobs, and the connections to the database.
    pub jobs: work::JobMetrics,
    registry: Registry,
}

impl Telemetry {
    /// Creates the metrics of a server with these endpoints and worker pools, which started at `now` (microseconds).
    pub fn new(
        endpoints: impl Iterator<Item = http::EndpointName>,
        pools: Vec<&'static WorkerPool>,
        now: i64,
    ) -> Self {
        let mut registry = Registry::default();
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("loupe_build", "The version that runs", version);
        registry.register_collector(Box::new(process::ProcessCollector::started_at(now)));
        Self {
            http: http::HttpMetrics::new(&mut registry, endpoints),
            ingest: ingest::IngestMetrics::new(&mut registry),
            embedding: embedding::EmbeddingMetrics::new(&mut registry),
            judge: judge::JudgeMetrics::new(&mut registry),
            jobs: work::JobMetrics::new(&mut registry, pools),
            registry,
        }
    }

    /// Returns all metrics in the text format of OpenMetrics 1.0.
    ///
    /// # Errors
    ///
    /// Fails when a metric cannot be encoded, which does not happen.
    pub async fn render(&self, db: &Db, now: i64) -> Result<String, fmt::Error> {
        self.jobs.measure(db, now).await;
        let mut page = String::with_capacity(16 * 1024);
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}
