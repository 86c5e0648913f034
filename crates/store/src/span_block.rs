//! Span blocks: the spans of a trace in one row, encoded as a protocol buffer.
//!
//! A row for each span takes twice the space and more work. A late span replaces the whole block, so a block is limited in
//! size. Spans that are too many or too large for a block are rows of `span`.

use entities::{span, span_block};
use prost::{DecodeError, Message};
use sea_orm::DbErr;
use uuid::Uuid;

use crate::ids::otel_span_id;

/// Maximum number of spans of a block.
pub const MAX_BLOCK_SPANS: usize = 128;
/// Maximum size in bytes of the encoded spans of a block.
const MAX_BLOCK_BYTES: usize = 64 * 1024;
/// Maximum size in bytes of the texts of a block's spans after decoding. Spans share encoded texts, but not decoded ones.
const MAX_DECODED_TEXT_BYTES: usize = 256 * 1024;

/// Maximum number of blocks that one statement reads: encoded at most 5 MiB, decoded at most 20 MiB.
pub(crate) const BLOCKS_PER_STATEMENT: usize = 64;

/// The encoded spans of a trace. Optional positions are counted from 1; 0 means none.
#[derive(Clone, PartialEq, Message)]
struct EncodedSpans {
    /// The start of the first span, microseconds.
    #[prost(sint64, tag = "1")]
    started_at: i64,
    /// The time at which the first span was stored, microseconds.
    #[prost(sint64, tag = "2")]
    created_at: i64,
    /// The distinct names, kinds, models and hints of the spans.
    #[prost(string, repeated, tag = "3")]
    texts: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    spans: Vec<EncodedSpan>,
}

/// An encoded span. The most frequent fields have the tags up to 15, which take one byte.
#[derive(Clone, PartialEq, Message)]
struct EncodedSpan {
    /// Empty if the ID is derived from that of OpenTelemetry.
    #[prost(bytes = "vec", tag = "16")]
    id: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "1")]
    otel_span_id: Option<Vec<u8>>,
    /// Optional position of the parent in the block.
    #[prost(uint32, tag = "2")]
    parent: u32,
    /// The ID of a parent that is not in the block; otherwise empty.
    #[prost(bytes = "vec", tag = "17")]
    parent_id: Vec<u8>,
    /// Position of the name in `texts`.
    #[prost(uint32, tag = "3")]
    name: u32,
    /// Position of the kind in `texts`.
    #[prost(uint32, tag = "4")]
    kind: u32,
    /// Optional position of the model in `texts`.
    #[prost(uint32, tag = "5")]
    model: u32,
    /// Microseconds after the start of the first span.
    #[prost(sint64, tag = "6")]
    started_after: i64,
    /// Microseconds from the start to the end.
    #[prost(sint64, optional, tag = "7")]
    duration: Option<i64>,
    #[prost(sint64, optional, tag = "8")]
    latency_ms: Option<i64>,
    #[prost(sint64, optional, tag = "9")]
    prompt_tokens: Option<i64>,
    #[prost(sint64, optional, tag = "10")]
    completion_tokens: Option<i64>,
    #[prost(sint64, optional, tag = "11")]
    cost: Option<i64>,
    #[prost(sfixed64, optional, tag = "12")]
    response_hash: Option<i64>,
    /// Optional position of the text block in the row's list.
    #[prost(uint32, tag = "13")]
    body: u32,
    #[prost(int32, tag = "14")]
    body_index: i32,
    /// Microseconds after the first span was stored.
    #[prost(sint64, tag = "15")]
    created_after: i64,
    #[prost(bool, tag = "18")]
    is_uncounted: bool,
    #[prost(bool, tag = "19")]
    is_cost_uncounted: bool,
    #[prost(string, optional, tag = "20")]
    error: Option<String>,
    #[prost(sint32, optional, tag = "21")]
    failure: Option<i32>,
    /// Optional position of the hints in `texts`.
    #[prost(uint32, tag = "22")]
    hints: u32,
    #[prost(sint64, optional, tag = "23")]
    cached_input_tokens: Option<i64>,
    #[prost(sint64, optional, tag = "24")]
    cache_write_tokens: Option<i64>,
    #[prost(sint64, optional, tag = "25")]
    reasoning_tokens: Option<i64>,
    #[prost(sint32, optional, tag = "26")]
    missing_texts: Option<i32>,
}

