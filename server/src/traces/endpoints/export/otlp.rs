//! Writes a trace as a line with an OTLP request.
//!
//! Spans received over OpenTelemetry keep their IDs. Spans of JSON ingest get the last 8 bytes of their
//! own ID, and their records contain the complete ID.

use std::collections::{BTreeMap, HashMap};

use entities::{event, span, trace};
use semantics::{
    money,
    otlp::export::{
        EXPORT_HEAD, EXPORT_TAIL, EventRecord, ExportEvent, ExportSpan, Record, TraceRecord, write_span,
    },
};
use store::{
    otel_span_id,
    text_block::{MISSING_INPUT, MISSING_OUTPUT, has_text},
    traces::{SpanTexts, Texts, failure_of},
};
use uuid::Uuid;

use super::{ExportError, ExportWriter, reader::SpanBatch};
use crate::{
    error::Error,
    http::chunked_json::{ChunkedJson, TextExtractor},
    ingest::trace_rollup::{StoredHints, TraceValues, usage_details},
    memory::MEMORY_WAIT,
};

/// Maximum size of a line in bytes; a longer trace continues in another line, because requests have a
/// limit.
const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// Maximum size of a text for whose escaping no memory is reserved.
const SMALL_BYTES: usize = 64 * 1024;
/// Factor by which a text of control characters grows as JSON within JSON.
const ESCAPED_FACTOR: usize = 7;

/// A line under construction.
pub(super) struct OtlpLine<'a> {
    writer: &'a mut ExportWriter,
    row: trace::Model,
    /// The trace record that the first span carries.
    record: Option<TraceRecord>,
    /// Texts of the trace, needed if it has no spans.
    texts: Texts,
    /// Bytes of the spans in this line.
    written: usize,
    /// Number of spans so far, including earlier lines.
    spans: usize,
}

impl<'a> OtlpLine<'a> {
    /// Begins a line.
    pub(super) async fn begin(
        writer: &'a mut ExportWriter,
        row: trace::Model,
        texts: Texts,
    ) -> Result<Self, ExportError> {
        writer.push(EXPORT_HEAD).await?;
        Ok(Self { record: record(&row, &texts), writer, row, texts, written: 0, spans: 0 })
    }

    /// Writes spans with their events.
    pub(super) async fn spans(&mut self, batch: SpanBatch) -> Result<(), ExportError> {
        let SpanBatch { spans, mut texts, events, parents } = batch;
        let mut stray = Vec::new();
        let mut events_of: HashMap<Uuid, Vec<event::Model>> = HashMap::new();
        let known: std::collections::HashSet<Uuid> = spans.iter().map(|it| it.id).collect();
        for event in events {
            match event.span_id.filter(|it| known.contains(it)) {
                Some(span) => events_of.entry(span).or_default().push(event),
                None => stray.push(event),
            }
        }
        let db = self.writer.app.db.clone();
        for row in spans {
            let counted = texts.of_span(&db, &row, &mut self.writer.memory).await?;
            let mut events = events_of.remove(&row.id).unwrap_or_default();
            events.append(&mut stray);
            self.span(&row, counted.texts, &events, &parents).await?;
            self.writer.memory.shrink(counted.reserved);
        }
        if self.spans == 0 {
            self.carrier_span(&stray).await?;
        }
        Ok(())
    }

    /// Ends the line.
    pub(super) async fn end(mut self) -> Result<(), ExportError> {
        if self.spans == 0 {
            self.carrier_span(&[]).await?;
        }
        self.writer.push(EXPORT_TAIL).await?;
        self.writer.push("\n").await
    }

    async fn span(
        &mut self,
        row: &span::Model,
        mut texts: SpanTexts,
        events: &[event::Model],
        parents: &HashMap<Uuid, Option<Vec<u8>>>,
    ) -> Result<(), ExportError> {
        let hints = row.hints.as_deref();
        let hints_of_span: StoredHints =
            hints.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
        let (id, own_id) = otel_id(row.trace_id, row.id, row.otel_span_id.as_deref());
        let parent = row
            .parent_id
            .map(|parent| otel_id(row.trace_id, parent, parents.get(&parent).and_then(|it| it.as_deref())));
        let mut extractor = TextExtractor::default();
        extractor.text(&mut texts.input);
        extractor.text(&mut texts.output);
        let escaped = self.reserve_escaped(&texts, events).await?;
        // The first span also carries the trace's own values, for importers that do not know records.
        let whole = self.record.is_some().then_some(&self.row);
        let record = Record {
            id: own_id,
            parent: parent.and_then(|it| it.1),
            kind: row.kind.clone().into(),
            latency_ms: row.latency_ms,
            failure: row.failure.and_then(failure_of),
            response: row.response_hash,
            cost: row.cost,
            trace_input: texts.trace_input.clone(),
            trace_output: texts.trace_output.clone(),
            hints: hints.and_then(|it| serde_json::from_str(it).ok()),
            trace: self.record.clone(),
            ..Record::default()
        };
        let span = ExportSpan {
            trace_id: row.trace_id,
            span_id: id,
            parent_span_id: parent.map(|it| it.0),
            name: &row.name,
            start_us: row.started_at,
            end_us: row.ended_at,
            model: row.model.as_deref(),
            input: texts.input.as_deref(),
            output: texts.output.as_deref(),
            error: row.error.as_deref(),
            prompt_tokens: row.prompt_tokens,
            completion_tokens: row.completion_tokens,
            usage_details: usage_details(row),
            cost_usd: row.cost.filter(|_| row.cost_counted).map(money::to_usd),
            metadata: texts.metadata.as_deref(),
            session_id: hints_of_span.session_id.as_deref().or(whole.and_then(|it| it.session_id.as_deref())),
            user_id: hints_of_span.user_id.as_deref().or(whole.and_then(|it| it.user_id.as_deref())),
            tags: if hints_of_span.tags.is_empty() {
                whole.map(tags).unwrap_or_default()
            } else {
                hints_of_span.tags.clone()
            },
            record,
        };
        let mut text = String::new();
        write_span(&mut text, span, self.events(events, row.id));
        self.push(ChunkedJson::with_texts(text.into_bytes(), extractor)?).await?;
        self.writer.memory.shrink(escaped);
        Ok(())
    }

