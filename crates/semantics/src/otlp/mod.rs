//! Converts OTLP trace exports, in protobuf or JSON, to [`SpanDraft`]s, and joins log exports with them.
//!
//! Parsing is [`from_protobuf`] and [`from_json`]; `convert` maps a span; each attribute convention has
//! its own file. Writing is [`export`]. An invalid span is rejected alone; a body that cannot be parsed
//! at all is [`Malformed`].
//!
//! **Invariants:** no I/O, no clock, and no input causes a panic or unbounded recursion: both decoders
//! limit depth, and all later code only walks the decoded values.

mod adk;
mod answer;
mod attributes;
mod convert;
mod events;
pub mod export;
mod genai;
mod held;
mod hints;
mod indexed;
mod instructions;
mod json;
mod keys;
mod langfuse;
mod langsmith;
mod litellm;
mod llamaindex;
mod logfire;
mod logs;
mod mcp;
mod memory;
mod messages;
mod metadata;
mod mlflow;
mod openinference;
mod openlit;
mod openllmetry;
mod provider;
mod raw;
mod record;
pub mod redact;
mod rejection;
mod strands;
mod text;
mod tokens;
mod value;
mod vectors;
mod vercel;
mod weight;
mod wrapped;

use std::marker::PhantomData;

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value,
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans},
};
use prost::Message as _;
use serde::de::DeserializeOwned;

use crate::draft::{HeldSpan, ResourceGroup, SpanDraft};
pub use held::decoded_span_bytes;
pub use logs::{
    DecodedLogExport, DecodedLogs, LogGroup, LogJoin, RecordData, SpanAdditions, SplitRecords, TraceRecords,
    split_records,
};
use redact::Redact;
use rejection::SpanPositions;
pub use rejection::{MAX_DESCRIBED_SPANS, RejectedSpan, Sdk};

/// The resource attribute that names the project.
const PROJECT_NAME_ATTRIBUTE: &str = "openinference.project.name";

/// The contents of an export request.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Decoded {
    /// The spans by resource; resources without valid spans are omitted.
    pub groups: Vec<ResourceGroup>,
    /// Number of spans in `groups`.
    pub accepted: usize,
    /// Number of spans rejected.
    pub rejected: usize,
    /// The first rejected spans, at most [`MAX_DESCRIBED_SPANS`], in the order of the request.
    pub rejections: Vec<RejectedSpan>,
    /// The SDK that sent the first rejected span.
    pub sdk: Option<Sdk>,
}

/// Error: the body is not an OTLP export of its signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Message for the sender.
    pub message: String,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Malformed {}

/// The encoding of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpEncoding {
    /// Protobuf.
    Protobuf,
    /// OTLP's JSON encoding. The harmless deviations of known senders are accepted too.
    Json,
}

/// A decoded export request of one signal, before its items are converted.
pub trait OtlpExport: Sized {
    /// The request as protobuf and as JSON define it.
    type Message: prost::Message + DeserializeOwned + Default;
    /// The name of such a request in messages.
    const EXPORT_NAME: &'static str;

    /// Returns the memory in bytes of a request in protobuf when it is decoded, without texts.
    fn decoded_bytes(body: &[u8]) -> usize;

    /// Takes a request that was decoded as a whole.
    fn from_message(message: Self::Message) -> Self;

    /// Decodes a request in JSON item by item, after harmless deviations are normalized.
    ///
    /// # Errors
    ///
    /// Fails with [`Malformed`] when the body is not such a request.
    fn from_lenient_json(body: &[u8]) -> Result<Self, Malformed>;

    /// Returns the names of the projects of the resources, with repetitions; `None` for a resource that names none.
    fn project_names(&self) -> Vec<Option<String>>;

    /// Redacts each resource with the redactor of its project, if there is one.
    fn redact<'a>(&mut self, redactor_of: impl FnMut(Option<&str>) -> Option<&'a dyn Redact>);
}

/// An OTLP export, decompressed, whose decoded size is within the limit.
#[derive(Debug)]
pub struct MeasuredExport<B, E> {
    body: B,
    encoding: OtlpEncoding,
    decoded_bytes: usize,
    signal: PhantomData<E>,
}

impl<B: AsRef<[u8]>, E: OtlpExport> MeasuredExport<B, E> {
    /// Computes the memory of the decoded request.
    ///
    /// # Errors
    ///
    /// Fails with [`Malformed`] when it exceeds the limit.
    pub fn measure(encoding: OtlpEncoding, body: B) -> Result<Self, Malformed> {
        let decoded_bytes = match encoding {
            OtlpEncoding::Protobuf => E::decoded_bytes(body.as_ref()),
            OtlpEncoding::Json => weight::decoded_bytes_of_json(body.as_ref()),
        };
        if decoded_bytes > weight::MAX_DECODED_BYTES {
            return Err(too_large());
        }
        Ok(Self { body, encoding, decoded_bytes, signal: PhantomData })
    }

    /// Returns the memory of the decoded request in bytes, without texts.
    pub fn decoded_bytes(&self) -> usize {
        self.decoded_bytes
    }

    /// Decodes the request.
    ///
    /// # Errors
    ///
    /// Fails with [`Malformed`] when the body is not a request of this type.
    pub fn decode(self) -> Result<E, Malformed> {
        let body = self.body.as_ref();
        match self.encoding {
            OtlpEncoding::Protobuf => Ok(E::from_message(E::Message::decode(body).map_err(malformed::<E>)?)),
            // Serde would also accept a list for a message, field by field.
            OtlpEncoding::Json if body.trim_ascii_start().first() != Some(&b'{') => {
                Err(malformed::<E>("expected a JSON object"))
            }
            OtlpEncoding::Json => match serde_json::from_slice(body) {
                Ok(message) => Ok(E::from_message(message)),
                Err(_) if !weight::fits_as_values(body) => Err(too_large()),
                Err(_) => E::from_lenient_json(body),
            },
        }
    }
}

