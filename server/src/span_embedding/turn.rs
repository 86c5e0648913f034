//! One run of a worker over the spans of a job.
//!
//! It ends when the spans do, when the provider fails, or after a while: then another job goes on
//! where it came to, so that whoever else waits has a turn.

use std::time::Duration;

use entities::span;
use store::{
    DbError,
    traces::PackedSpans,
    vectors::{self, UnitVector},
};
use tokio::{task::spawn_blocking, time::Instant};
use uuid::Uuid;

use crate::{
    app::App,
    embedding::Chosen,
    error::Result,
    providers::embedding::Failure,
    span_embedding::{
        spans::{EmbedSpans, PATIENCE},
        text::{shorter, text},
    },
};

/// Traces and spans that are read at once.
const TRACES: usize = 64;
const PAGE: u64 = 64;
/// Texts in a request.
const TEXTS: usize = 64;
/// Bytes of text in a request.
const BYTES: usize = 100_000;
/// After how long a turn that has got on ends.
const TURN: Duration = Duration::from_secs(60);

/// How a turn ended.
pub enum Ended {
    /// Nothing is left to do.
    Done,
    /// This is left to do.
    Later(EmbedSpans),
    /// The server goes down.
    Stopping,
    /// The provider failed.
    Failed(Failure),
}

/// One run over the spans of a job.
pub struct Turn<'a> {
    app: &'a App,
    tenant: Uuid,
    chosen: &'a Chosen,
    /// Texts in a request; fewer once the provider took two halves and not the whole.
    texts: usize,
    /// The provider has answered as it should.
    works: bool,
    began: Instant,
    /// The last span that was embedded, or refused for good.
    done: Option<Place>,
}

/// A place in the order of spans: trace, span.
pub type Place = (Uuid, Uuid);

/// A span and its text.
type Item = (span::Model, String);

impl<'a> Turn<'a> {
    /// A turn that begins now.
    pub fn of(app: &'a App, tenant: Uuid, chosen: &'a Chosen) -> Self {
        Self { app, tenant, chosen, texts: TEXTS, works: false, began: Instant::now(), done: None }
    }

