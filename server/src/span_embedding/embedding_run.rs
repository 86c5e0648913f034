//! One run of a worker over the spans of a job.
//!
//! It ends when all spans are embedded, when the provider fails, or after a while: then another job
//! continues, so that other jobs can run.

use std::time::Duration;

use store::{
    DbError,
    vectors::{self, BlocksToEmbed, SpanToEmbed, SpansOfBlock, UnitVector},
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
const TRACES_PER_READ: usize = 256;
const SPANS_PER_READ: u64 = 256;
/// Number of vectors stored in one transaction. A transaction writes the last page of each index, so small ones write
/// most pages several times.
const VECTORS_PER_TRANSACTION: usize = 256;
/// Time after which vectors are stored although more could be stored with them.
const MAX_STORE_DELAY: Duration = Duration::from_secs(5);
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
    /// Vectors that are not stored yet, and when the provider returned the first one.
    unstored: Vec<(SpanToEmbed, UnitVector)>,
    unstored_since: Instant,
}

/// A position in the order of spans: trace, span.
pub type SpanPosition = (Uuid, Uuid);

/// A span and its text.
type SpanText = (SpanToEmbed, String);

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
            unstored: Vec::new(),
            unstored_since: Instant::now(),
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
        self.store().await?;
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
        let mut blocks = BlocksToEmbed::of(self.tenant, page);
        loop {
            let read = blocks.next(&db).await?;
            if read.is_empty() {
                break;
            }
            items.extend(spawn_blocking(move || texts(read)).await.map_err(anyhow::Error::from)??);
        }
        items.sort_unstable_by_key(|it| it.0);
        Ok((last, items.into_iter().map(|it| it.1).collect()))
    }

    /// Embeds waiting spans, in full requests or all of them. Returns why the run must end, if it must.
    async fn send(&mut self, waiting: &mut Vec<SpanText>, is_last: bool) -> Result<Option<RunEnd>> {
        while let Some(batch) = batch(waiting, self.texts, is_last) {
            let failure = self.embed(batch).await;
            if self.unstored.len() >= VECTORS_PER_TRANSACTION
                || self.unstored_since.elapsed() >= MAX_STORE_DELAY
            {
                self.store().await?;
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

    /// Stores the vectors that are not stored yet.
    async fn store(&mut self) -> Result<()> {
        let vectors = std::mem::take(&mut self.unstored);
        if !vectors.is_empty() {
            let model = &self.selected.endpoint.model;
            let new = vectors::insert(&self.app.db, self.tenant, model, &vectors).await?;
            self.app.telemetry.embedding.spans.inc_by(u64::try_from(new).unwrap_or_default());
        }
        Ok(())
    }

    /// Requests the vectors of these spans, except those whose text is rejected. Returns the failure, if
    /// any. A rejected batch is split in halves, so that one text does not affect the others.
    async fn embed(&mut self, batch: Vec<SpanText>) -> Option<EmbeddingFailure> {
        let mut waiting = vec![batch];
        while let Some(mut batch) = waiting.pop() {
            let last = batch.last().map(|it| (it.0.trace_id, it.0.id));
            let texts: Vec<&str> = batch.iter().map(|it| it.1.as_str()).collect();
            match self.request_vectors(&texts).await {
                Ok(vectors) => {
                    self.provider_works = true;
                    if self.unstored.is_empty() {
                        self.unstored_since = Instant::now();
                    }
                    self.unstored.extend(batch.into_iter().map(|it| it.0).zip(vectors));
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
                    Err(failure) => return Some(failure),
                },
                Err(failure) => return Some(failure),
            }
            if self.must_end() {
                break;
            }
        }
        None
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

/// Returns the spans that have a text, with their positions and texts. One block is decompressed at a time: a few
/// compressed bytes may be many megabytes.
fn texts(blocks: Vec<SpansOfBlock>) -> Result<Vec<(usize, SpanText)>, DbError> {
    let mut items = Vec::new();
    for block in blocks {
        block.unpack(|position, span, texts| {
            if let Some(text) = text(&span, texts) {
                items.push((position, (span, text)));
            }
        })?;
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
        (SpanToEmbed::default(), "x".repeat(length))
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
