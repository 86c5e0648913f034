//! Log records over OTLP.

use std::sync::Arc;

use api::{ErrorCode, rejection::RejectionSource};
use axum::{
    extract::{Request, State},
    http::HeaderMap,
    response::Response,
};
use semantics::otlp::{DecodedLogExport, RecordData, TraceRecords};
use store::{
    held_input::{self, HeldFor},
    rates::RateBucket,
};
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::{Result, problem, stopping},
    http::route::{Route, route},
    ingest::endpoints::otlp_request::{OtlpRejections, OtlpRequest, Signal, respond, to_reason},
    log_joining,
};

/// Approximate size in bytes of a row of held input without its data, with its index entry.
const ROW_BYTES: usize = 200;

/// Returns the routes of log records.
pub fn routes() -> Vec<Route> {
    vec![
        route!(logs, Access::member().keys(Keys::Full))
            .counts_to(RateBucket::Ingest)
            .with_otlp_errors()
            .errors(&[ErrorCode::ProjectArchived])
            .alias("/v1/logs"),
    ]
}

/// Receive log records that belong to spans: GenAI events and exceptions.
///
/// A log record becomes part of its span as if it were an event of the span. Spans and log records may arrive in any order,
/// within an hour of each other. `partial_success` counts other log records, which are not stored, and log records that
/// name no span.
#[utoipa::path(post, path = "/v1/otlp/v1/logs", tag = "Ingest",
    request_body(content((Vec<u8> = "application/x-protobuf"), (Object = "application/json")),
        description = "an OTLP ExportLogsServiceRequest, optionally compressed with gzip or zstd"),
    params(("X-Project-Name" = Option<String>, Header, description = "name of the project; default: the API key's project")),
    responses((status = 200, description = "an OTLP ExportLogsServiceResponse in the encoding of the request",
        content((Vec<u8> = "application/x-protobuf"), (Object = "application/json")))))]
pub async fn logs(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    request: Request,
) -> Result<Response> {
    let OtlpRequest { export, encoding, bytes, memory, projects, redactors } =
        OtlpRequest::<DecodedLogExport>::receive(&app, &caller, &headers, request).await?;
    let permit = app.decoding_permits.acquire().await.map_err(|_| stopping())?;
    let mut decoded = export.convert();
    drop(permit);
    redactors.rejections(&mut decoded.rejections, &mut decoded.sdk);
    let now = app.clock.now();
    let (mut rows, mut sent) = (Vec::new(), Vec::new());
    for group in decoded.groups {
        let project_id = projects.of_resource(&app, &caller, group.project_name.as_deref()).await?;
        let _permit = app.decoding_permits.acquire().await.map_err(|_| stopping())?;
        let held_for = HeldFor { tenant_id: caller.tenant_id, project_id, now };
        for TraceRecords { trace_id, records } in group.into_traces() {
            let RecordData { count, decoded_bytes, ref data, .. } = records;
            let row =
                held_input::records_row(held_for, Uuid::from_bytes(trace_id), count, data, decoded_bytes)
                    .map_err(anyhow::Error::from)?;
            sent.push(((row.trace_id, row.id), records));
            rows.push(row);
        }
    }
    if !rows.is_empty() {
        let stored_bytes = rows.iter().map(|it| it.data.len() + ROW_BYTES).sum();
        if !app.log_senders.add(caller.tenant_id, stored_bytes, now) {
            let message = "the log records of this hour exceed the space in which they wait for their spans; send the rest later";
            return Err(problem(ErrorCode::Overloaded, message));
        }
        let jobs = log_joining::jobs(caller.tenant_id, rows.iter().map(|it| it.trace_id).collect(), now);
        held_input::hold(&app.db, &rows, &jobs).await.map_err(anyhow::Error::from)?;
        app.wake_ups().wake_for(&jobs);
        for (row, records) in sent {
            app.recent_records.add(caller.tenant_id, row, records);
        }
    }
    drop(memory);
    app.telemetry.ingest.count_body(bytes);
    app.telemetry.ingest.count_rejected(ErrorCode::ValidationFailed.as_str(), decoded.rejected);
    if decoded.rejected == 0 {
        return Ok(respond(Signal::LogRecords, encoding, 0, None));
    }
    let message = decoded.rejections.first().map(|it| it.message.clone());
    let reasons = decoded.rejections.into_iter().map(to_reason).collect();
    let (source, rejected) = (RejectionSource::OtlpLogs, decoded.rejected);
    let rejections = OtlpRejections { source, rejected, reasons, sdk: decoded.sdk };
    rejections.record(&app, &caller, &headers, projects.of_request(), &redactors).await;
    Ok(respond(Signal::LogRecords, encoding, rejected, message))
}
