//! A trace as a line of JSON: what the detail shows, with all of its spans and events.

use entities::{event, trace};

use super::{Pieces, Stopped, lines::Block};
use crate::{http::trace_view as view, store::traces::Texts};

/// A line being written.
pub(super) struct Line<'a> {
    pieces: &'a mut Pieces,
    state: State,
}

/// What was written last.
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

impl<'a> Line<'a> {
    /// Begins a line with the trace itself.
    pub(super) async fn begin(
        pieces: &'a mut Pieces,
        row: trace::Model,
        texts: Texts,
    ) -> Result<Self, Stopped> {
        let mut trace = view::trace(row, texts, false);
        // As in the detail: no remediation has been executed on any trace.
        trace.control_loop_depth = Some(0);
        let mut text = serde_json::to_string(&trace)?;
        // Spans and events come last in the object, which stays open for them.
        text.pop();
        text.push_str(",\"spans\":[");
        pieces.push(&text).await?;
        Ok(Self { pieces, state: State::NoSpan })
    }

    /// Adds spans, and answers the events of the block.
    pub(super) async fn spans(&mut self, block: Block) -> Result<Vec<event::Model>, Stopped> {
        let Block { spans, mut texts, events, parents: _ } = block;
        for row in spans {
            let texts = texts.take(&row)?;
            self.item(State::Spans, &serde_json::to_string(&view::span(row, texts))?).await?;
        }
        Ok(events)
    }

    /// Adds events; no spans may follow.
    pub(super) async fn events(&mut self, events: Vec<event::Model>) -> Result<(), Stopped> {
        self.begin_events().await?;
        for row in events {
            self.item(State::Events, &serde_json::to_string(&view::event(row))?).await?;
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

    async fn item(&mut self, what: State, text: &str) -> Result<(), Stopped> {
        if self.state == what {
            self.pieces.push(",").await?;
        }
        self.state = what;
        self.pieces.push(text).await
    }
}
