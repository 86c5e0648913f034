//! Joins log records with the spans that they describe.
//!
//! A span whose input, output or error may come with log records is held for a while as it was received ([`SpanToJoin`]).
//! When log records have arrived, it is converted again with the events that they are turned into, in the order of their
//! times. So the order of arrival and the number of requests make no difference. Other spans have their own texts; log records
//! only add events and evaluations to them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

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
        weight,
    },
};

/// Log records of one trace.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HeldRecords {
    /// The log records.
    #[prost(message, repeated, tag = "1")]
    records: Vec<HeldRecord>,
}

/// A log record as an event.
#[derive(Clone, PartialEq, Message)]
struct HeldRecord {
    #[prost(bytes = "vec", tag = "1")]
    span_id: Vec<u8>,
    /// Of an evaluation without a span ID.
    #[prost(string, tag = "2")]
    response_id: String,
    /// Position in the request.
    #[prost(uint64, tag = "3")]
    position: u64,
    #[prost(message, optional, tag = "4")]
    event: Option<Event>,
    /// Nanoseconds since the epoch.
    #[prost(uint64, tag = "5")]
    observed_at: u64,
}

/// Log records in the form that [`LogJoin`] reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordData {
    /// Number of log records.
    pub count: usize,
    /// Memory in bytes of the decoded log records, without texts.
    pub decoded_bytes: usize,
    /// The encoded log records.
    pub data: Vec<u8>,
    /// The spans that the log records name, ascending; `None` if one of them names its span by its response ID.
    pub span_ids: Option<Vec<[u8; 8]>>,
}

impl HeldRecord {
    /// Returns the ID of the span; `None` for an evaluation that names its span by its response ID.
    fn span(&self) -> Option<[u8; 8]> {
        self.span_id.as_slice().try_into().ok()
    }
}

impl HeldRecords {
    /// Adds a log record.
    pub(super) fn push(&mut self, position: usize, record: SpanEvent) {
        let SpanEvent { trace_id: _, span_id, response_id, event, observed_at } = record;
        self.records.push(HeldRecord {
            span_id: if response_id.is_empty() { span_id.to_vec() } else { Vec::new() },
            response_id,
            position: position as u64,
            event: Some(event),
            observed_at,
        });
    }

    /// Encodes the log records.
    pub(super) fn to_data(&self) -> RecordData {
        let data = self.encode_to_vec();
        let ids: Option<BTreeSet<[u8; 8]>> = self.records.iter().map(HeldRecord::span).collect();
        RecordData {
            count: self.records.len(),
            decoded_bytes: weight::decoded_bytes_of_held_records(&data),
            data,
            span_ids: ids.map(|it| it.into_iter().collect()),
        }
    }
}

/// A span with its resource and scope, as it was received.
#[derive(Clone, PartialEq, Message)]
pub(in crate::otlp) struct SpanToJoin {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, optional, tag = "2")]
    scope: Option<InstrumentationScope>,
    /// The encoded span.
    #[prost(bytes = "vec", tag = "3")]
    span: Vec<u8>,
}

impl SpanToJoin {
    /// Returns the resource and the scope without a span.
    pub(in crate::otlp) fn scope_of(
        resource: Option<&Resource>,
        scope: Option<&InstrumentationScope>,
    ) -> Self {
        Self { resource: resource.cloned(), scope: scope.cloned(), span: Vec::new() }
    }

    /// Returns the span without its resource and scope.
    pub(in crate::otlp) fn of_span(span: Vec<u8>) -> Self {
        Self { resource: None, scope: None, span }
    }
}

/// The events and evaluations that log records add to a span that is not converted again.
#[derive(Debug, Default, PartialEq)]
pub struct SpanAdditions {
    /// Events.
    pub events: Vec<EventDraft>,
    /// External evaluations.
    pub evaluations: Vec<EvaluationDraft>,
    /// Whether the log records also have messages, which are dropped.
    pub has_messages: bool,
}

/// The spans and log records of one trace.
#[derive(Debug, Default)]
pub struct LogJoin {
    spans: HashMap<[u8; 8], Vec<u8>>,
    records: BTreeMap<[u8; 8], Vec<HeldRecord>>,
    /// Evaluations that name their span by its response ID.
    by_response: Vec<HeldRecord>,
}

/// Log records of one row, by whether their spans are stored.
#[derive(Debug)]
pub struct SplitRecords {
    /// The spans of the first part, ascending.
    pub span_ids: Vec<[u8; 8]>,
    /// The log records whose spans are stored; `None` if there are none.
    pub found: Option<RecordData>,
    /// The other log records.
    pub missing: Option<RecordData>,
}

