//! Joins log records with the spans that they describe.
//!
//! A span whose input, output or error may come with log records is kept for a while as it was received
//! ([`KeptSpans`]). When log records have arrived, it is converted again with the events that they are turned into, in the
//! order of their times. So the order of arrival and the number of requests make no difference. Other spans have
//! their own texts; log records only add events and evaluations to them.

use std::collections::{BTreeMap, HashMap, HashSet};

use opentelemetry_proto::tonic::{
    common::v1::InstrumentationScope,
    resource::v1::Resource,
    trace::v1::{Span, span::Event},
};
use prost::Message;

use super::record::SpanEvent;
use crate::{
    draft::{EvaluationDraft, EventDraft, SpanDraft},
    otlp::{
        Malformed, convert, events, metadata,
        redact::{self, RedactionCounts},
    },
};

/// Log records of one trace.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HeldRecords {
    /// The log records.
    #[prost(message, repeated, tag = "1")]
    pub(super) records: Vec<HeldRecord>,
}

/// A log record as an event.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HeldRecord {
    #[prost(bytes = "vec", tag = "1")]
    span_id: Vec<u8>,
    /// Of an evaluation without a span ID.
    #[prost(string, tag = "2")]
    response_id: String,
    /// Position in the request. It decides the order of log records with the same time.
    #[prost(uint64, tag = "3")]
    position: u64,
    #[prost(message, optional, tag = "4")]
    event: Option<Event>,
}

impl HeldRecords {
    /// Adds a log record.
    pub(super) fn push(&mut self, position: usize, record: SpanEvent) {
        let SpanEvent { trace_id: _, span_id, response_id, event } = record;
        self.records.push(HeldRecord {
            span_id: if response_id.is_empty() { span_id.to_vec() } else { Vec::new() },
            response_id,
            position: position as u64,
            event: Some(event),
        });
    }
}

/// Spans of one trace and scope, as they were received.
#[derive(Clone, PartialEq, Message)]
pub(in crate::otlp) struct KeptSpans {
    #[prost(message, optional, tag = "1")]
    pub(in crate::otlp) resource: Option<Resource>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::otlp) scope: Option<InstrumentationScope>,
    /// Encoded spans.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(in crate::otlp) spans: Vec<Vec<u8>>,
}

/// What log records add to a span that has its own texts.
#[derive(Debug, Default, PartialEq)]
pub struct SpanAdditions {
    /// Events.
    pub events: Vec<EventDraft>,
    /// External evaluations.
    pub evaluations: Vec<EvaluationDraft>,
    /// Number of log records whose messages the span has itself, or can no longer be given.
    pub dropped_messages: usize,
}

/// The spans and log records of one trace.
#[derive(Debug, Default)]
pub struct LogJoin {
    spans: HashMap<[u8; 8], KeptSpan>,
    records: BTreeMap<[u8; 8], Vec<(u64, Event)>>,
    by_response: Vec<(String, (u64, Event))>,
}

#[derive(Debug)]
struct KeptSpan {
    span: Span,
    scope_name: String,
    /// The metadata of the span's scope.
    shared: String,
}

impl LogJoin {
    /// Adds kept spans.
    ///
    /// # Errors
    ///
    /// Fails when the data are damaged.
    pub fn add_spans(&mut self, data: &[u8]) -> Result<(), Malformed> {
        let KeptSpans { resource, scope, spans } = KeptSpans::decode(data).map_err(damaged)?;
        let shared = metadata::shared(resource.as_ref(), scope.as_ref());
        let scope_name = scope.map(|it| it.name).unwrap_or_default();
        for span in spans {
            let span = Span::decode(span.as_slice()).map_err(damaged)?;
            let Ok(id) = span.span_id.as_slice().try_into() else { continue };
            let kept = KeptSpan { span, scope_name: scope_name.clone(), shared: shared.clone() };
            // The first span with an ID is the stored one.
            self.spans.entry(id).or_insert(kept);
        }
        Ok(())
    }

    /// Adds log records.
    ///
    /// # Errors
    ///
    /// Fails when the data are damaged.
    pub fn add_records(&mut self, data: &[u8]) -> Result<(), Malformed> {
        for HeldRecord { span_id, response_id, position, event } in
            HeldRecords::decode(data).map_err(damaged)?.records
        {
            let Some(event) = event else { continue };
            match <[u8; 8]>::try_from(span_id.as_slice()) {
                Ok(id) => self.records.entry(id).or_default().push((position, event)),
                Err(_) => self.by_response.push((response_id, (position, event))),
            }
        }
        Ok(())
    }

    /// Assigns evaluations to spans by their response IDs; `span_of` returns the ID of the span with a response ID. Returns
    /// the number of evaluations without a span.
    pub fn assign_by_response(&mut self, span_of: impl Fn(&str) -> Option<[u8; 8]>) -> usize {
        let mut unassigned = 0;
        for (response, record) in std::mem::take(&mut self.by_response) {
            match span_of(&response) {
                Some(span) => self.records.entry(span).or_default().push(record),
                None => unassigned += 1,
            }
        }
        unassigned
    }

    /// Returns the IDs of the spans with log records, ascending.
    pub fn span_ids(&self) -> Vec<[u8; 8]> {
        self.records.keys().copied().collect()
    }

    /// Returns the number of log records of a span.
    pub fn record_count(&self, span: [u8; 8]) -> usize {
        self.records.get(&span).map_or(0, Vec::len)
    }

    /// Converts a kept span again, together with its log records; `None` if the span was not kept.
    pub fn convert(&mut self, id: [u8; 8]) -> Option<SpanDraft> {
        let KeptSpan { mut span, scope_name, shared } = self.spans.remove(&id)?;
        // Some SDKs send an event on both ways, at slightly different times.
        let own: HashSet<Vec<u8>> = span.events.iter().map(without_time).collect();
        let mut counts = RedactionCounts::new();
        for mut event in self.take_events(id) {
            let mut of_event = RedactionCounts::new();
            redact::move_counts(&mut event.attributes, &mut of_event);
            if own.is_empty() || !own.contains(&without_time(&event)) {
                of_event.into_iter().for_each(|(kind, count)| *counts.entry(kind).or_default() += count);
                span.events.push(event);
            }
        }
        redact::add_counts(&mut span.attributes, &counts);
        // A span that was not accepted is not kept.
        convert::span(span, &scope_name, &shared).ok()
    }

    /// Returns what the log records of a span add to it, if it was not kept.
    pub fn additions(&mut self, id: [u8; 8]) -> SpanAdditions {
        let events = self.take_events(id);
        let count = events.len();
        let contents = events::read(events);
        SpanAdditions {
            dropped_messages: count.saturating_sub(contents.drafts.len()),
            events: contents.drafts,
            evaluations: contents.evaluations,
        }
    }

    /// Returns the log records of a span in the order of their times, each once.
    fn take_events(&mut self, id: [u8; 8]) -> Vec<Event> {
        let mut records = self.records.remove(&id).unwrap_or_default();
        records
            .sort_by_cached_key(|(position, event)| (event.time_unix_nano, *position, event.encode_to_vec()));
        // A repeated log record may have had another position in its request.
        let mut seen = HashSet::with_capacity(records.len());
        records.into_iter().map(|it| it.1).filter(|it| seen.insert(it.encode_to_vec())).collect()
    }
}

fn without_time(event: &Event) -> Vec<u8> {
    Event { time_unix_nano: 0, ..event.clone() }.encode_to_vec()
}

fn damaged(error: prost::DecodeError) -> Malformed {
    Malformed { message: format!("kept spans or log records are damaged: {error}") }
}
