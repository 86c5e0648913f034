//! Handlers of traces.

mod export;
mod sessions;
mod stream;

use std::sync::Arc;

use api::{
    ErrorCode,
    trace::{SpanList, Trace, TraceList},
    trace_filter::{TraceConditions, TraceFilterParameters},
};
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use store::rates::RateBucket;
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::{Result, not_found},
    http::{
        page_writer::{PageWriter, PushOutcome},
        query::{Query, path_id},
        read_size::{EVENT_BYTES_PER_READ, ROWS_PER_READ},
        route::{Route, route},
        trace_filter,
    },
    trace_removal::{self, TRACE_DELETE},
    traces::view,
};

/// Maximum number of spans in the trace detail; further ones are paged.
const DETAIL_SPANS: usize = 2_000;
/// Maximum number of events in the trace detail.
const DETAIL_EVENTS: u64 = 2_000;
/// The position before the first span of a trace.
const BEFORE_FIRST_SPAN: store::traces::Position = (i64::MIN, Uuid::nil());

/// Returns the routes of traces.
pub fn routes() -> Vec<Route> {
    let traces = vec![
        route!(list, Access::viewer().keys(Keys::Query))
            .counts_to(RateBucket::Traces)
            .errors(&[ErrorCode::TagsFilterIncomplete]),
        route!(detail, Access::viewer().keys(Keys::Query)),
        route!(delete, Access::owner().keys(Keys::Full)).audited(TRACE_DELETE),
        route!(spans, Access::viewer().keys(Keys::Query)),
    ];
    [traces, stream::routes(), export::routes(), sessions::routes()].concat()
}

/// List traces, newest first.
///
/// All filters must match. A page may end early, with `has_more`, when the response reaches 8 MiB or
/// when `q` is used.
#[utoipa::path(get, path = "/v1/traces", tag = "Traces", params(
    TraceFilterParameters,
    ("preview" = Option<bool>, Query, description = "truncate texts to 2,048 characters"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = TraceList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Response> {
    let tenant = caller.tenant_id;
    let filter = trace_filter::conditions(&query)?;
    let limit = query.limit()?;
    let preview = query.boolean("preview")?.unwrap_or(false);
    let scope = scope(&filter);
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let mut page = PageWriter::begin(app.workspace(tenant).await?, b"{\"traces\":[");
    let mut reader = store::traces::TraceReader::open(&app.db, tenant, &filter, after, limit).await?;
    let next = loop {
        let before = reader.position();
        if page.items() == limit {
            break before.filter(|_| reader.has_more());
        }
        let Some((row, counted)) = reader.next(page.memory()).await? else {
            break reader.position().filter(|_| reader.has_more());
        };
        let trace = view::trace(row, counted.texts, preview);
        if page.push(trace, counted.reserved).await? == PushOutcome::Full {
            break before;
        }
    };
    Ok(page.finish(&end_of_page(next.map(|it| app.cursors.sign(tenant, &scope, it)))?))
}

/// Returns the end of a JSON page after its items.
fn end_of_page(next_cursor: Option<String>) -> Result<Vec<u8>> {
    let next = serde_json::to_string(&next_cursor).map_err(anyhow::Error::from)?;
    Ok(format!("],\"has_more\":{},\"next_cursor\":{next}}}", next_cursor.is_some()).into_bytes())
}

/// Show a trace with its spans and events.
///
/// The ID may be the 32 hexadecimal digits of an OpenTelemetry trace ID. Beyond 2,000 spans or 8 MiB,
/// the response contains the first spans and `spans_next_cursor`; it contains up to 2,000 events, as
/// many as fit.
#[utoipa::path(get, path = "/v1/traces/{id}", tag = "Traces", params(("id" = String, Path, description = "id of the trace")),
    responses((status = 200, body = Trace)))]
pub async fn detail(State(app): State<Arc<App>>, caller: Caller, Path(id): Path<String>) -> Result<Response> {
    let (tenant, id) = (caller.tenant_id, path_id(&id)?);
    let row = store::traces::get(&app.db, tenant, id).await?.ok_or_else(|| not_found("trace"))?;
    let mut memory = app.workspace(tenant).await?;
    let texts = store::traces::TextBlocks::of_traces(&app.db, tenant, std::slice::from_ref(&row)).await?;
    let counted = texts.of_trace(&app.db, &row, &mut memory).await?;
    let mut trace = view::trace(row, counted.texts, false);
    trace.control_loop_depth = Some(store::control_actions::executed_retries(&app.db, tenant, id).await?);
    let mut page = PageWriter::begin_object(memory, trace, counted.reserved).await?;
    page.next_array(b",\"spans\":[", true);
    let next = write_spans(&app, &mut page, (tenant, id), None, DETAIL_SPANS).await?;
    page.push_json(b"]");
    if let Some(next) = next {
        let next = serde_json::to_string(&next).map_err(anyhow::Error::from)?;
        page.push_json(format!(",\"spans_next_cursor\":{next}").as_bytes());
    }
    page.next_array(b",\"events\":[", false);
    write_events(&app, &mut page, (tenant, id)).await?;
    Ok(page.finish(b"]}"))
}

