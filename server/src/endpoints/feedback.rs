//! Handlers of feedback.

use std::sync::Arc;

use api::{
    ErrorCode, Timestamp,
    feedback::{Feedback, FeedbackLabel, FeedbackList, NewFeedback},
};
use axum::{Json, extract::State, http::StatusCode};
use entities::feedback;
use semantics::otlp::redact::{Redact, RedactionCounts, with_counts};
use serde_json::value::RawValue;
use store::{
    derived_id,
    feedback::{FeedbackFilter, FeedbackOutcome},
    new_id,
    rates::RateBucket,
    row_text::{MAX_LABEL, MAX_TAG_BYTES, tag_label},
    traces,
};
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Credential, Keys},
    app::App,
    error::{Problem, Result, not_found, problem},
    feature::Feature,
    http::{
        query::{Query, invalid},
        read::ApiJson,
        route::{Route, route},
    },
    ingest::{
        redaction::ProjectRedactor,
        validation::{validate_label, validate_object, validate_text, without_nul},
    },
};

/// Maximum length of a comment in characters.
const MAX_COMMENT_CHARS: usize = 10_000;
/// Maximum size of the metadata in bytes.
const MAX_METADATA_BYTES: usize = 16 * 1024;

/// Feedback on traces.
pub const FEATURE: Feature = Feature { routes, ..Feature::NONE };

fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::viewer().keys(Keys::Query)),
        route!(create, Access::member().keys(Keys::Full))
            .counts_to(RateBucket::Feedback)
            .errors(&[ErrorCode::NotFound]),
    ]
}

/// Give feedback on a trace.
///
/// Exactly one of `trace_id`, `external_id` (the newest trace that has it) and `otel_trace_id` names
/// the trace. Feedback of the same user, trace and source replaces the earlier one: 200. Feedback
/// without a user, or whose user or source is masked by redaction, is always added. Archived projects accept feedback.
#[utoipa::path(post, path = "/v1/feedback", tag = "Feedback", request_body = NewFeedback,
    responses((status = 201, body = Feedback), (status = 200, description = "it replaced an earlier one", body = Feedback)))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<NewFeedback>,
) -> Result<(StatusCode, Json<Feedback>)> {
    let (tenant, now) = (caller.tenant_id, app.clock.now());
    let (reference, new) = validate(body, tenant, now)?;
    let trace_not_found = || not_found("trace");
    // Errors are returned without waiting for the writer.
    let trace_id = match reference {
        TraceReference::Id(id) => id,
        TraceReference::External(text) => match traces::by_external_id(&app.db, tenant, &text).await? {
            Some(id) => id,
            // The stored external ID is masked. The ID of the trace is derived from the external ID as sent.
            None => derived_trace_id(&caller, &text).ok_or_else(trace_not_found)?,
        },
    };
    let project = traces::project_of(&app.db, tenant, trace_id).await?.ok_or_else(trace_not_found)?;
    let mut new = feedback::Model { trace_id, ..new };
    let is_masked = match app.access_cache.redactor(tenant, project).await? {
        Some(redactor) => redact(&mut new, &redactor),
        None => false,
    };
    let outcome = match is_masked {
        true => store::feedback::save_masked(&app.db, new).await?,
        false => store::feedback::save(&app.db, new).await?,
    };
    match outcome {
        FeedbackOutcome::Added(row) => Ok((StatusCode::CREATED, Json(to_wire(row)?))),
        FeedbackOutcome::Replaced(row) => Ok((StatusCode::OK, Json(to_wire(row)?))),
        FeedbackOutcome::NoTrace => Err(trace_not_found()),
        FeedbackOutcome::NoSpan => Err(problem(ErrorCode::NotFound, "the trace has no span with this ID")),
    }
}

/// List feedback, by the time it was first given, newest first.
#[utoipa::path(get, path = "/v1/feedback", tag = "Feedback", params(
    ("project_id" = Option<Uuid>, Query, description = "on traces of this project"),
    ("trace_id" = Option<Uuid>, Query, description = "on this trace"),
    ("label" = Option<FeedbackLabel>, Query, description = "with this label"),
    ("from" = Option<Timestamp>, Query, description = "first given at this time or later"),
    ("to" = Option<Timestamp>, Query, description = "first given at this time or earlier"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = FeedbackList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<FeedbackList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let (from, to) = Query::ordered(("from", "to"), (query.time("from")?, query.time("to")?))?;
    let label =
        query.get("label").map(|it| it.parse().map_err(|_| invalid("label", "must be good, bad or neutral")));
    let filter = FeedbackFilter {
        project_id: query.uuid("project_id")?,
        trace_id: query.uuid("trace_id")?,
        label: label.transpose()?,
        from,
        to,
    };
    let scope = format!("feedback {filter:?}");
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let mut rows = store::feedback::page(&app.db.read, tenant, &filter, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, &scope, &mut rows, limit, |it| (it.created_at, it.id));
    Ok(Json(FeedbackList {
        feedback: rows.into_iter().map(to_wire).collect::<Result<_>>()?,
        has_more: next_cursor.is_some(),
        next_cursor,
    }))
}

