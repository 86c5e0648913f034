//! OTLP over HTTP, protobuf and JSON.

use std::sync::Arc;

use api::{
    ErrorCode,
    rejection::{RejectionReason, RejectionSource},
};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message;
use semantics::otlp::{Malformed, MeasuredExport, OtlpEncoding, RejectedSpan};
use store::{rates::RateBucket, traces::ChunkOutcome};

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::{Problem, Result, problem, stopping},
    http::{
        read,
        route::{Route, route},
    },
    ingest::{
        endpoints::{
            json::quota_exceeded,
            redaction::redact_export,
            rejections::{record, rejected_items},
            target_project,
        },
        spans::{Receipt, hold_spans, to_chunks},
    },
};

/// Returns the routes of OTLP.
pub fn routes() -> Vec<Route> {
    vec![
        route!(traces, Access::member().keys(Keys::Full))
            .counts_to(RateBucket::Ingest)
            .with_otlp_errors()
            .errors(&[ErrorCode::ProjectArchived, ErrorCode::IngestQuotaExceeded])
            .alias("/v1/otlp/v1/traces")
            .alias("/v1/traces")
            // The path of Langfuse's exporter, which supports Basic authentication only.
            .alias_with_basic("/api/public/otel/v1/traces"),
        route!(metrics, Access::member().keys(Keys::Full))
            .counts_to(RateBucket::Ingest)
            .with_otlp_errors()
            .alias("/v1/metrics"),
    ]
}

/// Receive spans from any OpenTelemetry SDK.
///
/// Spans of one trace may arrive in any order over any number of requests; known spans change nothing.
/// `partial_success` counts spans that cannot be parsed.
#[utoipa::path(post, path = "/v1/otlp/traces", tag = "Ingest",
    request_body(content((Vec<u8> = "application/x-protobuf"), (Object = "application/json")),
        description = "an OTLP ExportTraceServiceRequest, optionally compressed with gzip or zstd"),
    params(("X-Project-Name" = Option<String>, Header, description = "name of the project; default: the API key's project")),
    responses((status = 200, description = "an OTLP ExportTraceServiceResponse in the encoding of the request",
        content((Vec<u8> = "application/x-protobuf"), (Object = "application/json")))))]
pub async fn traces(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    request: Request,
) -> Result<Response> {
    let encoding = parse_encoding(&headers)?;
    let mut body = read::read(&app, Some(caller.tenant_id), &headers, request.into_body()).await?;
    let malformed = |it: Malformed| Problem::new(ErrorCode::InvalidBody, it.message);
    let export = MeasuredExport::measure(encoding, body.bytes.clone()).map_err(malformed)?;
    body.reserve(export.decoded_bytes()).await?;
    let default_project = target_project::default_project(&app, &caller).await?;
    let named = match target_project::name_in_header(&headers)? {
        Some(name) => Some(target_project::by_name(&app, &caller, &name).await?),
        None => None,
    };
    let permit = app.decoding_permits.acquire().await.map_err(|_| stopping())?;
    let mut export = export.decode().map_err(malformed)?;
    // The body is dropped; its memory stays reserved until its spans are committed.
    let bytes = body.bytes.len();
    let memory = body.into_memory();
    drop(permit);
    let project = named.unwrap_or(default_project);
    let redactors = redact_export(&app, &caller, &mut export, project, named.is_none()).await?;
    let permit = app.decoding_permits.acquire().await.map_err(|_| stopping())?;
    let mut decoded = export.convert();
    drop(permit);
    redactors.rejections(&mut decoded.rejections, &mut decoded.sdk);

    let prices = app.access_cache.price_book(caller.tenant_id).await?;
    let mut rows = Vec::new();
    for group in decoded.groups {
        let project_id = match (named, &group.project_name) {
            (Some(project), _) => project,
            (None, Some(name)) => target_project::by_name(&app, &caller, name).await?,
            (None, None) => default_project,
        };
        let receipt = Receipt { tenant_id: caller.tenant_id, project_id, now: app.clock.now() };
        let _permit = app.decoding_permits.acquire().await.map_err(|_| stopping())?;
        let mut chunks = to_chunks(group.spans, receipt, &prices).map_err(anyhow::Error::from)?;
        hold_spans(&mut chunks, &group.held, receipt).map_err(anyhow::Error::from)?;
        rows.append(&mut chunks);
    }
    let stored = app.writer.store(rows, app.ingest_options(&caller).await?, Some(memory)).await?;
    app.telemetry.ingest.count_body(bytes);
    app.telemetry.ingest.count_rejected(ErrorCode::ValidationFailed.as_str(), decoded.rejected);
    let refused = stored.iter().filter(|it| it.1 == ChunkOutcome::Refused);
    let (refused_chunks, refused_spans) =
        refused.fold((0, 0), |(chunks, spans), it| (chunks + 1, spans + it.0.spans.len()));
    let rejected = decoded.rejected + refused_spans;
    if rejected == 0 {
        return Ok(respond(Signal::Spans, encoding, 0, None));
    }
    let mut message = decoded.rejections.first().map(|it| it.message.clone());
    let mut reasons: Vec<_> = decoded.rejections.into_iter().map(to_reason).collect();
    if refused_chunks > 0 {
        let problem = quota_exceeded(&caller);
        if refused_chunks == stored.len() {
            return Err(problem.into());
        }
        let code = problem.code.as_str();
        message = Some(format!("{code}: {}", problem.message));
        // Inserted first, because reasons beyond the limit are not recorded.
        reasons.insert(0, RejectionReason { index: None, code: code.to_owned(), message: problem.message });
    }
    let mut items = rejected_items(&caller, project, RejectionSource::Otlp, &headers, rejected, reasons);
    if let Some(sdk) = decoded.sdk {
        (items.sdk, items.sdk_version) = (Some(sdk.name), sdk.version);
    }
    redactors.rejected(&mut items);
    record(&app, items, app.clock.now()).await;
    Ok(respond(Signal::Spans, encoding, rejected, message))
}

pub(super) fn to_reason(span: RejectedSpan) -> RejectionReason {
    let RejectedSpan { index, message } = span;
    let code = ErrorCode::ValidationFailed.as_str().to_owned();
    RejectionReason { index: u64::try_from(index).ok(), code, message }
}

/// Accept metrics without storing them. The response is one that SDKs do not retry or log as an error.
#[utoipa::path(post, path = "/v1/otlp/v1/metrics", tag = "Ingest",
    request_body(content((Vec<u8> = "application/x-protobuf"), (Object = "application/json")), description = "any export request"),
    responses((status = 200, description = "a partial success that reports it, in the encoding of the request",
        content((Vec<u8> = "application/x-protobuf"), (Object = "application/json")))))]
pub async fn metrics(headers: HeaderMap) -> Result<Response> {
    Ok(respond(Signal::Metrics, parse_encoding(&headers)?, 0, Some("metrics are not stored".to_owned())))
}

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
