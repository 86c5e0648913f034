//! Compression of responses.

use axum::http::{HeaderMap, HeaderValue, header};
use tower_http::compression::{
    CompressionLayer, CompressionLevel,
    predicate::{NotForContentType, Predicate, SizeAbove},
};

/// Minimum size in bytes of a compressed response; smaller ones fit into one packet anyway.
const MIN_COMPRESSED_BYTES: u64 = 1_024;

/// Returns the layer that compresses with gzip or zstd according to `Accept-Encoding`. Events are not
/// compressed, because each must be sent immediately; nor are images, which are compressed already.
pub fn layer() -> CompressionLayer<impl Predicate> {
    let worth_it = SizeAbove::new(MIN_COMPRESSED_BYTES)
        .and(NotForContentType::SSE)
        .and(NotForContentType::const_new("image/"));
    // The fastest level already saves four fifths of a page of traces.
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worth_it)
}

/// Makes an uncompressed response acceptable. A client that excludes every encoding would otherwise get
/// 406 after its request was executed.
pub fn accept_identity(headers: &mut HeaderMap) {
    if headers.contains_key(header::ACCEPT_ENCODING) {
        headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static("identity;q=0.001"));
    }
}
