//! Writes a trace as a line of JSON: the trace detail with all spans and events.

use entities::{event, trace};
use store::traces::Texts;

use super::{Pieces, Stopped, lines::Block};
use crate::{http::pieces::Pieces as JsonPieces, memory::Reservation, traces::view};

/// A line under construction.
pub(super) struct JsonlLine<'a> {
    pieces: &'a mut Pieces,
    state: State,
}

/// The part that was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
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
        pieces: &'a mut Pieces,
        row: trace::Model,
        texts: Texts,
    ) -> Result<Self, Stopped> {
        let mut trace = view::trace(row, texts, false);
        // As in the detail: no control action has been executed on any trace.
        trace.control_loop_depth = Some(0);
        // Spans and events come last in the object, which stays open for them.
        pieces.write(JsonPieces::of_open_object(trace)?).await?;
        pieces.push(",\"spans\":[").await?;
        Ok(Self { pieces, state: State::NoSpan })
    }

    /// Writes spans; returns the events of the block.
    pub(super) async fn spans(&mut self, block: Block) -> Result<Vec<event::Model>, Stopped> {
        let Block { spans, mut texts, events, parents: _ } = block;
        let db = self.pieces.app.db.clone();
        for row in spans {
            let counted = texts.of_span(&db, &row, &mut self.pieces.memory).await?;
            self.item(State::Spans, JsonPieces::of(view::span(row, counted.texts))?).await?;
            self.pieces.memory.shrink(counted.reserved);
        }
        Ok(events)
    }

    /// Returns the reservation of the export.
    pub(super) fn memory(&mut self) -> &mut Reservation {
        &mut self.pieces.memory
    }

    /// Writes events; no spans may follow.
    pub(super) async fn events(&mut self, events: Vec<event::Model>) -> Result<(), Stopped> {
        self.begin_events().await?;
        for row in events {
            self.item(State::Events, JsonPieces::of(view::event(row))?).await?;
        }
        Ok(())
    }

    /// Ends the line.
    pub(super) async fn end(mut self) -> Result<(), Stopped> {
        self.begin_events().await?;
        self.pieces.push("]}\n").await
    }

    async fn begin_events(&mut self) -> Result<(), Stopped> {
        if matches!(self.state, State::NoSpan | State::Spans) {
            self.state = State::NoEvent;
            self.pieces.push("],\"events\":[").await?;
        }
        Ok(())
    }

    async fn item(&mut self, what: State, json: JsonPieces) -> Result<(), Stopped> {
        if self.state == what {
            self.pieces.push(",").await?;
        }
        self.state = what;
        self.pieces.write(json).await
    }
}