/// Returns the block with these spans of a trace, in their order. Returns `None` if they are too many or too large, or if
/// there are none.
pub fn pack(spans: &[span::Model]) -> Option<span_block::Model> {
    let first = spans.first().filter(|_| spans.len() <= MAX_BLOCK_SPANS)?;
    if spans.iter().map(text_bytes).sum::<usize>() > MAX_DECODED_TEXT_BYTES {
        return None;
    }
    let mut texts: Vec<&str> = Vec::with_capacity(2 * spans.len());
    let mut bodies: Vec<Uuid> = Vec::new();
    let encoded = spans.iter().map(|span| {
        let has_derived_id = derived_id(span) == Some(span.id);
        let parent = span.parent_id.and_then(|id| spans.iter().position(|it| it.id == id));
        EncodedSpan {
            id: if has_derived_id { Vec::new() } else { span.id.into_bytes().to_vec() },
            otel_span_id: span.otel_span_id.clone(),
            parent: parent.map_or(0, |it| encode_position(it + 1)),
            parent_id: match span.parent_id {
                Some(id) if parent.is_none() => id.into_bytes().to_vec(),
                _ => Vec::new(),
            },
            name: encode_position(find_or_add(&mut texts, &span.name)),
            kind: encode_position(find_or_add(&mut texts, &span.kind)),
            model: span.model.as_deref().map_or(0, |it| encode_position(find_or_add(&mut texts, it) + 1)),
            started_after: span.started_at.wrapping_sub(first.started_at),
            duration: span.ended_at.map(|it| it.wrapping_sub(span.started_at)),
            latency_ms: span.latency_ms,
            prompt_tokens: span.prompt_tokens,
            completion_tokens: span.completion_tokens,
            cost: span.cost,
            response_hash: span.response_hash,
            body: span.body_id.map_or(0, |it| encode_position(find_or_add(&mut bodies, it) + 1)),
            body_index: span.body_index,
            created_after: span.created_at.wrapping_sub(first.created_at),
            is_uncounted: !span.counted,
            is_cost_uncounted: !span.cost_counted,
            error: span.error.clone(),
            failure: span.failure.map(Into::into),
            hints: span.hints.as_deref().map_or(0, |it| encode_position(find_or_add(&mut texts, it) + 1)),
            cached_input_tokens: span.cached_input_tokens,
            cache_write_tokens: span.cache_write_tokens,
            reasoning_tokens: span.reasoning_tokens,
            missing_texts: span.missing_texts.map(Into::into),
        }
    });
    let encoded: Vec<EncodedSpan> = encoded.collect();
    let data = EncodedSpans {
        started_at: first.started_at,
        created_at: first.created_at,
        texts: texts.into_iter().map(str::to_owned).collect(),
        spans: encoded,
    };
    (data.encoded_len() <= MAX_BLOCK_BYTES).then(|| span_block::Model {
        tenant_id: first.tenant_id,
        trace_key: first.trace_key,
        trace_id: first.trace_id,
        body_ids: bodies.iter().flat_map(|it| it.into_bytes()).collect(),
        data: data.encode_to_vec(),
    })
}

