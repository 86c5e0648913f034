//! The rules by which log records are joined with the spans of a trace.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    sync::{Arc, Mutex, PoisonError},
};

use entities::{
    held_input::{self, HeldKind},
    span, trace,
};
use semantics::otlp::LogJoin;
use store::{
    held_input::data,
    otel_span_id,
    text_block::{MISSING_INPUT, MISSING_OUTPUT, has_text},
    text_hash,
    traces::{JoinRules, JoinedLogs, TraceChunk},
};
use uuid::Uuid;

use crate::ingest::{
    exported_spans::EventRows,
    external_evaluations,
    prices::PriceBook,
    spans::{Receipt, empty_trace, to_chunks},
};

/// Joins log records with the spans of one tenant.
#[derive(Debug)]
pub struct LogJoins {
    prices: Arc<PriceBook>,
    now: i64,
    /// Number of late messages of each project.
    late_messages: Mutex<BTreeMap<Uuid, usize>>,
}

impl LogJoins {
    /// Returns the rules for a tenant with these prices, at `now` (microseconds).
    pub fn new(prices: Arc<PriceBook>, now: i64) -> Self {
        Self { prices, now, late_messages: Mutex::default() }
    }

    /// Returns, for each project, the number of log records with messages for spans that lack them and are no longer kept.
    pub fn into_late_messages(self) -> BTreeMap<Uuid, usize> {
        self.late_messages.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JoinRules for LogJoins {
    fn join(
        &self,
        trace: &trace::Model,
        spans: &[span::Model],
        held: &[held_input::Model],
    ) -> io::Result<JoinedLogs> {
        let by_response: HashMap<i64, [u8; 8]> =
            spans.iter().filter_map(|it| Some((it.response_hash?, otel_id(it)?))).collect();
        let span_of = |response: &str| by_response.get(&text_hash(response)).copied();
        let stored: HashMap<[u8; 8], &span::Model> =
            spans.iter().filter_map(|it| Some((otel_id(it)?, it))).collect();
        let mut all = LogJoin::default();
        let (mut open, mut joined) = (HashSet::new(), Vec::new());
        for row in held {
            let data = data(row)?;
            if row.kind == HeldKind::Spans.code() {
                all.add_spans(&data).map_err(damaged)?;
                continue;
            }
            all.add_records(&data).map_err(damaged)?;
            if row.joined {
                continue;
            }
            let mut of_row = LogJoin::default();
            of_row.add_records(&data).map_err(damaged)?;
            let unassigned = of_row.assign_by_response(span_of);
            let (found, missing): (Vec<_>, Vec<_>) =
                of_row.span_ids().into_iter().partition(|it| stored.contains_key(it));
            if unassigned == 0 && missing.is_empty() {
                joined.push(row.id);
            }
            open.extend(found);
        }
        all.assign_by_response(span_of);
        let mut open: Vec<[u8; 8]> = open.into_iter().collect();
        open.sort_unstable();
        let chunk = if open.is_empty() { None } else { Some(self.chunk(trace, &stored, all, open)?) };
        Ok(JoinedLogs { chunk, joined })
    }
}

impl LogJoins {
    /// Returns the changes of these spans.
    fn chunk(
        &self,
        trace: &trace::Model,
        stored: &HashMap<[u8; 8], &span::Model>,
        mut join: LogJoin,
        open: Vec<[u8; 8]>,
    ) -> io::Result<TraceChunk> {
        let receipt = Receipt { tenant_id: trace.tenant_id, project_id: trace.project_id, now: self.now };
        let (mut drafts, mut others) = (Vec::new(), Vec::new());
        for id in open {
            match join.convert(id) {
                Some(draft) => drafts.push(draft),
                None => others.push(id),
            }
        }
        let mut chunk = match to_chunks(drafts, receipt, &self.prices)?.pop() {
            Some(chunk) => chunk,
            None => TraceChunk::of(empty_trace(receipt, trace.id)),
        };
        for id in others {
            let Some(span) = stored.get(&id) else { continue };
            let added = join.additions(id);
            if !has_text(span.missing_texts, MISSING_INPUT) || !has_text(span.missing_texts, MISSING_OUTPUT) {
                let mut late = self.late_messages.lock().unwrap_or_else(PoisonError::into_inner);
                *late.entry(trace.project_id).or_default() += added.dropped_messages;
            }
            let mut events = EventRows::of_span(receipt.tenant_id, (trace.id, span.id));
            let fallback = span.ended_at.unwrap_or(span.started_at);
            chunk.events.extend(added.events.into_iter().map(|it| events.row(it, fallback)));
            let owner = (receipt.tenant_id, receipt.project_id);
            let evaluations =
                external_evaluations::rows(&added.evaluations, owner, (trace.id, span.id), self.now);
            chunk.evaluations.extend(evaluations);
        }
        Ok(chunk)
    }
}

/// Returns the OpenTelemetry ID of a span that was received under it.
fn otel_id(span: &span::Model) -> Option<[u8; 8]> {
    let id: [u8; 8] = span.otel_span_id.as_deref()?.try_into().ok()?;
    (otel_span_id(span.trace_id, id) == span.id).then_some(id)
}

fn damaged(error: semantics::otlp::Malformed) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.message)
}