/// List the spans of a trace by start time.
#[utoipa::path(get, path = "/v1/traces/{id}/spans", tag = "Traces", params(
    ("id" = String, Path, description = "id of the trace"),
    ("cursor" = Option<String>, Query, description = "from `spans_next_cursor` or a previous `next_cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = SpanList)))]
pub async fn spans(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
) -> Result<Response> {
    let (tenant, id) = (caller.tenant_id, path_id(&id)?);
    let limit = query.limit()?;
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &span_scope(id), it)).transpose()?;
    store::traces::get(&app.db, tenant, id).await?.ok_or_else(|| not_found("trace"))?;
    let mut page = PageWriter::begin(app.workspace(tenant).await?, b"{\"spans\":[");
    let next = write_spans(&app, &mut page, (tenant, id), after, limit).await?;
    Ok(page.finish(&end_of_page(next)?))
}

/// Delete a trace with its spans, evaluations and feedback.
///
/// The same ID may be ingested again afterwards.
#[utoipa::path(delete, path = "/v1/traces/{id}", tag = "Traces", params(("id" = String, Path, description = "id of the trace")),
    responses((status = 204, description = "the trace is deleted")))]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    match trace_removal::remove(&app, &caller, path_id(&id)?).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_found("trace")),
    }
}

/// Writes up to `limit` spans of a trace after `after`. Returns the cursor of the next page; `None` at
/// the end.
async fn write_spans(
    app: &App,
    page: &mut PageWriter,
    (tenant, trace): (Uuid, Uuid),
    after: Option<store::traces::Position>,
    limit: usize,
) -> Result<Option<String>> {
    let (mut written, mut last) = (0, after);
    let cursor = |at: Option<store::traces::Position>| {
        app.cursors.sign(tenant, &span_scope(trace), at.unwrap_or(BEFORE_FIRST_SPAN))
    };
    loop {
        let wanted = usize::from(ROWS_PER_READ).min(limit - written);
        let more = u64::try_from(wanted + 1).unwrap_or(u64::MAX);
        let mut rows = store::traces::spans(&app.db, tenant, trace, last, more).await?;
        let has_more = rows.len() > wanted;
        rows.truncate(wanted);
        let ids = rows.iter().filter_map(|it| it.body_id);
        let mut texts = store::traces::TextBlocks::load(&app.db, tenant, ids).await?;
        for row in rows {
            let position = (row.started_at, row.id);
            let counted = texts.of_span(&app.db, &row, page.memory()).await?;
            if page.push(view::span(row, counted.texts), counted.reserved).await? == PushOutcome::Full {
                return Ok(Some(cursor(last)));
            }
            (last, written) = (Some(position), written + 1);
        }
        if !has_more {
            return Ok(None);
        }
        if written == limit {
            return Ok(Some(cursor(last)));
        }
    }
}

/// Writes as many events of a trace as fit beside its spans.
async fn write_events(app: &App, page: &mut PageWriter, (tenant, trace): (Uuid, Uuid)) -> Result<()> {
    let (mut left, mut after) = (DETAIL_EVENTS, None);
    while left > 0 {
        let counted = store::traces::events_within(
            &app.db,
            tenant,
            trace,
            after,
            left,
            EVENT_BYTES_PER_READ,
            page.memory(),
        )
        .await?;
        let Some(last) = counted.texts.last() else { return Ok(()) };
        after = Some((last.created_at, last.id));
        left = left.saturating_sub(counted.texts.len() as u64);
        let mut reserved = counted.reserved;
        for row in counted.texts {
            if page.push(view::event(row), std::mem::take(&mut reserved)).await? == PushOutcome::Full {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Returns the scope of a list's cursors.
fn scope(filter: &TraceConditions) -> String {
    format!("traces {filter:?}")
}

fn span_scope(trace: Uuid) -> String {
    format!("spans {trace}")
}