    /// Reserves memory for texts that are escaped as a whole: JSON within JSON, and texts of events.
    async fn reserve_escaped(
        &mut self,
        texts: &SpanTexts,
        events: &[event::Model],
    ) -> Result<usize, ExportError> {
        let of_event = |it: &event::Model| it.message.len() + it.metadata.as_ref().map_or(0, String::len);
        let bytes = texts.bytes() + events.iter().map(of_event).sum::<usize>();
        let escaped = if bytes > SMALL_BYTES { ESCAPED_FACTOR * bytes } else { 0 };
        self.writer.memory.grow(escaped, MEMORY_WAIT).await.map_err(Error::from)?;
        Ok(escaped)
    }

    /// Writes a placeholder span for a trace without spans.
    async fn carrier_span(&mut self, events: &[event::Model]) -> Result<(), ExportError> {
        let row = &self.row;
        let record = Record { carrier: true, trace: self.record.clone(), ..Record::default() };
        let span = ExportSpan {
            trace_id: row.id,
            span_id: last_bytes(row.id),
            name: row.name.as_deref().unwrap_or("trace"),
            start_us: row.started_at,
            end_us: row.ended_at,
            model: row.model.as_deref(),
            input: self.texts.input.as_deref(),
            output: self.texts.output.as_deref(),
            error: row.error.as_deref(),
            cost_usd: row.cost.map(money::to_usd),
            metadata: self.texts.metadata.as_deref(),
            session_id: row.session_id.as_deref(),
            user_id: row.user_id.as_deref(),
            tags: tags(row),
            record,
            ..ExportSpan::default()
        };
        let mut text = String::new();
        write_span(&mut text, span, self.events(events, Uuid::nil()));
        let escaped = if text.len() > SMALL_BYTES { 2 * text.len() } else { 0 };
        self.writer.memory.grow(escaped, MEMORY_WAIT).await.map_err(Error::from)?;
        self.push(ChunkedJson::with_texts(text.into_bytes(), TextExtractor::default())?).await?;
        self.writer.memory.shrink(escaped);
        Ok(())
    }

    /// Returns the events that are written with the span `span`.
    fn events<'e>(&self, events: &'e [event::Model], span: Uuid) -> Vec<ExportEvent<'e>> {
        let event = |it: &'e event::Model| ExportEvent {
            at_us: it.created_at,
            message: &it.message,
            metadata: it.metadata.as_deref(),
            record: EventRecord {
                id: it.id,
                stray: it.span_id != Some(span),
                span: it.span_id.filter(|id| *id != span),
                level: it.level.clone(),
                ..EventRecord::default()
            },
        };
        events.iter().map(event).collect()
    }

    async fn push(&mut self, span: ChunkedJson) -> Result<(), ExportError> {
        if self.written > MAX_LINE_BYTES {
            self.writer.push(&format!("{EXPORT_TAIL}\n{EXPORT_HEAD}")).await?;
            self.written = 0;
        }
        if self.written > 0 {
            self.writer.push(",").await?;
        }
        self.record = None;
        self.spans += 1;
        self.written += span.len();
        self.writer.write(span).await
    }
}

/// Returns the values sent for the whole trace; `None` if all of them follow from its spans.
fn record(row: &trace::Model, texts: &Texts) -> Option<TraceRecord> {
    let mut given: TraceValues = match &row.given {
        Some(text) => serde_json::from_str(text).unwrap_or_default(),
        None if row.span_count == 0 => TraceValues::default(),
        None => return None,
    };
    if row.span_count == 0 && given.ended_at.is_none() {
        // Otherwise the imported trace would start at its time of receipt.
        given.started_at = given.started_at.or(Some(row.started_at));
    }
    // A text of another text block is not the trace's own.
    let own = |text: &Option<String>, bit| {
        text.clone().filter(|_| given.own_texts && has_text(given.missing_texts, bit))
    };
    Some(TraceRecord {
        input: own(&texts.input, MISSING_INPUT),
        output: own(&texts.output, MISSING_OUTPUT),
        metadata: texts.metadata.clone().filter(|_| given.own_texts),
        given: serde_json::to_value(&given).unwrap_or_default(),
    })
}

fn tags(row: &trace::Model) -> BTreeMap<String, String> {
    row.tags.as_deref().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default()
}

/// Returns the 8 bytes of a span's OpenTelemetry ID, and the complete ID if it does not follow from
/// them.
fn otel_id(trace: Uuid, id: Uuid, otel: Option<&[u8]>) -> ([u8; 8], Option<Uuid>) {
    let bytes = otel.and_then(|it| it.try_into().ok()).unwrap_or_else(|| last_bytes(id));
    (bytes, (otel_span_id(trace, bytes) != id).then_some(id))
}

/// Returns the last 8 bytes of an ID, which are the most random ones; never all zero.
fn last_bytes(id: Uuid) -> [u8; 8] {
    let (_, low) = id.as_u64_pair();
    low.max(1).to_be_bytes()
}
