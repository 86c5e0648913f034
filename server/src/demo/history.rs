//! The history: traces of the last days, stored when the demo starts.

use std::sync::Arc;

use api::ingest::TraceItem;
use entities::trace;
use fastrand::Rng;
use store::traces::TraceChunk;
use uuid::Uuid;

use super::{
    DemoTenant, evaluations,
    feedback::DemoFeedback,
    incident::{self, INCIDENT_TRACES},
    traces::{UserVisit, index_build},
};
use crate::{
    app::App,
    ingest::{options::IngestOptions, prices::PriceBook, spans::Receipt, trace_item},
};

/// Number of traces at the start.
const TRACE_COUNT: usize = 2_400;
/// Number of traces that are stored in one batch.
const BATCH_SIZE: usize = 200;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Duration of the history in microseconds.
const HISTORY_MICROS: i64 = 7 * DAY;

/// The stored history.
pub(super) struct History {
    /// The number of traces.
    pub(super) trace_count: usize,
    /// The feedback to be given on them.
    pub(super) feedback: Vec<DemoFeedback>,
    /// The trace that was stored last.
    pub(super) last_trace: Uuid,
}

/// Stores the history.
pub(super) async fn fill(app: &App, tenant: &DemoTenant, rng: &mut Rng) -> anyhow::Result<History> {
    let now = app.clock.now();
    let mut writer = TraceWriter::new(app, tenant).await?;
    let long = [(2_400, 9 * 3_600), (2_300, 33 * 3_600), (640, 57 * 3_600)];
    for (pages, seconds) in long {
        writer.write(1, index_build(rng, now - seconds * SECOND, pages)).await?;
    }
    // Embedding thousands of imported spans would take long and would not improve a search.
    writer.embeds_spans = false;
    writer.flush().await?;
    writer.embeds_spans = true;
    for item in incident::traces(rng, now) {
        writer.write(0, item).await?;
    }
    let mut stored_count = long.len() + INCIDENT_TRACES;
    while stored_count < TRACE_COUNT {
        let visit = UserVisit::draw(rng);
        // Recent days have more traces than earlier ones.
        let mut at = now - (rng.f64().powf(1.7) * HISTORY_MICROS as f64) as i64 - 90 * SECOND;
        for _ in 0..visit.turns {
            if at > now - 90 * SECOND || stored_count == TRACE_COUNT {
                break;
            }
            writer.write(visit.project, visit.next_trace(rng, at, None)).await?;
            stored_count += 1;
            at += rng.i64(15..240) * SECOND;
        }
    }
    writer.flush().await?;
    for batch in writer.stored.chunks(BATCH_SIZE) {
        evaluations::store_evaluations(app, rng, batch).await?;
    }
    let feedback = writer.stored.iter().filter_map(|it| DemoFeedback::draw(rng, it)).collect();
    let last_trace = writer.stored.last().map_or(Uuid::nil(), |it| it.id);
    Ok(History { trace_count: stored_count, feedback, last_trace })
}

/// Stores items in batches, through the ordinary ingest path.
pub(super) struct TraceWriter<'a> {
    app: &'a App,
    tenant: Uuid,
    projects: Vec<Uuid>,
    prices: Arc<PriceBook>,
    chunks: Vec<TraceChunk>,
    /// Whether spans are embedded.
    embeds_spans: bool,
    /// The rows of the traces stored so far.
    pub(super) stored: Vec<trace::Model>,
}

impl<'a> TraceWriter<'a> {
    pub(super) async fn new(app: &'a App, tenant: &DemoTenant) -> anyhow::Result<Self> {
        let prices = app.access_cache.price_book(tenant.tenant_id).await?;
        Ok(Self {
            app,
            tenant: tenant.tenant_id,
            projects: tenant.projects.clone(),
            prices,
            chunks: Vec::new(),
            embeds_spans: true,
            stored: Vec::new(),
        })
    }

    pub(super) async fn write(&mut self, project: usize, item: TraceItem) -> anyhow::Result<()> {
        let raw = serde_json::to_vec(&item)?;
        let receipt =
            Receipt { tenant_id: self.tenant, project_id: self.projects[project], now: self.app.clock.now() };
        self.chunks.push(trace_item::to_chunk(item, &raw, receipt, &self.prices, None)?);
        if self.chunks.len() >= BATCH_SIZE { self.flush().await } else { Ok(()) }
    }

    pub(super) async fn flush(&mut self) -> anyhow::Result<()> {
        let options = IngestOptions { embeds_spans: self.embeds_spans, ..IngestOptions::default() };
        let stored = self.app.writer.store(std::mem::take(&mut self.chunks), options, None).await?;
        self.stored.extend(stored.into_iter().map(|it| it.0.trace));
        Ok(())
    }
}
