//! One run of a worker over the spans of a job.
//!
//! It ends when all spans are embedded, when the provider fails, or after a while: then another job
//! continues, so that other jobs can run.

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
    embedding::SelectedProvider,
    error::Result,
    providers::embedding::EmbeddingFailure,
    span_embedding::{
        embed_spans::{EmbedSpans, REQUEST_TIMEOUT},
        text::{shorter, text},
    },
};

/// Number of traces, and of spans, read at once.
const TRACES_PER_READ: usize = 64;
const SPANS_PER_READ: u64 = 64;
/// Maximum number of texts in a request.
const MAX_TEXTS_PER_REQUEST: usize = 64;
/// Maximum size of the texts in a request, in bytes.
const MAX_REQUEST_BYTES: usize = 100_000;
/// Time after which a run that has made progress ends.
const MAX_RUN_TIME: Duration = Duration::from_secs(60);

/// Why a run ended.
pub enum RunEnd {
    /// All spans are embedded.
    Done,
    /// The remaining spans.
    Later(EmbedSpans),
    /// The server is stopping.
    Stopping,
    /// The provider failed.
    Failed(EmbeddingFailure),
}

/// One run over the spans of a job.
pub struct EmbeddingRun<'a> {
    app: &'a App,
    tenant: Uuid,
    selected: &'a SelectedProvider,
    /// Number of texts in a request; smaller after the provider accepted two halves but not the whole.
    texts: usize,
    /// Whether the provider has returned a valid response.
    provider_works: bool,
    began: Instant,
    /// The last span that was embedded or skipped.
    last_done: Option<SpanPosition>,
}

/// A position in the order of spans: trace, span.
pub type SpanPosition = (Uuid, Uuid);

/// A span and its text.
type SpanText = (span::Model, String);

impl<'a> EmbeddingRun<'a> {
    /// Starts a run.
    pub fn new(app: &'a App, tenant: Uuid, selected: &'a SelectedProvider) -> Self {
        Self {
            app,
            tenant,
            selected,
            texts: MAX_TEXTS_PER_REQUEST,
            provider_works: false,
            began: Instant::now(),
            last_done: None,
        }
    }

