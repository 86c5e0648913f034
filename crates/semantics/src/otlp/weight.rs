//! Computes the memory of a decoded request before decoding it.
//!
//! An empty span has two bytes on the wire and some hundred in memory, so a small body could require
//! gigabytes. This module walks the lengths of the wire format without copying and adds up the size of
//! the decoded structures.

use api::object::count_structures;

/// Maximum memory of the decoded structures of a request in bytes, without texts.
pub(super) const MAX_DECODED_BYTES: usize = 96 * 1024 * 1024;

/// Memory of a decoded JSON structure in bytes.
const JSON_STRUCTURE_BYTES: usize = 256;
/// Maximum number of JSON structures of a request that is parsed as a tree of values, where a structure
/// takes several times the memory.
const MAX_LENIENT_STRUCTURES: usize = 100_000;

/// Structures of a request that can be numerous.
#[derive(Clone, Copy)]
enum Structure {
    Request,
    LogRequest,
    HeldSpan,
    HeldRecords,
    HeldRecord,
    ResourceSpans,
    ResourceLogs,
    Resource,
    ScopeSpans,
    ScopeLogs,
    Scope,
    Span,
    LogRecord,
    Event,
    Link,
    Attribute,
    Value,
    List,
}

impl Structure {
    /// Returns the structure that a length-delimited field contains.
    fn field(self, number: u64) -> Option<Self> {
        Some(match (self, number) {
            (Self::Request, 1) => Self::ResourceSpans,
            (Self::LogRequest, 1) => Self::ResourceLogs,
            (Self::ResourceSpans | Self::ResourceLogs | Self::HeldSpan, 1) => Self::Resource,
            (Self::HeldSpan, 2) => Self::Scope,
            (Self::HeldSpan, 3) => Self::Span,
            (Self::HeldRecords, 1) => Self::HeldRecord,
            (Self::HeldRecord, 4) => Self::Event,
            (Self::ResourceSpans, 2) => Self::ScopeSpans,
            (Self::ResourceLogs, 2) => Self::ScopeLogs,
            (Self::ScopeSpans | Self::ScopeLogs, 1) => Self::Scope,
            (Self::ScopeLogs, 2) => Self::LogRecord,
            (Self::ScopeSpans, 2) => Self::Span,
            (Self::Span, 11) => Self::Event,
            (Self::Span, 13) => Self::Link,
            (Self::Resource, 1)
            | (Self::Scope, 3)
            | (Self::Span, 9)
            | (Self::Event, 3)
            | (Self::Link, 4)
            | (Self::LogRecord, 6) => Self::Attribute,
            (Self::Attribute, 2) | (Self::LogRecord, 5) => Self::Value,
            (Self::Value, 5 | 6) => Self::List,
            // Same for a list of values and a list of pairs; a pair is parsed as a value in turn.
            (Self::List, 1) => Self::Attribute,
            _ => return None,
        })
    }

    /// Returns the size of its structure in memory, rounded up.
    fn bytes(self) -> usize {
        match self {
            Self::Span | Self::LogRecord => 320,
            Self::Event
            | Self::Link
            | Self::ResourceSpans
            | Self::ResourceLogs
            | Self::ScopeSpans
            | Self::ScopeLogs
            | Self::Scope => 160,
            Self::Attribute => 96,
            Self::HeldRecord => 96,
            Self::Request | Self::LogRequest | Self::HeldSpan | Self::HeldRecords => 32,
            Self::Resource | Self::Value | Self::List => 32,
        }
    }
}

/// Returns the memory of the decoded structures of a trace export in protobuf in bytes; stops counting beyond the
/// limit. A damaged request is measured up to the damage, where decoding stops too.
pub(super) fn decoded_bytes(body: &[u8]) -> usize {
    bytes_of(Structure::Request, body)
}

/// Like [`decoded_bytes`], for a log export.
pub(super) fn decoded_bytes_of_logs(body: &[u8]) -> usize {
    bytes_of(Structure::LogRequest, body)
}

/// Like [`decoded_bytes`], for a held span.
pub(super) fn decoded_bytes_of_held_span(data: &[u8]) -> usize {
    bytes_of(Structure::HeldSpan, data)
}

