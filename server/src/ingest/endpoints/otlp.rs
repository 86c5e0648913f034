//! OTLP over HTTP, protobuf and JSON.

use std::sync::Arc;

use api::{
    ErrorCode,
    rejection::{RejectionReason, RejectionSource},
};
use axum::{
    extract::{Request, State},
    http::HeaderMap,
    response::Response,
};
use semantics::otlp::DecodedExport;
use store::{held_input, rates::RateBucket, traces::ChunkOutcome};

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::{Result, stopping},
    http::route::{Route, route},
    ingest::{
        endpoints::{
            json::quota_exceeded,
            otlp_request::{OtlpRejections, OtlpRequest, Signal, parse_encoding, respond, to_reason},
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
    let OtlpRequest { export, encoding, bytes, memory, projects, redactors } =
        OtlpRequest::<DecodedExport>::receive(&app, &caller, &headers, request).await?;
    let permit = app.decoding_permits.acquire().await.map_err(|_| stopping())?;
    let mut decoded = export.convert();
    drop(permit);
    redactors.rejections(&mut decoded.rejections, &mut decoded.sdk);

    let prices = app.access_cache.price_book(caller.tenant_id).await?;
    let mut rows = Vec::new();
    for mut group in decoded.groups {
        let project_id = projects.of_resource(&app, &caller, group.project_name.as_deref()).await?;
        let receipt = Receipt { tenant_id: caller.tenant_id, project_id, now: app.clock.now() };
        let mut records = app.recent_records.take(caller.tenant_id, &group.held);
        let found = records.rows();
        if !found.is_empty() {
            let stored = held_input::stored(&app.db, caller.tenant_id, &found).await;
            records.retain(&stored.map_err(anyhow::Error::from)?);
        }
        let _permit = app.decoding_permits.acquire().await.map_err(|_| stopping())?;
        let joined = records.join(&mut group);
        let mut chunks = to_chunks(group.spans, receipt, &prices).map_err(anyhow::Error::from)?;
        hold_spans(&mut chunks, &group.held, receipt).map_err(anyhow::Error::from)?;
        joined.add_to(&mut chunks);
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
    let rejections = OtlpRejections { source: RejectionSource::Otlp, rejected, reasons, sdk: decoded.sdk };
    rejections.record(&app, &caller, &headers, projects.of_request(), &redactors).await;
    Ok(respond(Signal::Spans, encoding, rejected, message))
}

/// Accept metrics without storing them. The response is one that SDKs do not retry or log as an error.
#[utoipa::path(post, path = "/v1/otlp/v1/metrics", tag = "Ingest",
    request_body(content((Vec<u8> = "application/x-protobuf"), (Object = "application/json")), description = "any export request"),
    responses((status = 200, description = "a partial success that reports it, in the encoding of the request",
        content((Vec<u8> = "application/x-protobuf"), (Object = "application/json")))))]
pub async fn metrics(headers: HeaderMap) -> Result<Response> {
    Ok(respond(Signal::Metrics, parse_encoding(&headers)?, 0, Some("metrics are not stored".to_owned())))
}
