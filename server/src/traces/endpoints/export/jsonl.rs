//! Writes a trace as a line of JSON: the trace detail with all spans and events.

use entities::{event, trace};
use store::{control_actions, traces::Texts};

use super::{ExportError, ExportWriter, reader::SpanBatch};
use crate::{http::chunked_json::ChunkedJson, memory::Reservation, traces::view};

/// A line under construction.
pub(super) struct JsonlLine<'a> {
    writer: &'a mut ExportWriter,
    state: LineState,
}

/// The part that was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineState {
    /// The beginning of the list of spans.
    NoSpan,
    /// A span.
    Spans,
    /// The beginning of the list of events.
    NoEvent,
    /// An event.
    Events,
}

impl<'a> JsonlLine<'a> {
    /// Begins a line with the trace itself.
    pub(super) async fn begin(
        writer: &'a mut ExportWriter,
        row: trace::Model,
        texts: Texts,
    ) -> Result<Self, ExportError> {
        let retries = control_actions::executed_retries(&writer.app.db, row.tenant_id, row.id).await?;
        let mut trace = view::trace(row, texts, false);
        // As in the detail.
        trace.control_loop_depth = Some(retries);
        // Spans and events come last in the object, which stays open for them.
        writer.write(ChunkedJson::from_open_object(trace)?).await?;
        writer.push(",\"spans\":[").await?;
        Ok(Self { writer, state: LineState::NoSpan })
    }

    /// Writes spans; returns the events of the batch.
    pub(super) async fn spans(&mut self, batch: SpanBatch) -> Result<Vec<event::Model>, ExportError> {
        let SpanBatch { spans, mut texts, events, parents: _ } = batch;
        let db = self.writer.app.db.clone();
        for row in spans {
            let counted = texts.of_span(&db, &row, &mut self.writer.memory).await?;
            self.item(LineState::Spans, ChunkedJson::from_value(view::span(row, counted.texts))?).await?;
            self.writer.memory.shrink(counted.reserved);
        }
        Ok(events)
    }

    /// Returns the reservation of the export.
    pub(super) fn memory(&mut self) -> &mut Reservation {
        &mut self.writer.memory
    }

    /// Writes events; no spans may follow.
    pub(super) async fn events(&mut self, events: Vec<event::Model>) -> Result<(), ExportError> {
        self.begin_events().await?;
        for row in events {
            self.item(LineState::Events, ChunkedJson::from_value(view::event(row))?).await?;
        }
        Ok(())
    }

    /// Ends the line.
    pub(super) async fn end(mut self) -> Result<(), ExportError> {
        self.begin_events().await?;
        self.writer.push("]}\n").await
    }

    async fn begin_events(&mut self) -> Result<(), ExportError> {
        if matches!(self.state, LineState::NoSpan | LineState::Spans) {
            self.state = LineState::NoEvent;
            self.writer.push("],\"events\":[").await?;
        }
        Ok(())
    }

    async fn item(&mut self, what: LineState, json: ChunkedJson) -> Result<(), ExportError> {
        if self.state == what {
            self.writer.push(",").await?;
        }
        self.state = what;
        self.writer.write(json).await
    }
}