/// Like [`decoded_bytes`], for held log records.
pub(super) fn decoded_bytes_of_held_records(data: &[u8]) -> usize {
    bytes_of(Structure::HeldRecords, data)
}

fn bytes_of(request: Structure, body: &[u8]) -> usize {
    let mut total = 0_usize;
    let mut open = vec![(request, body)];
    while let Some((part, bytes)) = open.pop() {
        let mut rest = bytes;
        while let Some((number, content, after)) = field(rest) {
            rest = after;
            if let (Some(content), Some(child)) = (content, part.field(number)) {
                total += child.bytes();
                if total > MAX_DECODED_BYTES {
                    return total;
                }
                // An element of a list is also parsed as a value: its fields 5 and 6 nest further.
                if !content.is_empty() {
                    open.push((child, content));
                    if matches!(part, Structure::List) {
                        open.push((Structure::Value, content));
                    }
                }
            }
        }
    }
    total
}

/// Like [`decoded_bytes`], for JSON.
pub(super) fn decoded_bytes_of_json(body: &[u8]) -> usize {
    count_structures(body) * JSON_STRUCTURE_BYTES
}

/// Returns whether a JSON request may be parsed as a tree of values.
pub(super) fn fits_as_values(body: &[u8]) -> bool {
    count_structures(body) <= MAX_LENIENT_STRUCTURES
}

/// A field: its number, its content if length-delimited, and the remaining bytes.
type WireField<'a> = (u64, Option<&'a [u8]>, &'a [u8]);

fn field(bytes: &[u8]) -> Option<WireField<'_>> {
    let (key, rest) = varint(bytes)?;
    let number = key >> 3;
    match key & 7 {
        0 => varint(rest).map(|(_, rest)| (number, None, rest)),
        1 => rest.get(8..).map(|rest| (number, None, rest)),
        2 => {
            let (length, rest) = varint(rest)?;
            let (content, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            Some((number, Some(content), rest))
        }
        5 => rest.get(4..).map(|rest| (number, None, rest)),
        // Groups are not part of OTLP; the decoder rejects or skips them.
        _ => None,
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (i, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(u32::try_from(i * 7).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[i + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a message with `content` repeated `times` times in one field.
    fn repeated(number: u8, content: &[u8], times: usize) -> Vec<u8> {
        let mut one = vec![number << 3 | 2];
        let mut length = content.len();
        loop {
            let low = u8::try_from(length & 0x7f).unwrap();
            length >>= 7;
            one.push(if length == 0 { low } else { low | 0x80 });
            if length == 0 {
                break;
            }
        }
        one.extend(content);
        one.repeat(times)
    }

    fn is_within_limit(body: &[u8]) -> bool {
        decoded_bytes(body) <= MAX_DECODED_BYTES
    }

    #[test]
    fn usual_request_is_within_memory_limit() {
        let span = repeated(9, b"\x0a\x01k\x12\x03\x0a\x01v", 40);
        let request = repeated(1, &repeated(2, &repeated(2, &span, 15_000), 1), 1);
        assert!(is_within_limit(&request));
    }

    #[test]
    fn empty_structures_count_towards_memory_limit() {
        let spans = repeated(2, b"", 1_000_000);
        assert!(!is_within_limit(&repeated(1, &repeated(2, &spans, 1), 1)));
        let values = repeated(9, &repeated(2, &repeated(5, &repeated(1, b"", 4_000_000), 1), 1), 1);
        assert!(!is_within_limit(&repeated(1, &repeated(2, &repeated(2, &values, 1), 1), 1)));
        assert!(decoded_bytes_of_json(&b"{}".repeat(3_000_000)) > MAX_DECODED_BYTES);
    }

    #[test]
    fn damaged_request_is_measured_up_to_damage() {
        let request = repeated(1, &repeated(2, b"\x12\x05abc", 1), 1);
        for cut in 0..request.len() {
            assert!(is_within_limit(&request[..cut]));
        }
        assert!(is_within_limit(&[0xff; 32]));
    }
}
