//! Receives an OTLP request of any signal: reads, measures, decodes and redacts it.

use std::sync::Arc;

use api::{
    ErrorCode,
    rejection::{RejectionReason, RejectionSource},
};
use axum::{
    extract::Request,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message;
use semantics::otlp::{Malformed, MeasuredExport, OtlpEncoding, OtlpExport, RejectedSpan, Sdk};
use uuid::Uuid;

use crate::{
    access::Caller,
    app::App,
    error::{Problem, Result, problem, stopping},
    http::read,
    ingest::{
        endpoints::{
            redaction::redact_export,
            rejections::{record, rejected_items},
            target_project,
        },
        redaction::RequestRedactors,
    },
    memory::Reservation,
};

/// A request that was decoded and redacted.
pub(super) struct OtlpRequest<E> {
    /// The decoded request.
    pub(super) export: E,
    /// The encoding of the request, and of its response.
    pub(super) encoding: OtlpEncoding,
    /// Size of the decompressed body in bytes.
    pub(super) bytes: usize,
    /// Counts the memory of the request until its items are stored.
    pub(super) memory: Reservation,
    /// The projects of the items.
    pub(super) projects: RequestProjects,
    /// The redactors of the projects.
    pub(super) redactors: RequestRedactors,
}

/// The projects to which the items of a request belong.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestProjects {
    /// The project that the header names.
    named: Option<Uuid>,
    /// The project of resources that name none.
    default: Uuid,
}

impl RequestProjects {
    /// Returns the project of the request itself.
    pub(super) fn of_request(&self) -> Uuid {
        self.named.unwrap_or(self.default)
    }

    /// Returns the project of a resource, which may name one.
    ///
    /// # Errors
    ///
    /// Fails when the name is invalid, the project is archived, or the database fails.
    pub(super) async fn of_resource(&self, app: &App, caller: &Caller, name: Option<&str>) -> Result<Uuid> {
        match (self.named, name) {
            (None, Some(name)) => target_project::by_name(app, caller, name).await,
            _ => Ok(self.of_request()),
        }
    }
}

impl<E: OtlpExport> OtlpRequest<E> {
    /// Receives a request.
    ///
    /// # Errors
    ///
    /// Fails with the error of the response.
    pub(super) async fn receive(
        app: &App,
        caller: &Caller,
        headers: &HeaderMap,
        request: Request,
    ) -> Result<Self> {
        let encoding = parse_encoding(headers)?;
        let mut body = read::read(app, Some(caller.tenant_id), headers, request.into_body()).await?;
        let malformed = |it: Malformed| Problem::new(ErrorCode::InvalidBody, it.message);
        let export = MeasuredExport::<_, E>::measure(encoding, body.bytes.clone()).map_err(malformed)?;
        body.reserve(export.decoded_bytes()).await?;
        let default = target_project::default_project(app, caller).await?;
        let named = match target_project::name_in_header(headers)? {
            Some(name) => Some(target_project::by_name(app, caller, &name).await?),
            None => None,
        };
        let projects = RequestProjects { named, default };
        let permit = app.decoding_permits.acquire().await.map_err(|_| stopping())?;
        let mut export = export.decode().map_err(malformed)?;
        drop(permit);
        // The body is dropped; its memory stays reserved until its items are stored.
        let bytes = body.bytes.len();
        let memory = body.into_memory();
        let redactors =
            redact_export(app, caller, &mut export, projects.of_request(), named.is_none()).await?;
        Ok(Self { export, encoding, bytes, memory, projects, redactors })
    }
}

/// The rejected items of a request.
pub(super) struct OtlpRejections {
    /// The protocol.
    pub(super) source: RejectionSource,
    /// Number of rejected items.
    pub(super) rejected: usize,
    /// Why the first of them were rejected.
    pub(super) reasons: Vec<RejectionReason>,
    /// The SDK of the first one.
    pub(super) sdk: Option<Sdk>,
}

impl OtlpRejections {
    /// Records the rejected items of a request of the caller.
    pub(super) async fn record(
        self,
        app: &Arc<App>,
        caller: &Caller,
        headers: &HeaderMap,
        project: Uuid,
        redactors: &RequestRedactors,
    ) {
        let Self { source, rejected, reasons, sdk } = self;
        let mut items = rejected_items(caller, project, source, headers, rejected, reasons);
        if let Some(sdk) = sdk {
            (items.sdk, items.sdk_version) = (Some(sdk.name), sdk.version);
        }
        redactors.rejected(&mut items);
        record(app, items, app.clock.now()).await;
    }
}

/// Describes a rejected span or log record.
pub(super) fn to_reason(span: RejectedSpan) -> RejectionReason {
    let RejectedSpan { index, message } = span;
    let code = ErrorCode::ValidationFailed.as_str().to_owned();
    RejectionReason { index: u64::try_from(index).ok(), code, message }
}

/// Returns the encoding that the headers name.
///
/// # Errors
///
/// Fails with `unsupported_media_type` for other ones.
pub(super) fn parse_encoding(headers: &HeaderMap) -> Result<OtlpEncoding> {
    match read::media_type(headers).as_deref() {
        Some("application/x-protobuf") => Ok(OtlpEncoding::Protobuf),
        Some("application/json") => Ok(OtlpEncoding::Json),
        _ => Err(problem(
            ErrorCode::UnsupportedMediaType,
            "the Content-Type must be application/x-protobuf or application/json",
        )),
    }
}

/// The signal of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Signal {
    Spans,
    LogRecords,
    Metrics,
}

impl Signal {
    /// Returns the name of the number of rejected items in JSON.
    fn rejected_member(self) -> &'static str {
        match self {
            Self::Spans => "rejectedSpans",
            Self::LogRecords => "rejectedLogRecords",
            Self::Metrics => "rejectedDataPoints",
        }
    }
}

/// Encodes the response. In protobuf, the messages for the three signals have the same shape: the number of rejected items
/// and the reason.
pub(super) fn respond(
    signal: Signal,
    encoding: OtlpEncoding,
    rejected: usize,
    message: Option<String>,
) -> Response {
    let rejected = i64::try_from(rejected).unwrap_or(i64::MAX);
    let partial = (rejected > 0 || message.is_some()).then(|| ExportTracePartialSuccess {
        rejected_spans: rejected,
        error_message: message.unwrap_or_default(),
    });
    match encoding {
        OtlpEncoding::Protobuf => {
            let body = ExportTraceServiceResponse { partial_success: partial }.encode_to_vec();
            ([(header::CONTENT_TYPE, "application/x-protobuf")], body).into_response()
        }
        OtlpEncoding::Json => {
            let body = match partial {
                // 64-bit integers are strings in the JSON form of protobuf.
                Some(it) => serde_json::json!({"partialSuccess": {
                    signal.rejected_member(): it.rejected_spans.to_string(), "errorMessage": it.error_message}}),
                None => serde_json::json!({}),
            };
            axum::Json(body).into_response()
        }
    }
}