    /// Embeds the spans of a job. Returns why the run ended, and whether the provider has returned a
    /// valid response.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn run(mut self, job: EmbedSpans) -> Result<(RunEnd, bool)> {
        let end = self.work(job).await?;
        Ok((end, self.provider_works))
    }

    async fn work(&mut self, job: EmbedSpans) -> Result<RunEnd> {
        let EmbedSpans { since, traces, mut after, .. } = job;
        for (number, chunk) in traces.chunks(TRACES_PER_READ).enumerate() {
            let mut waiting = Vec::new();
            // The position before which all spans are embedded.
            let mut all_done_before = after;
            loop {
                let (last, items) = self.read(chunk, since, after).await?;
                waiting.extend(items);
                self.last_done = None;
                let end = self.send(&mut waiting, last.is_none()).await?;
                all_done_before = self.last_done.or(all_done_before);
                if let Some(end) = end {
                    return Ok(end);
                }
                if self.must_end() {
                    let traces = traces[number * TRACES_PER_READ..].to_vec();
                    // An approximate number, large enough that no other job is merged.
                    return Ok(RunEnd::Later(EmbedSpans {
                        since,
                        spans: job.spans,
                        traces,
                        after: all_done_before,
                    }));
                }
                after = last;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(RunEnd::Done)
    }

    /// Whether the run must end. Each run makes progress first, even if the provider is slow.
    fn must_end(&self) -> bool {
        self.last_done.is_some() && self.began.elapsed() >= MAX_RUN_TIME
    }

    /// Returns the spans without a vector after a position, and the position to continue at, if any.
    async fn read(
        &self,
        traces: &[Uuid],
        since: i64,
        after: Option<SpanPosition>,
    ) -> Result<(Option<SpanPosition>, Vec<SpanText>)> {
        let db = self.app.db.primary();
        let page = vectors::missing(&db, self.tenant, traces, since, after, SPANS_PER_READ).await?;
        let is_full = u64::try_from(page.len()).is_ok_and(|it| it == SPANS_PER_READ);
        let last = page.last().filter(|_| is_full).map(|it| (it.trace_id, it.id));
        let mut items = Vec::with_capacity(page.len());
        // One text block at a time: a few compressed bytes may be many megabytes.
        for spans in page.chunk_by(|a, b| a.body_id == b.body_id) {
            let packed = PackedSpans::of(&db, self.tenant, spans).await?;
            let spans = spans.to_vec();
            let read = spawn_blocking(move || texts(spans, packed)).await;
            items.extend(read.map_err(anyhow::Error::from)??);
        }
        Ok((last, items))
    }

    /// Embeds and stores waiting spans, in full requests or all of them. Returns why the run must end,
    /// if it must.
    async fn send(&mut self, waiting: &mut Vec<SpanText>, is_last: bool) -> Result<Option<RunEnd>> {
        while let Some(batch) = batch(waiting, self.texts, is_last) {
            let (vectors, failure) = self.embed(batch).await;
            if !vectors.is_empty() {
                let model = &self.selected.endpoint.model;
                let new = vectors::insert(&self.app.db, self.tenant, model, &vectors).await?;
                self.app.telemetry.embedding.spans.inc_by(u64::try_from(new).unwrap_or_default());
            }
            if self.app.is_stopping() {
                return Ok(Some(RunEnd::Stopping));
            }
            if let Some(failure) = failure {
                return Ok(Some(RunEnd::Failed(failure)));
            }
            if self.must_end() {
                break;
            }
        }
        Ok(None)
    }

    /// Returns the vectors of these spans, except those whose text is rejected, and the failure, if
    /// any. A rejected batch is split in halves, so that one text does not affect the others.
    async fn embed(
        &mut self,
        batch: Vec<SpanText>,
    ) -> (Vec<(span::Model, UnitVector)>, Option<EmbeddingFailure>) {
        let mut embedded = Vec::with_capacity(batch.len());
        let mut waiting = vec![batch];
        while let Some(mut batch) = waiting.pop() {
            let last = batch.last().map(|it| (it.0.trace_id, it.0.id));
            let texts: Vec<&str> = batch.iter().map(|it| it.1.as_str()).collect();
            match self.request_vectors(&texts).await {
                Ok(vectors) => {
                    self.provider_works = true;
                    embedded.extend(batch.into_iter().map(|it| it.0).zip(vectors));
                    self.last_done = last;
                }
                Err(EmbeddingFailure::TextRejected(_)) if batch.len() > 1 => {
                    let half = batch.len().div_ceil(2);
                    self.texts = self.texts.min(half);
                    let rest = batch.split_off(half);
                    waiting.extend([rest, batch]);
                }
                Err(EmbeddingFailure::TextRejected(why)) => match self.retry_shortened(batch, why).await {
                    Ok(Some(again)) => {
                        waiting.push(again);
                        continue;
                    }
                    Ok(None) => self.last_done = last,
                    Err(failure) => return (embedded, Some(failure)),
                },
                Err(failure) => return (embedded, Some(failure)),
            }
            if self.must_end() {
                break;
            }
        }
        (embedded, None)
    }

    /// Handles a text that is rejected alone: it is retried while it can be shortened. A provider that
    /// rejects any text is misconfigured.
    async fn retry_shortened(
        &mut self,
        mut single: Vec<SpanText>,
        why: String,
    ) -> Result<Option<Vec<SpanText>>, EmbeddingFailure> {
        if !self.provider_works {
            match self.request_vectors(&["hello"]).await {
                Ok(_) => self.provider_works = true,
                Err(EmbeddingFailure::TextRejected(why)) => return Err(EmbeddingFailure::Denied(why)),
                Err(failure) => return Err(failure),
            }
        }
        let shorter = single.pop().and_then(|(span, text)| Some((span, shorter(&text)?)));
        if shorter.is_none() {
            tracing::debug!(tenant = %self.tenant, why, "the embedding provider rejects a span");
            self.app.telemetry.embedding.rejected.inc();
        }
        Ok(shorter.map(|it| vec![it]))
    }

    async fn request_vectors(&self, texts: &[&str]) -> Result<Vec<UnitVector>, EmbeddingFailure> {
        let request = self.app.embedder.embed(&self.selected.endpoint, texts, REQUEST_TIMEOUT);
        let stopping = self.app.stopping();
        stopping
            .run_until_cancelled(request)
            .await
            .unwrap_or_else(|| Err(EmbeddingFailure::temporary("the server stops")))
    }
}

/// Returns the spans that have a text, with the texts.
fn texts(spans: Vec<span::Model>, mut packed: PackedSpans) -> Result<Vec<SpanText>, DbError> {
    let mut items = Vec::with_capacity(spans.len());
    for span in spans {
        let texts = packed.take(&span)?;
        items.extend(text(&span, &texts).map(|it| (span, it)));
    }
    Ok(items)
}

/// Takes the texts of a full request, or all of them if no more follow.
fn batch(waiting: &mut Vec<SpanText>, texts: usize, is_last: bool) -> Option<Vec<SpanText>> {
    let mut bytes = 0;
    let fits = waiting.iter().take(texts).take_while(|it| {
        bytes += it.1.len();
        bytes <= MAX_REQUEST_BYTES
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

    fn item(length: usize) -> SpanText {
        let span = span::Model {
            tenant_id: Uuid::nil(),
            trace_key: 0,
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

    /// Returns the sizes of the batches for these lengths.
    fn sizes(lengths: &[usize], texts: usize, is_last: bool) -> (Vec<usize>, usize) {
        let mut waiting: Vec<SpanText> = lengths.iter().map(|it| item(*it)).collect();
        let mut sizes = Vec::new();
        while let Some(batch) = batch(&mut waiting, texts, is_last) {
            sizes.push(batch.len());
        }
        (sizes, waiting.len())
    }

    #[test]
    fn embedding_requests_are_full_and_bounded() {
        assert_eq!(sizes(&[1; 5], 2, false), (vec![2, 2], 1));
        assert_eq!(sizes(&[1; 5], 2, true), (vec![2, 2, 1], 0));
        assert_eq!(sizes(&[], 2, true), (vec![], 0));
        let half = MAX_REQUEST_BYTES / 2;
        assert_eq!(sizes(&[half, half, 1, 3 * half, 1], 9, false), (vec![2, 1, 1], 1));
        assert_eq!(sizes(&[half, half, 1, 3 * half, 1], 9, true), (vec![2, 1, 1, 1], 0));
    }
}
