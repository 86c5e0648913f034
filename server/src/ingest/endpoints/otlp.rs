//! OTLP over HTTP, protobuf and JSON.

use std::sync::Arc;

use api::ErrorCode;
use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message;
use semantics::otlp;
use store::{rates::RateBucket, traces::ChunkOutcome};

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::{Problem, Result, problem, stopping},
    http::read,
    http::route::{Route, route},
    ingest::endpoints::json::quota_used_up,
    ingest::endpoints::project_of,
    ingest::spans::{Receipt, parts},
};

/// The encoding of a request and its response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Protobuf,
    Json,
}

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
        route!(logs, Access::member().keys(Keys::Full))
            .counts_to(RateBucket::Ingest)
            .with_otlp_errors()
            .alias("/v1/logs"),
    ]
}

/// Receive spans from any OpenTelemetry SDK.
///
/// Spans of one trace may arrive in any order over any number of requests; known spans change nothing.
/// `partial_success` counts spans that can't be parsed.
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
    let form = form(&headers)?;
    let mut held = read::read(&app, Some(caller.tenant_id), &headers, request.into_body()).await?;
    let structures = match form {
        Form::Protobuf => otlp::decoded_bytes(&held.bytes),
        Form::Json => otlp::decoded_bytes_of_json(&held.bytes),
    };
    let structures = structures.map_err(|it| Problem::new(ErrorCode::InvalidBody, it.message))?;
    held.reserve(structures).await?;
    let own = project_of::own(&app, &caller).await?;
    let named = match project_of::header_name(&headers)? {
        Some(name) => Some(project_of::named(&app, &caller, &name).await?),
        None => None,
    };
    let turn = app.decoding.acquire().await.map_err(|_| stopping())?;
    let decoded = match form {
        Form::Protobuf => otlp::from_protobuf(&held.bytes),
        Form::Json => otlp::from_json(&held.bytes),
    }
    .map_err(|it| Problem::new(ErrorCode::InvalidBody, it.message))?;
    // The body is dropped; its memory stays reserved until its spans are committed.
    let bytes = held.bytes.len();
    let memory = held.into_memory();
    drop(turn);

    let prices = app.known.price_book(caller.tenant_id).await?;
    let mut rows = Vec::new();
    for group in decoded.groups {
        let project_id = match (named, &group.project_name) {
            (Some(project), _) => project,
            (None, Some(name)) => project_of::named(&app, &caller, name).await?,
            (None, None) => own,
        };
        let receipt = Receipt { tenant_id: caller.tenant_id, project_id, now: app.clock.now() };
        let _turn = app.decoding.acquire().await.map_err(|_| stopping())?;
        rows.append(&mut parts(group.spans, receipt, &prices).map_err(anyhow::Error::from)?);
    }
    let stored = app.writer.store(rows, app.ingest_terms(&caller).await?, Some(memory)).await?;
    app.telemetry.ingest.stored(bytes);
    app.telemetry.ingest.refuse(ErrorCode::ValidationFailed.as_str(), decoded.rejected);
    let refused: Vec<_> = stored.iter().filter(|it| it.1 == ChunkOutcome::Refused).map(|it| &it.0).collect();
    if refused.is_empty() {
        return Ok(answer(form, decoded.rejected, decoded.rejection));
    }
    let used_up = quota_used_up(&caller);
    if refused.len() == stored.len() {
        return Err(used_up.into());
    }
    let spans: usize = refused.iter().map(|it| it.spans.len()).sum();
    let message = format!("{}: {}", used_up.code.as_str(), used_up.message);
    Ok(answer(form, decoded.rejected + spans, Some(message)))
}

/// Accept metrics without storing them. The response is one that SDKs do not retry or log as an error.
#[utoipa::path(post, path = "/v1/otlp/v1/metrics", tag = "Ingest",
    request_body(content((Vec<u8> = "application/x-protobuf"), (Object = "application/json")), description = "any export request"),
    responses((status = 200, description = "a partial success that reports it, in the encoding of the request",
        content((Vec<u8> = "application/x-protobuf"), (Object = "application/json")))))]
pub async fn metrics(headers: HeaderMap) -> Result<Response> {
    Ok(answer(form(&headers)?, 0, Some("metrics are not stored".to_owned())))
}

/// Accept log records without storing them. The response is one that SDKs do not retry or log as an
/// error.
#[utoipa::path(post, path = "/v1/otlp/v1/logs", tag = "Ingest",
    request_body(content((Vec<u8> = "application/x-protobuf"), (Object = "application/json")), description = "any export request"),
    responses((status = 200, description = "a partial success that reports it, in the encoding of the request",
        content((Vec<u8> = "application/x-protobuf"), (Object = "application/json")))))]
pub async fn logs(headers: HeaderMap) -> Result<Response> {
    Ok(answer(form(&headers)?, 0, Some("log records are not stored".to_owned())))
}

fn form(headers: &HeaderMap) -> Result<Form> {
    match read::media_type(headers).as_deref() {
        Some("application/x-protobuf") => Ok(Form::Protobuf),
        Some("application/json") => Ok(Form::Json),
        _ => Err(problem(
            ErrorCode::UnsupportedMediaType,
            "the Content-Type must be application/x-protobuf or application/json",
        )),
    }
}

/// Encodes the response. The messages for the three signals have the same shape: the number of rejected
/// items and the reason.
fn answer(form: Form, rejected: usize, message: Option<String>) -> Response {
    let rejected = i64::try_from(rejected).unwrap_or(i64::MAX);
    let partial = (rejected > 0 || message.is_some()).then(|| ExportTracePartialSuccess {
        rejected_spans: rejected,
        error_message: message.unwrap_or_default(),
    });
    match form {
        Form::Protobuf => {
            let body = ExportTraceServiceResponse { partial_success: partial }.encode_to_vec();
            ([(header::CONTENT_TYPE, "application/x-protobuf")], body).into_response()
        }
        Form::Json => {
            let body = match partial {
                // 64-bit integers are strings in the JSON form of protobuf.
                Some(it) => serde_json::json!({"partialSuccess": {
                    "rejectedSpans": it.rejected_spans.to_string(), "errorMessage": it.error_message}}),
                None => serde_json::json!({}),
            };
            axum::Json(body).into_response()
        }
    }
}
