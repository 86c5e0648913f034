//! Decodes OTLP log exports, and joins log records with their spans.
//!
//! Instrumentations send the messages, exceptions and evaluations of a model call as events of its span or as log records
//! that name the span. A log record is turned into an event ([`record`]), and the span is converted with the events of
//! both ([`join`]), so that a trace does not depend on the way of sending.

mod decode;
mod join;
mod record;

pub use decode::{DecodedLogExport, DecodedLogs, LogGroup, TraceRecords};
pub(super) use join::SpanToJoin;
pub use join::{LogJoin, RecordData, SpanAdditions, SplitRecords, split_records};