/// Returns the spans of a block.
///
/// # Errors
/// Fails when the block is damaged.
pub fn unpack(block: &span_block::Model) -> Result<Vec<span::Model>, DbErr> {
    let damaged = |problem: &str| {
        DbErr::Custom(format!("the span block of trace {} can't be read: {problem}", block.trace_id))
    };
    let EncodedSpans { started_at, created_at, texts, spans } =
        EncodedSpans::decode(block.data.as_slice()).map_err(|it: DecodeError| damaged(&it.to_string()))?;
    let bodies = body_ids(block);
    let ids: Option<Vec<Uuid>> = spans.iter().map(|it| it.id(block.trace_id)).collect();
    let ids = ids.ok_or_else(|| damaged("a span has no ID"))?;
    let unpacked = spans.into_iter().zip(&ids).map(|(span, id)| {
        let text = |at: u32| Some(texts.get(usize::try_from(at).ok()?)?.clone());
        let started_at = started_at.wrapping_add(span.started_after);
        Some(span::Model {
            tenant_id: block.tenant_id,
            trace_key: block.trace_key,
            trace_id: block.trace_id,
            id: *id,
            parent_id: match span.parent_id.as_slice() {
                [] => decode_optional(span.parent, |at| ids.get(at).copied())?,
                id => Some(Uuid::from_slice(id).ok()?),
            },
            name: text(span.name)?,
            kind: text(span.kind)?,
            model: decode_optional(span.model, |at| texts.get(at).cloned())?,
            started_at,
            ended_at: span.duration.map(|it| started_at.wrapping_add(it)),
            latency_ms: span.latency_ms,
            error: span.error,
            failure: to_small_integer(span.failure)?,
            prompt_tokens: span.prompt_tokens,
            completion_tokens: span.completion_tokens,
            cost: span.cost,
            counted: !span.is_uncounted,
            cost_counted: !span.is_cost_uncounted,
            response_hash: span.response_hash,
            otel_span_id: span.otel_span_id,
            hints: decode_optional(span.hints, |at| texts.get(at).cloned())?,
            body_id: decode_optional(span.body, |at| bodies.get(at).copied())?,
            body_index: span.body_index,
            created_at: created_at.wrapping_add(span.created_after),
            cached_input_tokens: span.cached_input_tokens,
            cache_write_tokens: span.cache_write_tokens,
            reasoning_tokens: span.reasoning_tokens,
            missing_texts: to_small_integer(span.missing_texts)?,
        })
    });
    let unpacked: Option<Vec<span::Model>> = unpacked.collect();
    unpacked.ok_or_else(|| damaged("a position is out of range"))
}

/// Returns the IDs of the text blocks with the texts of a block's spans.
pub fn body_ids(block: &span_block::Model) -> Vec<Uuid> {
    block.body_ids.as_chunks().0.iter().map(|it| Uuid::from_bytes(*it)).collect()
}

impl EncodedSpan {
    fn id(&self, trace: Uuid) -> Option<Uuid> {
        match self.id.as_slice() {
            [] => Some(otel_span_id(trace, self.otel_span_id.as_deref()?.try_into().ok()?)),
            id => Uuid::from_slice(id).ok(),
        }
    }
}

/// Returns the ID that is derived from the OpenTelemetry ID of a span.
fn derived_id(span: &span::Model) -> Option<Uuid> {
    Some(otel_span_id(span.trace_id, span.otel_span_id.as_deref()?.try_into().ok()?))
}

/// Returns the size of the texts in the row of a span, in bytes.
fn text_bytes(span: &span::Model) -> usize {
    let optional = [&span.model, &span.error, &span.hints].into_iter().flatten();
    span.name.len() + span.kind.len() + optional.map(String::len).sum::<usize>()
}

/// Returns the position of a value in a list, to which it is added if it is new.
fn find_or_add<T: PartialEq>(values: &mut Vec<T>, value: T) -> usize {
    values.iter().position(|it| *it == value).unwrap_or_else(|| {
        values.push(value);
        values.len() - 1
    })
}

