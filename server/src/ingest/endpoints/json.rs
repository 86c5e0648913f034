//! Handlers of JSON ingest.

use std::{fmt, sync::Arc};

use api::{
    ErrorCode,
    ingest::{BatchResult, Ingested, ItemResult, ItemStatus, MAX_BATCH, TraceItem},
    rejection::{RejectionReason, RejectionSource},
};
use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use store::{
    quotas::Quota,
    rates::RateBucket,
    traces::{ChunkOutcome, TraceChunk},
};

use crate::{
    access::{Access, Caller, Keys, plans::monthly_limit},
    app::App,
    endpoints::projects,
    error::{Error, Problem, Result, stopping},
    http::{
        read,
        route::{Route, route},
    },
    ingest::{
        endpoints::{
            rejections::{record, rejected_items},
            target_project,
        },
        redaction::{ProjectRedactor, RequestRedactors},
        rejections::MAX_REASONS,
        spans::Receipt,
        trace_item,
    },
};

/// Error codes of storing traces, besides those of every body.
const INGEST_ERRORS: &[ErrorCode] =
    &[ErrorCode::ProjectArchived, ErrorCode::IngestQuotaExceeded, ErrorCode::Conflict];

/// Returns the routes of JSON ingest.
pub fn routes() -> Vec<Route> {
    vec![
        route!(one, Access::member().keys(Keys::Full)).counts_to(RateBucket::Ingest).errors(INGEST_ERRORS),
        route!(batch, Access::member().keys(Keys::Full)).counts_to(RateBucket::Ingest).errors(INGEST_ERRORS),
    ]
}

/// Store one trace.
///
/// The ID may be any text; text that is not a UUID is hashed to one and stored as `external_id`. A
/// repeated ID gets 409 and changes nothing, so a retry is safe.
#[utoipa::path(post, path = "/v1/ingest", tag = "Ingest", request_body = TraceItem,
    params(("X-Project-Name" = Option<String>, Header, description = "name of the project; default: the API key's project")),
    responses((status = 201, body = Ingested)))]
pub async fn one(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    request: Request,
) -> Result<(StatusCode, Json<Ingested>)> {
    read::require_json(&headers)?;
    let mut body = read::read(&app, Some(caller.tenant_id), &headers, request.into_body()).await?;
    body.reserve_structures().await?;
    let default_project = target_project::default_project(&app, &caller).await?;
    let source = IngestSource::new(&app, &caller, default_project, &headers).await?;
    let chunk = source.chunk(&app, &caller, &body.bytes).await?;
    let options = app.ingest_options(&caller).await?;
    let bytes = body.bytes.len();
    let memory = Some(body.into_memory());
    let Some((chunk, stored)) = app.writer.store(vec![chunk], options, memory).await?.pop() else {
        return Err(anyhow::anyhow!("the writer returned no result").into());
    };
    app.telemetry.ingest.count_body(bytes);
    match stored {
        ChunkOutcome::New | ChunkOutcome::Merged => {}
        ChunkOutcome::Duplicate { identical } => {
            let mut conflict =
                Problem::new(ErrorCode::Conflict, format!("the trace {} is stored already", chunk.trace.id));
            conflict.stored = Some((chunk.trace.id, identical));
            return Err(conflict.into());
        }
        ChunkOutcome::Refused => return Err(quota_exceeded(&caller).into()),
    }
    let trace = chunk.trace;
    let response = Ingested {
        id: trace.id,
        external_id: trace.external_id,
        span_count: i64::from(trace.span_count),
        total_token_count: trace.total_tokens,
        cost: trace.cost.map(semantics::money::to_usd),
    };
    Ok((StatusCode::CREATED, Json(response)))
}

/// Store up to 1,000 traces.
///
/// Valid items are stored even if others are rejected; `results` has one entry per item.
#[utoipa::path(post, path = "/v1/ingest/batch", tag = "Ingest", request_body = api::ingest::Batch,
    params(("X-Project-Name" = Option<String>, Header, description = "name of the project; default: the API key's project")),
    responses((status = 200, body = BatchResult)))]
