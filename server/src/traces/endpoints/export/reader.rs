//! Reads traces for an export.
//!
//! Short traces are read several at once. Long ones are read in batches of spans.

use std::collections::HashMap;

use entities::{event, span, trace};
use store::{
    Db,
    traces::{Position, TextBlocks, Texts},
};
use uuid::Uuid;

use super::{ExportError, ExportWriter, jsonl, otlp};
use crate::{
    error::Error,
    http::read_size::{EVENT_BYTES_PER_READ, ROWS_PER_READ},
    memory::MEMORY_WAIT,
};

/// Maximum number and bytes of events that are read together with their traces.
const MAX_EVENTS_READ_TOGETHER: (u64, u64) = (2_000, 1024 * 1024);

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExportFormat {
    /// The trace detail.
    Jsonl,
    /// An OTLP request.
    Otlp,
}

impl ExportFormat {
    /// Returns the file name extension.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Otlp => "otlp.jsonl",
        }
    }
}

/// Spans of one trace that are written together, with their texts and events.
pub(super) struct SpanBatch {
    /// Ordered by start.
    pub(super) spans: Vec<span::Model>,
    /// Their texts.
    pub(super) texts: TextBlocks,
    /// Events of these spans by time; the first batch also contains the events without a span.
    pub(super) events: Vec<event::Model>,
    /// OpenTelemetry IDs of the parents of these spans, if stored.
    pub(super) parents: HashMap<Uuid, Option<Vec<u8>>>,
}

/// Reads and writes these traces.
pub(super) async fn write(
    writer: &mut ExportWriter,
    tenant: Uuid,
    format: ExportFormat,
    traces: Vec<(trace::Model, Texts)>,
) -> Result<(), ExportError> {
    let db = writer.app.db.clone();
    let ids: Vec<Uuid> = traces.iter().map(|it| it.0.id).collect();
    let short = traces.len() > 1 || traces.iter().all(|it| it.0.span_count <= i32::from(ROWS_PER_READ));
    let (count, bytes) = store::traces::size_of_events(&db, tenant, &ids).await?;
    if !short || count > MAX_EVENTS_READ_TOGETHER.0 || bytes > MAX_EVENTS_READ_TOGETHER.1 {
        for (row, texts) in traces {
            match format {
                ExportFormat::Jsonl => long_jsonl(writer, &db, row, texts).await?,
                ExportFormat::Otlp => long_otlp(writer, &db, row, texts).await?,
            }
        }
        return Ok(());
    }
    let events = match count {
        0 => Vec::new(),
        // New events may have been stored meanwhile.
        _ => store::traces::events_of(&db, tenant, &ids, MAX_EVENTS_READ_TOGETHER.0).await?,
    };
    let mut events = group_by_trace(events, |it| it.trace_id);
    let mut spans = group_by_trace(store::traces::spans_of(&db, tenant, &ids).await?, |it| it.trace_id);
    for (row, texts) in traces {
        let own = spans.remove(&row.id).unwrap_or_default();
        let events = events.remove(&row.id).unwrap_or_default();
        let batch = SpanBatch::of(&db, &row, own, events).await?;
        match format {
            ExportFormat::Jsonl => {
                let mut line = jsonl::JsonlLine::begin(writer, row, texts).await?;
                let events = line.spans(batch).await?;
                line.events(events).await?;
                line.end().await?;
            }
            ExportFormat::Otlp => {
                let mut line = otlp::OtlpLine::begin(writer, row, texts).await?;
                line.spans(batch).await?;
                line.end().await?;
            }
        }
    }
    Ok(())
}

async fn long_jsonl(
    writer: &mut ExportWriter,
    db: &Db,
    row: trace::Model,
    texts: Texts,
) -> Result<(), ExportError> {
    let (tenant, id) = (row.tenant_id, row.id);
    let mut line = jsonl::JsonlLine::begin(writer, row.clone(), texts).await?;
    let mut after = None;
    while let Some(spans) = next_spans(db, &row, &mut after).await? {
        line.spans(SpanBatch::of(db, &row, spans, Vec::new()).await?).await?;
    }
    let mut after = None;
    loop {
        let read = store::traces::events_within(
            db,
            tenant,
            id,
            after,
            ROWS_PER_READ.into(),
            EVENT_BYTES_PER_READ,
            line.memory(),
        )
        .await?;
        let Some(last) = read.texts.last() else { return line.end().await };
        after = Some((last.created_at, last.id));
        line.events(read.texts).await?;
        line.memory().shrink(read.reserved);
    }
}

async fn long_otlp(
    writer: &mut ExportWriter,
    db: &Db,
    row: trace::Model,
    texts: Texts,
) -> Result<(), ExportError> {
    let (tenant, id) = (row.tenant_id, row.id);
    // At most this many bytes are in memory at the same time, twice while they are read.
    let (_, bytes) = store::traces::size_of_events(db, tenant, &[id]).await?;
    let events_bytes = 2 * usize::try_from(bytes).unwrap_or(usize::MAX / 2);
    writer.memory.grow(events_bytes, MEMORY_WAIT).await.map_err(Error::from)?;
    let mut line = otlp::OtlpLine::begin(writer, row.clone(), texts).await?;
    let mut after = None;
    let mut stray = store::traces::stray_events(db, tenant, id).await?;
    while let Some(spans) = next_spans(db, &row, &mut after).await? {
        let ids: Vec<Uuid> = spans.iter().map(|it| it.id).collect();
        let mut events = store::traces::events_of_spans(db, tenant, id, &ids).await?;
        events.append(&mut stray);
        line.spans(SpanBatch::of(db, &row, spans, events).await?).await?;
    }
    line.end().await?;
    writer.memory.shrink(events_bytes);
    Ok(())
}

/// Returns the next spans of a long trace; `None` at the end.
async fn next_spans(
    db: &Db,
    row: &trace::Model,
    after: &mut Option<Position>,
) -> Result<Option<Vec<span::Model>>, ExportError> {
    let spans = store::traces::spans(db, row.tenant_id, row.id, *after, ROWS_PER_READ.into()).await?;
    let Some(last) = spans.last() else { return Ok(None) };
    *after = Some((last.started_at, last.id));
    Ok(Some(spans))
}

impl SpanBatch {
    async fn of(
        db: &Db,
        row: &trace::Model,
        spans: Vec<span::Model>,
        events: Vec<event::Model>,
    ) -> Result<Self, ExportError> {
        let ids = spans.iter().filter_map(|it| it.body_id);
        let texts = TextBlocks::load(db, row.tenant_id, ids).await?;
        let mut parents: HashMap<Uuid, Option<Vec<u8>>> =
            spans.iter().map(|it| (it.id, it.otel_span_id.clone())).collect();
        let mut missing_parents: Vec<Uuid> =
            spans.iter().filter_map(|it| it.parent_id).filter(|it| !parents.contains_key(it)).collect();
        missing_parents.sort_unstable();
        missing_parents.dedup();
        if !missing_parents.is_empty() {
            parents.extend(store::traces::otel_ids(db, row.tenant_id, row.id, &missing_parents).await?);
        }
        Ok(Self { spans, texts, events, parents })
    }
}

/// Groups rows by trace and keeps their order.
fn group_by_trace<T>(rows: Vec<T>, trace: impl Fn(&T) -> Uuid) -> HashMap<Uuid, Vec<T>> {
    let mut sorted: HashMap<Uuid, Vec<T>> = HashMap::new();
    for row in rows {
        sorted.entry(trace(&row)).or_default().push(row);
    }
    sorted
}
