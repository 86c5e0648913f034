//! Packing of answers for callers that ask for it.

use axum::http::{HeaderMap, HeaderValue, header};
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

/// Makes a plain answer acceptable at the least. Who rules out everything would otherwise be
/// answered 406 after its request had been carried out.
pub fn accept_plain(headers: &mut HeaderMap) {
    if headers.contains_key(header::ACCEPT_ENCODING) {
        headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static("identity;q=0.001"));
    }
}