pub async fn batch(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    request: Request,
) -> Result<Json<BatchResult>> {
    read::require_json(&headers)?;
    let mut body = read::read(&app, Some(caller.tenant_id), &headers, request.into_body()).await?;
    body.reserve_structures().await?;
    let default_project = target_project::default_project(&app, &caller).await?;
    let source = IngestSource::new(&app, &caller, default_project, &headers).await?;
    let batch: RawBatch<'_> = read::parse(&body.bytes)?;
    if batch.traces.len() > MAX_BATCH {
        return Err(Problem::field("traces", format!("has more than {MAX_BATCH} items")).into());
    }
    let mut results = Vec::with_capacity(batch.traces.len());
    let mut chunks = Vec::with_capacity(batch.traces.len());
    for (index, raw) in batch.traces.iter().enumerate() {
        let raw = raw.get().as_bytes();
        let chunk = source.chunk(&app, &caller, raw).await;
        let mut result =
            ItemResult { index, id: None, status: ItemStatus::Accepted, code: None, error: None };
        match chunk {
            Ok(chunk) => {
                result.id = Some(chunk.trace.id);
                chunks.push(chunk);
            }
            Err(Error::Problem(problem)) if problem.code != ErrorCode::Overloaded => {
                app.telemetry.ingest.count_rejected(problem.code.as_str(), 1);
                result.status = ItemStatus::Rejected;
                result.code = Some(problem.code.as_str().to_owned());
                result.error = Some(problem.message);
            }
            Err(error) => return Err(error),
        }
        results.push(result);
    }
    let (options, bytes) = (app.ingest_options(&caller).await?, body.bytes.len());
    let stored = app.writer.store(chunks, options, Some(body.into_memory())).await?;
    app.telemetry.ingest.count_body(bytes);
    if !stored.is_empty() && stored.iter().all(|it| it.1 == ChunkOutcome::Refused) {
        return Err(quota_exceeded(&caller).into());
    }
    let accepted = results.iter_mut().filter(|it| it.status == ItemStatus::Accepted);
    for (result, (_, stored)) in accepted.zip(stored) {
        match stored {
            ChunkOutcome::New | ChunkOutcome::Merged => {}
            ChunkOutcome::Duplicate { .. } => result.status = ItemStatus::Duplicate,
            ChunkOutcome::Refused => {
                let problem = quota_exceeded(&caller);
                result.status = ItemStatus::Rejected;
                result.code = Some(problem.code.as_str().to_owned());
                result.error = Some(problem.message);
            }
        }
    }
    let count = |status| results.iter().filter(|it| it.status == status).count();
    let (accepted, rejected) = (count(ItemStatus::Accepted), count(ItemStatus::Rejected));
    if rejected > 0 {
        let Receipt { project_id, now, .. } = source.receipt;
        let reasons = first_reasons(&results);
        let mut items =
            rejected_items(&caller, project_id, RejectionSource::Json, &headers, rejected, reasons);
        RequestRedactors(source.redactor.iter().cloned().collect()).rejected(&mut items);
        record(&app, items, now).await;
    }
    Ok(Json(BatchResult { accepted, rejected, results }))
}

/// Returns the reasons of the first rejected items.
fn first_reasons(results: &[ItemResult]) -> Vec<RejectionReason> {
    let rejected = results.iter().filter(|it| it.status == ItemStatus::Rejected);
    let reason = |it: &ItemResult| RejectionReason {
        index: u64::try_from(it.index).ok(),
        code: it.code.clone().unwrap_or_default(),
        message: it.error.clone().unwrap_or_default(),
    };
    rejected.take(MAX_REASONS).map(reason).collect()
}

/// Returns the error for a trace beyond the monthly quota.
pub fn quota_exceeded(caller: &Caller) -> Problem {
    let limit = monthly_limit(Quota::Traces, caller.plan).unwrap_or_default();
    let message = format!(
        "the {} plan's quota of {limit} traces per month is used up; it renews on the first day of the next month (UTC)",
        caller.plan
    );
    Problem::new(ErrorCode::IngestQuotaExceeded, message)
}

/// A batch with unparsed items, so that an invalid item does not affect the others.
#[derive(Deserialize)]
struct RawBatch<'a> {
    #[serde(borrow, deserialize_with = "first_items")]
    traces: Vec<&'a RawValue>,
}

/// Deserializes the items of a batch; beyond the limit, only the first further one is kept.
fn first_items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<&'de RawValue>, D::Error> {
    struct ItemsVisitor;
    impl<'de> Visitor<'de> for ItemsVisitor {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a sequence")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while items.len() <= MAX_BATCH
                && let Some(item) = sequence.next_element()?
            {
                items.push(item);
            }
            while sequence.next_element::<IgnoredAny>()?.is_some() {}
            Ok(items)
        }
    }
    deserializer.deserialize_seq(ItemsVisitor)
}

