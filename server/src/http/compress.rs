//! Packing of answers for callers that ask for it.

use tower_http::compression::{
    CompressionLayer, CompressionLevel,
    predicate::{NotForContentType, Predicate, SizeAbove},
};

/// Bytes below which packing saves nobody anything: the answer fits into one packet anyway.
const SMALLEST: u64 = 1_024;

/// gzip or zstd, as `Accept-Encoding` says. Events are not packed, because each has to leave
/// at once; nor are pictures, which are.
pub fn layer() -> CompressionLayer<impl Predicate> {
    let worth_it =
        SizeAbove::new(SMALLEST).and(NotForContentType::SSE).and(NotForContentType::const_new("image/"));
    // The cheapest level already takes away four fifths of a page of traces.
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worth_it)
}
