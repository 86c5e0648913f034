//! Decodes a log export.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::{
    collector::logs::v1::ExportLogsServiceRequest,
    logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
    resource::v1::Resource,
};
use prost::Message as _;
use serde_json::Value;

use super::{
    join::HeldRecords,
    record::{self, SpanEvent},
};
use crate::otlp::{
    Malformed, OtlpEncoding, RejectedSpan, Sdk,
    json::{list, normalize, object, part},
    project_name, rejection, too_large, weight,
};

/// The log records of a request that are joined with spans.
#[derive(Debug, Default)]
pub struct DecodedLogs {
    /// The log records by resource; resources without such log records are omitted.
    pub groups: Vec<LogGroup>,
    /// Number of log records in `groups`.
    pub accepted: usize,
    /// Number of log records rejected.
    pub rejected: usize,
    /// The first rejected log records, at most [`rejection::MAX_DESCRIBED_SPANS`], in the order of the request.
    pub rejections: Vec<RejectedSpan>,
    /// The SDK that sent the first rejected log record.
    pub sdk: Option<Sdk>,
}

/// The log records of one resource.
#[derive(Debug, Default)]
pub struct LogGroup {
    /// The project that the resource names (`openinference.project.name`).
    pub project_name: Option<String>,
    records: Vec<SpanEvent>,
}

/// Log records of one trace.
#[derive(Debug)]
pub struct TraceRecords {
    /// The trace.
    pub trace_id: [u8; 16],
    /// Number of log records.
    pub count: usize,
    /// The log records, in the form that [`super::LogJoin`] reads.
    pub data: Vec<u8>,
}

impl LogGroup {
    /// Returns the log records of each trace.
    pub fn into_traces(self) -> Vec<TraceRecords> {
        let mut traces: BTreeMap<[u8; 16], HeldRecords> = BTreeMap::new();
        for (position, record) in self.records.into_iter().enumerate() {
            traces.entry(record.trace_id).or_default().push(position, record);
        }
        let encode = |(trace_id, list): ([u8; 16], HeldRecords)| TraceRecords {
            trace_id,
            count: list.records.len(),
            data: list.encode_to_vec(),
        };
        traces.into_iter().map(encode).collect()
    }
}

/// An OTLP log export, decompressed, whose decoded size is within the limit.
#[derive(Debug)]
pub struct MeasuredLogs<B> {
    body: B,
    encoding: OtlpEncoding,
    decoded_bytes: usize,
}

impl<B: AsRef<[u8]>> MeasuredLogs<B> {
    /// Computes the memory of the decoded request.
    ///
    /// # Errors
    ///
    /// Fails with [`Malformed`] when it exceeds the limit.
    pub fn measure(encoding: OtlpEncoding, body: B) -> Result<Self, Malformed> {
        let decoded_bytes = match encoding {
            OtlpEncoding::Protobuf => weight::decoded_bytes_of_logs(body.as_ref()),
            OtlpEncoding::Json => weight::decoded_bytes_of_json(body.as_ref()),
        };
        if decoded_bytes > weight::MAX_DECODED_BYTES {
            return Err(too_large());
        }
        Ok(Self { body, encoding, decoded_bytes })
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
    pub fn decode(self) -> Result<DecodedLogs, Malformed> {
        match self.encoding {
            OtlpEncoding::Protobuf => {
                let request = ExportLogsServiceRequest::decode(self.body.as_ref()).map_err(malformed)?;
                Ok(DecodedLogs::of(request.resource_logs))
            }
            OtlpEncoding::Json => decode_json(self.body.as_ref()),
        }
    }
}

fn malformed(error: impl std::fmt::Display) -> Malformed {
    Malformed { message: format!("not an OTLP log export: {error}") }
}

fn decode_json(body: &[u8]) -> Result<DecodedLogs, Malformed> {
    // Serde would also accept a list for a message, field by field.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(malformed("expected a JSON object"));
    }
    match serde_json::from_slice::<ExportLogsServiceRequest>(body) {
        Ok(request) => Ok(DecodedLogs::of(request.resource_logs)),
        Err(_) if !weight::fits_as_values(body) => Err(too_large()),
        Err(_) => lenient(body),
    }
}

/// Decodes the log records one by one, after harmless deviations from OTLP's JSON mapping are normalized.
fn lenient(body: &[u8]) -> Result<DecodedLogs, Malformed> {
    let mut request = object(serde_json::from_slice(body).map_err(malformed)?, "the request")?;
    let (mut decoded, mut index) = (DecodedLogs::default(), 0);
    for sent in list(&mut request, "resourceLogs")? {
        let mut sent = object(sent, "resourceLogs")?;
        let resource = part::<Resource>(&mut sent, "resource");
        let mut group = LogGroup::of(resource.as_ref());
        for scope in list(&mut sent, "scopeLogs")? {
            for mut record in list(&mut object(scope, "scopeLogs")?, "logRecords")? {
                drop_severity_name(&mut record);
                normalize(&mut record);
                match serde_json::from_value::<LogRecord>(record) {
                    Ok(record) => decoded.add(&mut group, index, resource.as_ref(), record),
                    Err(error) => {
                        decoded.reject(index, resource.as_ref(), format!("unreadable log record: {error}"));
                    }
                }
                index += 1;
            }
        }
        decoded.add_group(group);
    }
    Ok(decoded)
}

/// Drops a severity that is sent by name, because the severity is not stored.
fn drop_severity_name(record: &mut Value) {
    if let Value::Object(fields) = record
        && fields.get("severityNumber").is_some_and(|it| !it.is_number())
    {
        fields.remove("severityNumber");
    }
}

impl DecodedLogs {
    fn of(resources: Vec<ResourceLogs>) -> Self {
        let (mut decoded, mut index) = (Self::default(), 0);
        for ResourceLogs { resource, scope_logs, .. } in resources {
            let mut group = LogGroup::of(resource.as_ref());
            for ScopeLogs { log_records, .. } in scope_logs {
                for record in log_records {
                    decoded.add(&mut group, index, resource.as_ref(), record);
                    index += 1;
                }
            }
            decoded.add_group(group);
        }
        decoded
    }

    fn add(&mut self, group: &mut LogGroup, index: usize, resource: Option<&Resource>, record: LogRecord) {
        match record::to_event(record) {
            Ok(event) => group.records.push(event),
            Err(why) => self.reject(index, resource, why),
        }
    }

    fn add_group(&mut self, group: LogGroup) {
        self.accepted += group.records.len();
        if !group.records.is_empty() {
            self.groups.push(group);
        }
    }

    fn reject(&mut self, index: usize, resource: Option<&Resource>, message: impl Into<String>) {
        self.rejected += 1;
        rejection::describe((&mut self.rejections, &mut self.sdk), index, resource, message);
    }
}

impl LogGroup {
    fn of(resource: Option<&Resource>) -> Self {
        let project_name = resource.and_then(|it| project_name(&it.attributes));
        Self { project_name, records: Vec::new() }
    }
}
