//! The history: traces of the last days, stored when the demo starts.

use std::sync::Arc;

use api::ingest::TraceItem;
use entities::trace;
use fastrand::Rng;
use store::traces::TraceChunk;
use uuid::Uuid;

use super::{
    Cast,
    stories::{Visit, nightly},
    verdicts,
    voices::Voice,
};
use crate::{
    app::App,
    ingest::{item, prices::PriceBook, spans::Receipt, terms::Terms},
};

/// Number of traces at the start.
const TRACES: usize = 2_400;
/// Number of traces that are stored in one batch.
const BATCH: usize = 200;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Duration of the history in microseconds.
const SPAN: i64 = 7 * DAY;

/// Stores the history; returns the number of traces and the feedback to be given on them.
pub(super) async fn fill(app: &App, cast: &Cast, rng: &mut Rng) -> anyhow::Result<(usize, Vec<Voice>)> {
    let now = app.clock.now();
    let mut scribe = Scribe::new(app, cast).await?;
    let long = [(2_400, 9 * 3_600), (2_300, 33 * 3_600), (640, 57 * 3_600)];
    for (pages, seconds) in long {
        scribe.write(1, nightly(rng, now - seconds * SECOND, pages)).await?;
    }
    // Vectors of thousands of spans for the pages of an import would not help a search.
    scribe.embeds = false;
    scribe.flush().await?;
    scribe.embeds = true;
    let mut told = long.len();
    while told < TRACES {
        let visit = Visit::draw(rng);
        // Recent days have more traces than earlier ones.
        let mut at = now - (rng.f64().powf(1.7) * SPAN as f64) as i64 - 90 * SECOND;
        for _ in 0..visit.turns {
            if at > now - 90 * SECOND || told == TRACES {
                break;
            }
            scribe.write(visit.project, visit.tell(rng, at)).await?;
            told += 1;
            at += rng.i64(15..240) * SECOND;
        }
    }
    scribe.flush().await?;
    for some in scribe.stored.chunks(BATCH) {
        verdicts::judge(app, rng, some).await?;
    }
    let voices = scribe.stored.iter().filter_map(|it| Voice::draw(rng, it)).collect();
    Ok((told, voices))
}

/// Stores items in batches, through the ordinary ingest path.
pub(super) struct Scribe<'a> {
    app: &'a App,
    tenant: Uuid,
    projects: Vec<Uuid>,
    prices: Arc<PriceBook>,
    parts: Vec<TraceChunk>,
    /// Whether spans are embedded.
    embeds: bool,
    /// The rows of the traces stored so far.
    pub(super) stored: Vec<trace::Model>,
}

impl<'a> Scribe<'a> {
    pub(super) async fn new(app: &'a App, cast: &Cast) -> anyhow::Result<Self> {
        let prices = app.known.price_book(cast.tenant).await?;
        Ok(Self {
            app,
            tenant: cast.tenant,
            projects: cast.projects.clone(),
            prices,
            parts: Vec::new(),
            embeds: true,
            stored: Vec::new(),
        })
    }

    pub(super) async fn write(&mut self, project: usize, item: TraceItem) -> anyhow::Result<()> {
        let raw = serde_json::to_vec(&item)?;
        let receipt =
            Receipt { tenant_id: self.tenant, project_id: self.projects[project], now: self.app.clock.now() };
        self.parts.push(item::part(item, &raw, receipt, &self.prices)?);
        if self.parts.len() >= BATCH { self.flush().await } else { Ok(()) }
    }

    pub(super) async fn flush(&mut self) -> anyhow::Result<()> {
        let terms = Terms { embeds: self.embeds, ..Terms::default() };
        let stored = self.app.writer.store(std::mem::take(&mut self.parts), terms, None).await?;
        self.stored.extend(stored.into_iter().map(|it| it.0.trace));
        Ok(())
    }
}