/// Returns a position as it is encoded. Positions are small, because a block is.
fn encode_position(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Returns the value at an optional position; `None` if the position is out of range.
fn decode_optional<T>(position: u32, value: impl FnOnce(usize) -> Option<T>) -> Option<Option<T>> {
    match usize::try_from(position).ok()?.checked_sub(1) {
        Some(at) => value(at).map(Some),
        None => Some(None),
    }
}

/// Returns a small integer; `None` if it is too large.
fn to_small_integer(value: Option<i32>) -> Option<Option<i16>> {
    value.map(i16::try_from).transpose().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(trace: Uuid, number: u8, rng: &mut fastrand::Rng) -> span::Model {
        let otel = rng.bool().then_some([number; 8]);
        let integer = |rng: &mut fastrand::Rng| match rng.u8(..4) {
            0 => None,
            1 => Some(rng.i64(..)),
            _ => Some(rng.i64(..2_000)),
        };
        let text = |rng: &mut fastrand::Rng| format!("text {}", rng.u8(..5));
        span::Model {
            tenant_id: Uuid::from_u128(1),
            trace_key: 7,
            trace_id: trace,
            id: otel.map_or_else(|| Uuid::from_u128(rng.u128(..)), |it| otel_span_id(trace, it)),
            parent_id: None,
            name: text(rng),
            kind: text(rng),
            model: rng.bool().then(|| text(rng)),
            started_at: integer(rng).unwrap_or(i64::MAX),
            ended_at: integer(rng),
            latency_ms: integer(rng),
            error: rng.bool().then(|| text(rng)),
            failure: rng.bool().then(|| rng.i16(..)),
            prompt_tokens: integer(rng),
            completion_tokens: integer(rng),
            cost: integer(rng),
            counted: rng.bool(),
            cost_counted: rng.bool(),
            response_hash: integer(rng),
            otel_span_id: otel.map(|it| it.to_vec()),
            hints: rng.bool().then(|| text(rng)),
            body_id: rng.bool().then(|| Uuid::from_u128(rng.u128(..3))),
            body_index: rng.i32(..100),
            created_at: integer(rng).unwrap_or(i64::MIN),
            cached_input_tokens: integer(rng),
            cache_write_tokens: integer(rng),
            reasoning_tokens: integer(rng),
            missing_texts: rng.bool().then(|| rng.i16(..)),
        }
    }

    fn random_spans(rng: &mut fastrand::Rng) -> Vec<span::Model> {
        let trace = Uuid::from_u128(rng.u128(..));
        let mut spans: Vec<span::Model> = (0..rng.u8(1..20)).map(|it| span(trace, it, rng)).collect();
        let ids: Vec<Uuid> = spans.iter().map(|it| it.id).chain([Uuid::from_u128(rng.u128(..))]).collect();
        for span in &mut spans {
            span.parent_id = rng.bool().then(|| ids[rng.usize(..ids.len())]);
        }
        spans
    }

    #[test]
    fn block_returns_its_spans() {
        let mut rng = fastrand::Rng::with_seed(9);
        for _ in 0..300 {
            let spans = random_spans(&mut rng);
            let block = pack(&spans).unwrap();
            assert_eq!(unpack(&block).unwrap(), spans);
            let mut bodies: Vec<Uuid> = spans.iter().filter_map(|it| it.body_id).collect();
            bodies.sort_unstable();
            bodies.dedup();
            let mut listed = body_ids(&block);
            listed.sort_unstable();
            assert_eq!(listed, bodies);
        }
    }

    #[test]
    fn many_or_large_spans_have_no_block() {
        let mut rng = fastrand::Rng::with_seed(10);
        let trace = Uuid::from_u128(5);
        assert_eq!(pack(&[]), None);
        let span = span(trace, 1, &mut rng);
        assert!(pack(&vec![span.clone(); MAX_BLOCK_SPANS]).is_some());
        assert_eq!(pack(&vec![span.clone(); MAX_BLOCK_SPANS + 1]), None);
        let large = span::Model { error: Some("x".repeat(MAX_BLOCK_BYTES)), ..span.clone() };
        assert_eq!(pack(&[large]), None);
        // The encoded spans share the name.
        let named = span::Model { name: "x".repeat(60_000), error: None, ..span };
        assert!(pack(&vec![named.clone(); 4]).is_some());
        assert_eq!(pack(&vec![named; 5]), None);
    }

    #[test]
    fn damaged_block_is_an_error() {
        let mut rng = fastrand::Rng::with_seed(11);
        for _ in 0..300 {
            let block = pack(&random_spans(&mut rng)).unwrap();
            let mut damaged = block.clone();
            let at = rng.usize(..damaged.data.len());
            match rng.bool() {
                true => damaged.data.truncate(at),
                false => damaged.data[at] ^= 1 << rng.u8(..8),
            }
            // Other spans or an error, but no panic.
            _ = unpack(&damaged);
        }
        let block = pack(&random_spans(&mut rng)).unwrap();
        let cut = span_block::Model { data: block.data[..block.data.len() - 1].to_vec(), ..block };
        let error = unpack(&cut).unwrap_err().to_string();
        assert!(error.contains(&cut.trace_id.to_string()), "{error}");
    }
}