/// Splits log records by whether their spans are stored. `span_of` returns the ID of the stored span with a response ID.
///
/// # Errors
///
/// Fails when the data are damaged.
pub fn split_records(
    data: &[u8],
    is_stored: impl Fn([u8; 8]) -> bool,
    span_of: impl Fn(&str) -> Option<[u8; 8]>,
) -> Result<SplitRecords, Malformed> {
    let (mut found, mut missing) = (HeldRecords::default(), HeldRecords::default());
    let mut span_ids = Vec::new();
    for record in HeldRecords::decode(data).map_err(damaged)?.records {
        let span = match record.span() {
            Some(id) => Some(id).filter(|it| is_stored(*it)),
            None => span_of(&record.response_id),
        };
        match span {
            Some(id) => {
                span_ids.push(id);
                found.records.push(record);
            }
            None => missing.records.push(record),
        }
    }
    span_ids.sort_unstable();
    span_ids.dedup();
    let part = |it: HeldRecords| (!it.records.is_empty()).then(|| it.to_data());
    Ok(SplitRecords { span_ids, found: part(found), missing: part(missing) })
}

impl LogJoin {
    /// Adds a held span.
    pub fn add_span(&mut self, id: [u8; 8], data: Vec<u8>) {
        self.spans.insert(id, data);
    }

    /// Adds log records.
    ///
    /// # Errors
    ///
    /// Fails when the data are damaged.
    pub fn add_records(&mut self, data: &[u8]) -> Result<(), Malformed> {
        for record in HeldRecords::decode(data).map_err(damaged)?.records {
            match record.span() {
                Some(id) => self.records.entry(id).or_default().push(record),
                None => self.by_response.push(record),
            }
        }
        Ok(())
    }

    /// Assigns evaluations to spans by their response IDs. `span_of` returns the ID of the stored span with a response ID.
    pub fn assign_by_response(&mut self, span_of: impl Fn(&str) -> Option<[u8; 8]>) {
        for record in std::mem::take(&mut self.by_response) {
            if let Some(span) = span_of(&record.response_id) {
                self.records.entry(span).or_default().push(record);
            }
        }
    }

    /// Converts a held span again, together with its log records; `None` if the span is not held.
    ///
    /// # Errors
    ///
    /// Fails when the data are damaged.
    pub fn convert(&mut self, id: [u8; 8]) -> Result<Option<SpanDraft>, Malformed> {
        let Some(data) = self.spans.remove(&id) else { return Ok(None) };
        let SpanToJoin { resource, scope, span } = SpanToJoin::decode(data.as_slice()).map_err(damaged)?;
        let mut span = Span::decode(span.as_slice()).map_err(damaged)?;
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
        let shared = metadata::shared(resource.as_ref(), scope.as_ref());
        let scope_name = scope.as_ref().map(|it| it.name.as_str()).unwrap_or_default();
        // Only accepted spans are held.
        Ok(convert::span(span, scope_name, &shared).ok())
    }

    /// Returns the events and evaluations in the log records of a span that is not held.
    pub fn additions(&mut self, id: [u8; 8]) -> SpanAdditions {
        let contents = events::read(self.take_events(id));
        let has_messages = [&contents.input, &contents.output, &contents.instructions, &contents.tool_input]
            .into_iter()
            .any(Option::is_some);
        SpanAdditions { has_messages, events: contents.drafts, evaluations: contents.evaluations }
    }

    /// Returns the log records of a span in the order of their times, each once.
    fn take_events(&mut self, id: [u8; 8]) -> Vec<Event> {
        let mut records = self.records.remove(&id).unwrap_or_default();
        let time = |it: &HeldRecord| it.event.as_ref().map_or(0, |it| it.time_unix_nano);
        records.sort_by_cached_key(|it| (time(it), it.observed_at, it.position, it.encode_to_vec()));
        // A repeated log record may have had another position in its request.
        let mut seen = HashSet::with_capacity(records.len());
        records.into_iter().filter_map(|it| it.event).filter(|it| seen.insert(it.encode_to_vec())).collect()
    }
}

fn without_time(event: &Event) -> Vec<u8> {
    Event { time_unix_nano: 0, ..event.clone() }.encode_to_vec()
}

fn damaged(error: prost::DecodeError) -> Malformed {
    Malformed { message: format!("held spans or log records are damaged: {error}") }
}