/// Redacts the texts of a row, and adds the number of masked values to its metadata. Returns whether the user or the source
/// was masked, so that they do not tell persons apart.
fn redact(row: &mut feedback::Model, redactor: &ProjectRedactor) -> bool {
    let mut counts = RedactionCounts::new();
    redactor.bounded(&mut row.comment, MAX_COMMENT_CHARS, &mut counts);
    let mut identity_counts = RedactionCounts::new();
    redactor.bounded(&mut row.user_id, MAX_LABEL, &mut identity_counts);
    redactor.text(&mut row.source, &mut identity_counts);
    let is_masked = !identity_counts.is_empty();
    for (kind, count) in identity_counts {
        *counts.entry(kind).or_default() += count;
    }
    if let Some(metadata) = &mut row.metadata {
        redactor.text(metadata, &mut counts);
    }
    row.source = tag_label(&row.source);
    row.user_id = row.user_id.as_deref().map(tag_label);
    if !counts.is_empty() {
        let metadata = with_counts(row.metadata.as_deref().unwrap_or("{}"), &counts);
        row.metadata = metadata.or(row.metadata.take());
    }
    is_masked
}

/// Returns the ID that JSON ingest derives from this ID of a trace.
fn derived_trace_id(caller: &Caller, text: &str) -> Option<Uuid> {
    match &caller.credential {
        Credential::Key { project_id, .. } => Some(derived_id(*project_id, text)),
        Credential::Session { .. } => None,
    }
}

/// How the body names the trace.
enum TraceReference {
    Id(Uuid),
    External(String),
}

/// Validates the body; returns the target of the feedback and the row to insert, in which the trace's
/// IDs are missing.
fn validate(body: NewFeedback, tenant: Uuid, now: i64) -> Result<(TraceReference, feedback::Model), Problem> {
    let NewFeedback {
        trace_id,
        external_id,
        otel_trace_id,
        label,
        comment,
        user_id,
        source,
        span_id,
        metadata,
    } = body;
    let metadata = validate_object("metadata", metadata)?;
    let reference = parse_reference(trace_id, external_id, otel_trace_id)?;
    if metadata.as_ref().is_some_and(|it| it.len() > MAX_METADATA_BYTES) {
        return Err(Problem::field("metadata", format!("is larger than {MAX_METADATA_BYTES} bytes")));
    }
    let label: FeedbackLabel =
        label.parse().map_err(|it: api::enums::UnknownWord| Problem::field("label", it.to_string()))?;
    let row = feedback::Model {
        tenant_id: tenant,
        trace_id: Uuid::nil(),
        id: new_id(),
        project_id: Uuid::nil(),
        span_id,
        label: label.as_str().to_owned(),
        comment: validate_text("comment", comment, MAX_COMMENT_CHARS)?,
        user_id: bounded_name("user_id", user_id)?,
        source: bounded_name("source", source)?.unwrap_or_default(),
        metadata,
        created_at: now,
        updated_at: now,
    };
    Ok((reference, row))
}

fn parse_reference(
    id: Option<Uuid>,
    external: Option<String>,
    otel: Option<String>,
) -> Result<TraceReference, Problem> {
    match (id, external, otel) {
        (Some(id), None, None) => Ok(TraceReference::Id(id)),
        // Normalized as at ingest; a longer text matches no trace.
        (None, Some(text), None) => Ok(TraceReference::External(without_nul(text))),
        (None, None, Some(hex)) => match hex.len() {
            32 => Uuid::parse_str(&hex).ok(),
            _ => None,
        }
        .map(TraceReference::Id)
        .ok_or_else(|| Problem::field("otel_trace_id", "must be 32 hexadecimal digits")),
        (None, None, None) => {
            Err(Problem::missing("trace_id", "name the trace with trace_id, external_id or otel_trace_id"))
        }
        _ => Err(Problem::field(
            "trace_id",
            "only one of trace_id, external_id and otel_trace_id may be given",
        )),
    }
}

/// Validates a user or a source; both are part of one index entry.
fn bounded_name(field: &str, text: Option<String>) -> Result<Option<String>, Problem> {
    let text = validate_label(field, text.filter(|it| !it.is_empty()))?;
    if text.as_ref().is_some_and(|it| it.len() > MAX_TAG_BYTES) {
        return Err(Problem::field(field, format!("has more than {MAX_TAG_BYTES} bytes")));
    }
    Ok(text)
}

fn to_wire(row: feedback::Model) -> Result<Feedback> {
    let feedback::Model {
        tenant_id: _,
        trace_id,
        id,
        project_id,
        span_id,
        label,
        comment,
        user_id,
        source,
        metadata,
        created_at,
        updated_at,
    } = row;
    let metadata = RawValue::from_string(metadata.unwrap_or_else(|| "{}".to_owned()));
    let metadata = metadata.map_err(anyhow::Error::from)?;
    Ok(Feedback {
        id,
        trace_id,
        project_id,
        span_id,
        label: label.parse().map_err(anyhow::Error::from)?,
        comment,
        user_id,
        source: Some(source).filter(|it| !it.is_empty()),
        metadata: Some(metadata),
        created_at: Timestamp::from_micros(created_at),
        updated_at: Timestamp::from_micros(updated_at),
    })
}