    /// Embeds the spans of a job. Answers how that ended, and whether the provider has answered as it
    /// should.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn run(mut self, job: EmbedSpans) -> Result<(Ended, bool)> {
        let ended = self.work(job).await?;
        Ok((ended, self.works))
    }

    async fn work(&mut self, job: EmbedSpans) -> Result<Ended> {
        let EmbedSpans { since, traces, mut after, .. } = job;
        for (number, some) in traces.chunks(TRACES).enumerate() {
            let mut waiting = Vec::new();
            // Where nothing before is left to do.
            let mut behind = after;
            loop {
                let (last, items) = self.read(some, since, after).await?;
                waiting.extend(items);
                self.done = None;
                let ended = self.send(&mut waiting, last.is_none()).await?;
                behind = self.done.or(behind);
                if let Some(ended) = ended {
                    return Ok(ended);
                }
                if self.is_over() {
                    let traces = traces[number * TRACES..].to_vec();
                    // About as many as are left; what counts is that no other job is taken in.
                    return Ok(Ended::Later(EmbedSpans { since, spans: job.spans, traces, after: behind }));
                }
                after = last;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(Ended::Done)
    }

    /// Whether it is others' turn. Each turn gets on, however slow the provider is.
    fn is_over(&self) -> bool {
        self.done.is_some() && self.began.elapsed() >= TURN
    }

    /// Spans without a vector after a place, and the place where to go on, if anywhere.
    async fn read(
        &self,
        traces: &[Uuid],
        since: i64,
        after: Option<Place>,
    ) -> Result<(Option<Place>, Vec<Item>)> {
        let db = self.app.db.primary();
        let page = vectors::missing(&db, self.tenant, traces, since, after, PAGE).await?;
        let is_full = u64::try_from(page.len()).is_ok_and(|it| it == PAGE);
        let last = page.last().filter(|_| is_full).map(|it| (it.trace_id, it.id));
        let mut items = Vec::with_capacity(page.len());
        // One body at a time: a few packed bytes can be many megabytes.
        for spans in page.chunk_by(|a, b| a.body_id == b.body_id) {
            let packed = PackedSpans::of(&db, self.tenant, spans).await?;
            let spans = spans.to_vec();
            let read = spawn_blocking(move || texts(spans, packed)).await;
            items.extend(read.map_err(anyhow::Error::from)??);
        }
        Ok((last, items))
    }

    /// Has what waits embedded, in full requests or to the last, and stores it. Answers how the turn
    /// ended, if it has to.
    async fn send(&mut self, waiting: &mut Vec<Item>, to_the_last: bool) -> Result<Option<Ended>> {
        while let Some(batch) = batch(waiting, self.texts, to_the_last) {
            let (vectors, failure) = self.embed(batch).await;
            if !vectors.is_empty() {
                let model = &self.chosen.endpoint.model;
                let new = vectors::insert(&self.app.db, self.tenant, model, &vectors).await?;
                self.app.telemetry.embedding.spans.inc_by(u64::try_from(new).unwrap_or_default());
            }
            if self.app.is_stopping() {
                return Ok(Some(Ended::Stopping));
            }
            if let Some(failure) = failure {
                return Ok(Some(Ended::Failed(failure)));
            }
            if self.is_over() {
                break;
            }
        }
        Ok(None)
    }

    /// The vectors of these spans, but of those whose text is refused, and what went wrong. A batch
    /// that is refused is asked for in halves, so that one text costs the others nothing.
    async fn embed(&mut self, batch: Vec<Item>) -> (Vec<(span::Model, UnitVector)>, Option<Failure>) {
        let mut embedded = Vec::with_capacity(batch.len());
        let mut waiting = vec![batch];
        while let Some(mut batch) = waiting.pop() {
            let last = batch.last().map(|it| (it.0.trace_id, it.0.id));
            let texts: Vec<&str> = batch.iter().map(|it| it.1.as_str()).collect();
            match self.ask(&texts).await {
                Ok(vectors) => {
                    self.works = true;
                    embedded.extend(batch.into_iter().map(|it| it.0).zip(vectors));
                    self.done = last;
                }
                Err(Failure::Unfit(_)) if batch.len() > 1 => {
                    let half = batch.len().div_ceil(2);
                    self.texts = self.texts.min(half);
                    let rest = batch.split_off(half);
                    waiting.extend([rest, batch]);
                }
                Err(Failure::Unfit(why)) => match self.refused(batch, why).await {
                    Ok(Some(again)) => {
                        waiting.push(again);
                        continue;
                    }
                    Ok(None) => self.done = last,
                    Err(failure) => return (embedded, Some(failure)),
                },
                Err(failure) => return (embedded, Some(failure)),
            }
            if self.is_over() {
                break;
            }
        }
        (embedded, None)
    }

    /// What to do about a text that is refused alone: it is asked for again while it can be made
    /// shorter. A provider that refuses any text whatever is one that has to be set up anew.
    async fn refused(&mut self, mut alone: Vec<Item>, why: String) -> Result<Option<Vec<Item>>, Failure> {
        if !self.works {
            match self.ask(&["hello"]).await {
                Ok(_) => self.works = true,
                Err(Failure::Unfit(why)) => return Err(Failure::Denied(why)),
                Err(failure) => return Err(failure),
            }
        }
        let shorter = alone.pop().and_then(|(span, text)| Some((span, shorter(&text)?)));
        if shorter.is_none() {
            tracing::debug!(tenant = %self.tenant, why, "the embedding provider refuses a span");
            self.app.telemetry.embedding.refused.inc();
        }
        Ok(shorter.map(|it| vec![it]))
    }

    async fn ask(&self, texts: &[&str]) -> Result<Vec<UnitVector>, Failure> {
        let asking = self.app.embedder.ask(&self.chosen.endpoint, texts, PATIENCE);
        let stopping = self.app.stopping();
        stopping
            .run_until_cancelled(asking)
            .await
            .unwrap_or_else(|| Err(Failure::passing("the server stops")))
    }
}

/// The spans of which there is a text, and the texts.
fn texts(spans: Vec<span::Model>, mut packed: PackedSpans) -> Result<Vec<Item>, DbError> {
    let mut items = Vec::with_capacity(spans.len());
    for span in spans {
        let texts = packed.take(&span)?;
        items.extend(text(&span, &texts).map(|it| (span, it)));
    }
    Ok(items)
}

/// Takes a full request's texts out of those that wait, or all of them if no more come.
fn batch(waiting: &mut Vec<Item>, texts: usize, is_last: bool) -> Option<Vec<Item>> {
    let mut bytes = 0;
    let fits = waiting.iter().take(texts).take_while(|it| {
        bytes += it.1.len();
        bytes <= BYTES
    });
    let fits = fits.count().max(1).min(waiting.len());
    let is_full = fits == texts || fits < waiting.len();
    (fits > 0 && (is_full || is_last)).then(|| {
        let rest = waiting.split_off(fits);
        std::mem::replace(waiting, rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(length: usize) -> Item {
        let span = span::Model {
            tenant_id: Uuid::nil(),
            trace_id: Uuid::nil(),
            id: Uuid::nil(),
            parent_id: None,
            name: String::new(),
            kind: String::new(),
            model: None,
            started_at: 0,
            ended_at: None,
            latency_ms: None,
            error: None,
            failure: None,
            prompt_tokens: None,
            completion_tokens: None,
            cost: None,
            counted: false,
            cost_counted: false,
            response_hash: None,
            otel_span_id: None,
            hints: None,
            body_id: None,
            body_index: 0,
            created_at: 0,
            cached_input_tokens: None,
            cache_write_tokens: None,
            reasoning_tokens: None,
            missing_texts: None,
        };
        (span, "x".repeat(length))
    }

    /// The sizes of the batches that these lengths make.
    fn sizes(lengths: &[usize], texts: usize, is_last: bool) -> (Vec<usize>, usize) {
        let mut waiting: Vec<Item> = lengths.iter().map(|it| item(*it)).collect();
        let mut sizes = Vec::new();
        while let Some(batch) = batch(&mut waiting, texts, is_last) {
            sizes.push(batch.len());
        }
        (sizes, waiting.len())
    }

    #[test]
    fn requests_are_full_and_bounded() {
        assert_eq!(sizes(&[1; 5], 2, false), (vec![2, 2], 1));
        assert_eq!(sizes(&[1; 5], 2, true), (vec![2, 2, 1], 0));
        assert_eq!(sizes(&[], 2, true), (vec![], 0));
        let half = BYTES / 2;
        assert_eq!(sizes(&[half, half, 1, 3 * half, 1], 9, false), (vec![2, 1, 1], 1));
        assert_eq!(sizes(&[half, half, 1, 3 * half, 1], 9, true), (vec![2, 1, 1, 1], 0));
    }
}
