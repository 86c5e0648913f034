//! The rows of one chunk.

use entities::{body, evaluation, event, held_input, span, trace};
use uuid::Uuid;

use crate::vectors::VectorRow;

/// The rows of a chunk.
#[derive(Debug)]
pub struct TraceChunk {
    /// The trace's row as it is stored if the trace is new.
    pub trace: trace::Model,
    /// The spans, with unique IDs.
    pub spans: Vec<span::Model>,
    /// The events, with unique IDs.
    pub events: Vec<event::Model>,
    /// The text blocks of the spans.
    pub bodies: Vec<body::Model>,
    /// Vectors sent with the spans.
    pub vectors: Vec<VectorRow>,
    /// External evaluations sent with the spans.
    pub evaluations: Vec<evaluation::Model>,
    /// The spans that log records may complete, as they were received.
    pub held: Vec<held_input::Model>,
    /// The log records with which the spans were converted.
    pub joined: Vec<JoinedRecords>,
}

/// A stored row of log records with which spans of the chunk were converted. The transaction that stores the spans marks the
/// row as joined.
#[derive(Debug)]
pub struct JoinedRecords {
    /// The ID of the row.
    pub id: Uuid,
    /// The IDs of all spans that the log records name. The row is marked only if all of them are new.
    pub spans: Vec<Uuid>,
}

impl TraceChunk {
    /// Returns a chunk without spans.
    pub fn of(trace: trace::Model) -> Self {
        Self {
            trace,
            spans: Vec::new(),
            events: Vec::new(),
            bodies: Vec::new(),
            vectors: Vec::new(),
            evaluations: Vec::new(),
            held: Vec::new(),
            joined: Vec::new(),
        }
    }

    /// Returns whether the chunk came through JSON ingest, where a known trace is refused and not merged.
    pub fn is_item(&self) -> bool {
        self.trace.digest.is_some()
    }

    /// Sets the key of the trace in all rows that have it.
    pub(crate) fn set_key(&mut self, key: i64) {
        self.trace.key = key;
        for span in &mut self.spans {
            span.trace_key = key;
        }
        for vector in &mut self.vectors {
            vector.set_key(key);
        }
    }

    /// Gives the only text block of the chunk another ID, in all rows that refer to it.
    pub(crate) fn set_block_id(&mut self, block_id: Uuid) {
        let [block] = self.bodies.as_mut_slice() else { return };
        block.id = block_id;
        let trace = &mut self.trace;
        let of_trace = [&mut trace.body_id, &mut trace.input_body_id, &mut trace.output_body_id];
        for id in of_trace.into_iter().chain(self.spans.iter_mut().map(|it| &mut it.body_id)).flatten() {
            *id = block_id;
        }
    }
}
