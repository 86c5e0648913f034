//! The texts of a chunk, as text blocks.

use std::io;

use entities::{body, span, trace};
use store::text_block::{Entry, pack};
use uuid::Uuid;

/// Compresses the texts of a trace and of its spans, and sets in their rows where the texts are and which are
/// missing. The texts of the trace itself come first, so that they are decompressed alone.
///
/// `span_texts` has one entry for each span, in the same order.
///
/// # Errors
///
/// Fails when the compressor runs out of memory.
pub fn pack_texts(
    (trace, trace_texts): (&mut trace::Model, Option<&Entry>),
    (spans, span_texts): (&mut [span::Model], &[Entry]),
    tenant_id: Uuid,
) -> io::Result<Vec<body::Model>> {
    let (packed, places) = pack(trace_texts.into_iter().chain(span_texts))?;
    let mut places = places.into_iter();
    if trace_texts.is_some()
        && let Some((body_id, index)) = places.next()
    {
        trace.body_id = Some(body_id);
        trace.body_index = index;
    }
    for ((span, texts), (body_id, index)) in spans.iter_mut().zip(span_texts).zip(places) {
        span.missing_texts = texts.missing();
        span.body_id = Some(body_id);
        span.body_index = index;
    }
    Ok(packed.into_iter().map(|it| body::Model { tenant_id, id: it.id, data: it.data }).collect())
}
