//! Decodes a log export.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::{
    collector::logs::v1::ExportLogsServiceRequest,
    logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
    resource::v1::Resource,
};
use serde_json::Value;

use super::{
    join::{HeldRecords, RecordData},
    record::{self, SpanEvent},
};
use crate::otlp::{
    Malformed, OtlpExport, RejectedSpan, Sdk,
    json::{list, normalize, object, part},
    malformed, project_name,
    redact::{self, Redact},
    rejection::{self, SpanPositions},
    weight,
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
    /// The log records.
    pub records: RecordData,
}

impl LogGroup {
    /// Returns the log records of each trace.
    pub fn into_traces(self) -> Vec<TraceRecords> {
        let mut traces: BTreeMap<[u8; 16], HeldRecords> = BTreeMap::new();
        for (position, record) in self.records.into_iter().enumerate() {
            traces.entry(record.trace_id).or_default().push(position, record);
        }
        traces
            .into_iter()
            .map(|(trace_id, list)| TraceRecords { trace_id, records: list.to_data() })
            .collect()
    }
}

/// A decoded log export.
#[derive(Debug, Default)]
pub struct DecodedLogExport {
    resources: Vec<ResourceLogs>,
    /// The ascending positions of the log records that are missing in `resources` because they could not be read.
    unreadable: Vec<usize>,
    /// The log records that could not be read.
    decoded: DecodedLogs,
}

impl OtlpExport for DecodedLogExport {
    type Message = ExportLogsServiceRequest;
    const EXPORT_NAME: &'static str = "log export";

    fn decoded_bytes(body: &[u8]) -> usize {
        weight::decoded_bytes_of_logs(body)
    }

    fn from_message(message: Self::Message) -> Self {
        Self { resources: message.resource_logs, ..Self::default() }
    }

    fn from_lenient_json(body: &[u8]) -> Result<Self, Malformed> {
        let body = serde_json::from_slice(body).map_err(malformed::<Self>)?;
        let mut request = object(body, "the request")?;
        let (mut export, mut index) = (Self::default(), 0);
        for sent in list(&mut request, "resourceLogs")? {
            let mut sent = object(sent, "resourceLogs")?;
            let resource = part::<Resource>(&mut sent, "resource");
            let mut log_records = Vec::new();
            for scope in list(&mut sent, "scopeLogs")? {
                for mut record in list(&mut object(scope, "scopeLogs")?, "logRecords")? {
                    drop_severity_name(&mut record);
                    normalize(&mut record);
                    match serde_json::from_value::<LogRecord>(record) {
                        Ok(record) => log_records.push(record),
                        Err(error) => {
                            export.unreadable.push(index);
                            let message = format!("unreadable log record: {error}");
                            export.decoded.reject(index, resource.as_ref(), message);
                        }
                    }
                    index += 1;
                }
            }
            let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
            export.resources.push(ResourceLogs { resource, scope_logs, schema_url: String::new() });
        }
        Ok(export)
    }

    fn project_names(&self) -> Vec<Option<String>> {
        self.resources.iter().map(|it| project_name(it.resource.as_ref())).collect()
    }

    fn redact<'a>(&mut self, mut redactor_of: impl FnMut(Option<&str>) -> Option<&'a dyn Redact>) {
        for resource in &mut self.resources {
            let name = project_name(resource.resource.as_ref());
            if let Some(redactor) = redactor_of(name.as_deref()) {
                for record in resource.scope_logs.iter_mut().flat_map(|it| &mut it.log_records) {
                    redact::log_record(record, redactor);
                }
            }
        }
    }
}

impl DecodedLogExport {
    /// Converts the log records to events of spans.
    pub fn convert(self) -> DecodedLogs {
        let Self { resources, unreadable, mut decoded } = self;
        let mut positions = SpanPositions::without(unreadable);
        for ResourceLogs { resource, scope_logs, .. } in resources {
            let mut group = LogGroup { project_name: project_name(resource.as_ref()), records: Vec::new() };
            for record in scope_logs.into_iter().flat_map(|it| it.log_records) {
                let index = positions.next_position();
                match record::to_event(record) {
                    Ok(event) => group.records.push(event),
                    Err(why) => decoded.reject(index, resource.as_ref(), why),
                }
            }
            decoded.accepted += group.records.len();
            if !group.records.is_empty() {
                decoded.groups.push(group);
            }
        }
        decoded
    }
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
    fn reject(&mut self, index: usize, resource: Option<&Resource>, message: impl Into<String>) {
        self.rejected += 1;
        rejection::describe((&mut self.rejections, &mut self.sdk), index, resource, message);
    }
}