/// The origin of the items of a request.
struct IngestSource {
    receipt: Receipt,
    prices: Arc<crate::ingest::prices::PriceBook>,
    /// The redactor of the request's project.
    redactor: Option<Arc<ProjectRedactor>>,
}

impl IngestSource {
    async fn new(
        app: &App,
        caller: &Caller,
        default_project: uuid::Uuid,
        headers: &HeaderMap,
    ) -> Result<Self> {
        let project_id = match target_project::name_in_header(headers)? {
            Some(name) => target_project::by_name(app, caller, &name).await?,
            None => default_project,
        };
        Ok(Self {
            receipt: Receipt { tenant_id: caller.tenant_id, project_id, now: app.clock.now() },
            prices: app.access_cache.price_book(caller.tenant_id).await?,
            redactor: app.access_cache.redactor(caller.tenant_id, project_id).await?,
        })
    }

    async fn chunk(&self, app: &App, caller: &Caller, raw: &[u8]) -> Result<TraceChunk> {
        // Decoding uses the processor only, so at most one batch per processor runs at a time.
        let mut permit = app.decoding_permits.acquire().await.map_err(|_| stopping())?;
        let mut redactor = self.redactor.clone();
        // Messages quote the sender's texts, and responses may be stored.
        let redacted = |error, redactor: &Option<Arc<ProjectRedactor>>| match redactor {
            Some(redactor) => redactor.error(error),
            None => error,
        };
        let item: TraceItem = match read::parse(raw) {
            Ok(item) => item,
            Err(error) => {
                drop(permit);
                let named = named_redactor(app, caller, raw).await?;
                return Err(redacted(redacted(error, &redactor), &named));
            }
        };
        let mut receipt = self.receipt;
        if let Some(name) = &item.project_name {
            // Other batches are decoded while this one waits for the database.
            drop(permit);
            receipt.project_id = target_project::by_name(app, caller, name).await?;
            redactor = app.access_cache.redactor(caller.tenant_id, receipt.project_id).await?;
            permit = app.decoding_permits.acquire().await.map_err(|_| stopping())?;
        }
        let _permit = permit;
        trace_item::to_chunk(item, raw, receipt, &self.prices, redactor.as_deref())
            .map_err(|it| redacted(it.into(), &redactor))
    }
}

/// Returns the redactor of the project that an invalid item names, if there is such a project.
async fn named_redactor(app: &App, caller: &Caller, raw: &[u8]) -> Result<Option<Arc<ProjectRedactor>>> {
    let Some(name) = project_name(raw) else { return Ok(None) };
    // An invalid name is the name of no project.
    let Ok(name) = projects::validate_name("project_name", &name) else { return Ok(None) };
    match app.access_cache.project_by_name(caller.tenant_id, &name).await? {
        Some((id, _)) => app.access_cache.redactor(caller.tenant_id, id).await,
        None => Ok(None),
    }
}

/// Returns the last project name in an item that may be invalid, also if an error follows it.
fn project_name(raw: &[u8]) -> Option<String> {
    struct NameVisitor<'a>(&'a mut Option<String>);
    impl<'de> Visitor<'de> for NameVisitor<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
            while let Some(key) = members.next_key::<String>()? {
                if key == "project_name" {
                    let value = members.next_value::<serde_json::Value>()?;
                    if let Some(name) = value.as_str() {
                        *self.0 = Some(name.to_owned());
                    }
                } else {
                    members.next_value::<IgnoredAny>()?;
                }
            }
            Ok(())
        }
    }
    let mut name = None;
    // The part before a syntax error is enough.
    let _ = serde_json::Deserializer::from_slice(raw).deserialize_map(NameVisitor(&mut name));
    name
}

#[cfg(test)]
mod tests {
    use super::project_name;

    #[test]
    fn project_name_is_read_from_invalid_items() {
        for (raw, expected) in [
            (r#"{"name": 1, "project_name": "web"}"#, Some("web")),
            (r#"{"project_name": "web", "spans": [{"id": {}}], "n": tru"#, Some("web")),
            (r#"{"metadata": {"project_name": "no"}}"#, None),
            (r#"{"project_name": 7}"#, None),
            ("[1]", None),
        ] {
            assert_eq!(project_name(raw.as_bytes()).as_deref(), expected, "{raw}");
        }
    }
}
