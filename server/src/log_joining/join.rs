//! The rules by which log records are joined with the spans of a trace.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
    sync::{Arc, Mutex, PoisonError},
};

use api::SpanType;
use entities::{
    held_input::{self, HeldKind},
    span, trace,
};
use semantics::otlp::{LogJoin, RecordData, SplitRecords, split_records};
use store::{
    held_input::{HeldFor, data, records_row},
    otel_span_id,
    text_block::{MISSING_INPUT, MISSING_OUTPUT, has_text},
    text_hash,
    traces::{JoinRules, JoinedLogs, SplitRow, TraceChunk},
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
    /// Number of spans with late messages of each project.
    late_messages: Mutex<BTreeMap<Uuid, i64>>,
}

impl LogJoins {
    /// Returns the rules for a tenant with these prices, at `now` (microseconds).
    pub fn new(prices: Arc<PriceBook>, now: i64) -> Self {
        Self { prices, now, late_messages: Mutex::default() }
    }

    /// Returns, for each project, the number of spans that lack messages and are no longer held when they are received.
    pub fn into_late_messages(self) -> BTreeMap<Uuid, i64> {
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
        // Of several spans with one response, the first model call has its evaluations.
        let mut sorted: Vec<(&span::Model, [u8; 8])> =
            spans.iter().filter_map(|it| Some((it, otel_id(it)?))).collect();
        sorted.sort_by_key(|(it, _)| (it.kind != SpanType::Llm.as_str(), it.started_at, it.id));
        let mut by_response: HashMap<i64, [u8; 8]> = HashMap::new();
        for (span, id) in &sorted {
            if let Some(response) = span.response_hash {
                by_response.entry(response).or_insert(*id);
            }
        }
        let span_of = |response: &str| by_response.get(&text_hash(response)).copied();
        let stored: HashMap<[u8; 8], &span::Model> = sorted.iter().map(|(it, id)| (*id, *it)).collect();
        let ids: HashMap<Uuid, [u8; 8]> = sorted.iter().map(|(it, id)| (it.id, *id)).collect();
        let mut all = LogJoin::default();
        let (mut open, mut changes) = (BTreeSet::new(), JoinedLogs::default());
        for row in held {
            let data = data(row)?;
            if row.kind == HeldKind::Spans.code() {
                if let Some(id) = ids.get(&row.id) {
                    all.add_span(*id, data);
                }
                continue;
            }
            if row.joined {
                all.add_records(&data).map_err(damaged)?;
                continue;
            }
            let parts = split_records(&data, |it| stored.contains_key(&it), span_of).map_err(damaged)?;
            let SplitRecords { span_ids, found: Some(found), missing } = parts else { continue };
            open.extend(span_ids);
            all.add_records(&found.data).map_err(damaged)?;
            match missing {
                None => changes.joined.push(row.id),
                Some(missing) => {
                    let parts = [part_of(row, &found, true)?, part_of(row, &missing, false)?];
                    changes.split.push(SplitRow { id: row.id, parts });
                }
            }
        }
        all.assign_by_response(span_of);
        if !open.is_empty() {
            changes.chunk = Some(self.chunk(trace, &stored, all, open)?);
        }
        Ok(changes)
    }
}

/// Returns the row of a part of the log records of a row.
fn part_of(row: &held_input::Model, part: &RecordData, joined: bool) -> io::Result<held_input::Model> {
    let held_for = HeldFor { tenant_id: row.tenant_id, project_id: row.project_id, now: row.received_at };
    let RecordData { count, decoded_bytes, data, .. } = part;
    let part = records_row(held_for, row.trace_id, *count, data, *decoded_bytes)?;
    Ok(held_input::Model { joined, ..part })
}

impl LogJoins {
    /// Returns the changes of these spans.
    fn chunk(
        &self,
        trace: &trace::Model,
        stored: &HashMap<[u8; 8], &span::Model>,
        mut join: LogJoin,
        open: BTreeSet<[u8; 8]>,
    ) -> io::Result<TraceChunk> {
        let receipt = Receipt { tenant_id: trace.tenant_id, project_id: trace.project_id, now: self.now };
        let (mut drafts, mut others) = (Vec::new(), Vec::new());
        for id in open {
            match join.convert(id).map_err(damaged)? {
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
            let lacks_text =
                !has_text(span.missing_texts, MISSING_INPUT) || !has_text(span.missing_texts, MISSING_OUTPUT);
            if added.has_messages && lacks_text {
                let mut late = self.late_messages.lock().unwrap_or_else(PoisonError::into_inner);
                *late.entry(trace.project_id).or_default() += 1;
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