fn malformed<E: OtlpExport>(problem: impl std::fmt::Display) -> Malformed {
    Malformed { message: format!("not an OTLP {}: {problem}", E::EXPORT_NAME) }
}

/// A decoded trace export.
#[derive(Debug)]
pub struct DecodedExport {
    resources: Vec<ResourceSpans>,
    /// The ascending positions of the spans that are missing in `resources` because they could not be read.
    unreadable: Vec<usize>,
    /// The spans that could not be read.
    decoded: Decoded,
}

impl OtlpExport for DecodedExport {
    type Message = ExportTraceServiceRequest;
    const EXPORT_NAME: &'static str = "trace export";

    fn decoded_bytes(body: &[u8]) -> usize {
        weight::decoded_bytes(body)
    }

    fn from_message(message: Self::Message) -> Self {
        Self { resources: message.resource_spans, unreadable: Vec::new(), decoded: Decoded::default() }
    }

    fn from_lenient_json(body: &[u8]) -> Result<Self, Malformed> {
        let mut decoded = Decoded::default();
        let (resources, unreadable) = json::lenient(body, &mut decoded)?;
        Ok(Self { resources, unreadable, decoded })
    }

    fn project_names(&self) -> Vec<Option<String>> {
        self.resources.iter().map(|it| project_name(it.resource.as_ref())).collect()
    }

    fn redact<'a>(&mut self, mut redactor_of: impl FnMut(Option<&str>) -> Option<&'a dyn Redact>) {
        for resource in &mut self.resources {
            let name = project_name(resource.resource.as_ref());
            if let Some(redactor) = redactor_of(name.as_deref()) {
                redact::resource_spans(resource, redactor);
            }
        }
    }
}

impl DecodedExport {
    /// Converts the spans to drafts.
    pub fn convert(self) -> Decoded {
        let Self { resources, unreadable, mut decoded } = self;
        add_all(&mut decoded, resources, unreadable);
        decoded
    }
}

/// Measures and decodes a request in protobuf.
///
/// # Errors
///
/// Fails with [`Malformed`] when the body is too large or not a request of this type.
pub fn from_protobuf(body: &[u8]) -> Result<Decoded, Malformed> {
    decode(OtlpEncoding::Protobuf, body)
}

/// Measures and decodes a request in JSON.
///
/// # Errors
///
/// Same as [`from_protobuf`].
pub fn from_json(body: &[u8]) -> Result<Decoded, Malformed> {
    decode(OtlpEncoding::Json, body)
}

fn decode(encoding: OtlpEncoding, body: &[u8]) -> Result<Decoded, Malformed> {
    Ok(MeasuredExport::<_, DecodedExport>::measure(encoding, body)?.decode()?.convert())
}

fn too_large() -> Malformed {
    Malformed { message: "too many items and attributes in one request; send several".to_owned() }
}

/// Converts the spans of a request. `unreadable` are the ascending positions of the spans that are missing in
/// `resources` because they could not be read.
fn add_all(decoded: &mut Decoded, resources: Vec<ResourceSpans>, unreadable: Vec<usize>) {
    let mut positions = SpanPositions::without(unreadable);
    for ResourceSpans { resource, scope_spans, .. } in resources {
        let mut spans = Vec::with_capacity(scope_spans.iter().map(|scope| scope.spans.len()).sum());
        let mut held = Vec::new();
        for ScopeSpans { scope, spans: sent, .. } in scope_spans {
            let shared = metadata::shared(resource.as_ref(), scope.as_ref());
            let scope_name = scope.as_ref().map(|it| it.name.as_str()).unwrap_or_default();
            let holder = held::ScopeHolder::new(resource.as_ref(), scope.as_ref());
            for span in sent {
                let index = positions.next_position();
                let candidate = holder.candidate(&span);
                match convert::span(span, scope_name, &shared) {
                    Ok(draft) => {
                        held.extend(holder.hold(candidate, &draft));
                        spans.push(draft);
                    }
                    Err(why) => decoded.reject(index, resource.as_ref(), why),
                }
            }
        }
        add_group(decoded, project_name(resource.as_ref()), spans, held);
    }
}

fn add_group(
    decoded: &mut Decoded,
    project_name: Option<String>,
    spans: Vec<SpanDraft>,
    mut held: Vec<HeldSpan>,
) {
    if spans.is_empty() {
        return;
    }
    held::retain_unique(&mut held, &spans);
    decoded.accepted += spans.len();
    decoded.groups.push(ResourceGroup { project_name, spans, held });
}

/// Returns the name of the project that a resource names.
fn project_name(resource: Option<&Resource>) -> Option<String> {
    let attribute = resource?.attributes.iter().find(|it| it.key == PROJECT_NAME_ATTRIBUTE)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(name) => Some(text::clean(name.clone())).filter(|name| !name.trim().is_empty()),
        _ => None,
    }
}

/// Converts Unix nanoseconds to microseconds; 0 means that the time was not sent.
///
/// 64-bit nanoseconds end in the year 2554, so the result is always a valid date.
fn time(nanos: u64) -> Option<i64> {
    (nanos > 0).then(|| i64::try_from(nanos / 1_000).unwrap_or(i64::MAX))
}
