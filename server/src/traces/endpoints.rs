//! Handlers of traces.

mod export;
mod sessions;
mod stream;

use std::sync::Arc;

use api::{
    ErrorCode, FailureType, Timestamp,
    trace::{SpanList, Trace, TraceList},
};
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use store::{
    rates::RateBucket,
    traces::{Filter, Tag},
};
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::{Result, not_found, problem},
    http::{
        pieces::{PageWriter, PushOutcome},
        query::{Query, invalid, path_id},
        read_size::{EVENT_BYTES_PER_READ, ROWS_PER_READ},
        route::{Route, route},
    },
    trace_removal::{self, TRACE_DELETE},
    traces::view,
};

/// Maximum number of spans in the trace detail; further ones are paged.
const DETAIL_SPANS: usize = 2_000;
/// Maximum number of events in the trace detail.
const DETAIL_EVENTS: u64 = 2_000;
/// Maximum number of tag filters of a list.
const MAX_TAG_FILTERS: usize = 20;
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
    ("project_id" = Option<Uuid>, Query, description = "of this project"),
    ("model" = Option<String>, Query, description = "of this model, exactly"),
    ("error" = Option<bool>, Query, description = "failed traces (true) or successful ones (false)"),
    ("failure_type" = Option<String>, Query, description = "with a span of this failure type: timeout, rate_limit, invalid_response, context_length"),
    ("from" = Option<Timestamp>, Query, description = "started at this time or later"),
    ("to" = Option<Timestamp>, Query, description = "started at this time or earlier"),
    ("latency_min" = Option<u64>, Query, description = "milliseconds, inclusive"),
    ("latency_max" = Option<u64>, Query, description = "milliseconds, inclusive"),
    ("token_count_min" = Option<u64>, Query, description = "tokens, inclusive"),
    ("token_count_max" = Option<u64>, Query, description = "tokens, inclusive"),
    ("min_cost" = Option<f64>, Query, description = "US dollars, inclusive"),
    ("max_cost" = Option<f64>, Query, description = "US dollars, inclusive"),
    ("tag_key" = Option<String>, Query, description = "with this tag; needs tag_value"),
    ("tag_value" = Option<String>, Query, description = "and this value; needs tag_key"),
    ("tag" = Option<Vec<String>>, Query, description = "`key` or `key:value`; repeated, all must match"),
    ("session_id" = Option<String>, Query, description = "of this session"),
    ("user_id" = Option<String>, Query, description = "of this end user"),
    ("name" = Option<String>, Query, description = "of this name, exactly"),
    ("external_id" = Option<String>, Query, description = "the sender's own identifier of the trace"),
    ("q" = Option<String>, Query, description = "text in name, error, input or output, ignoring case; searches the newest 2,000 traces in range per page"),
    ("preview" = Option<bool>, Query, description = "truncate texts to 2,048 characters"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = TraceList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Response> {
    let tenant = caller.tenant_id;
    let filter = filter(&query)?;
    let limit = query.limit()?;
    let preview = query.boolean("preview")?.unwrap_or(false);
    let scope = scope(&filter);
    let after = query.get("cursor").map(|it| app.cursors.open(tenant, &scope, it)).transpose()?;
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
    Ok(page.finish(&end_of_page(next.map(|it| app.cursors.seal(tenant, &scope, it)))?))
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
    // No control action has been executed on any trace: they arrive with the control loop.
    trace.control_loop_depth = Some(0);
    let mut page = PageWriter::begin_object(memory, trace, counted.reserved).await?;
    page.next_array(b",\"spans\":[", true);
    let next = write_spans(&app, &mut page, (tenant, id), None, DETAIL_SPANS).await?;
    page.json(b"]");
    if let Some(next) = next {
        let next = serde_json::to_string(&next).map_err(anyhow::Error::from)?;
        page.json(format!(",\"spans_next_cursor\":{next}").as_bytes());
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
    let after = query.get("cursor").map(|it| app.cursors.open(tenant, &span_scope(id), it)).transpose()?;
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
        app.cursors.seal(tenant, &span_scope(trace), at.unwrap_or(BEFORE_FIRST_SPAN))
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

/// Parses the filters of a query string.
pub fn filter(query: &Query) -> Result<Filter> {
    let mut tags = Vec::new();
    // A tag's value may be empty, its key may not.
    match (query.get("tag_key"), query.get("tag_value")) {
        (Some(key), Some(value)) if !key.is_empty() => tags.push(Tag::Pair(key.to_owned(), value.to_owned())),
        (None, None) => {}
        _ => {
            return Err(problem(
                ErrorCode::TagsFilterIncomplete,
                "tag_key and tag_value must be given together, and tag_key must not be empty",
            ));
        }
    }
    if query.all("tag").any(str::is_empty) {
        return Err(invalid("tag", "must not be empty"));
    }
    tags.extend(query.all("tag").map(|it| match it.split_once(':') {
        Some((key, value)) => Tag::Pair(key.to_owned(), value.to_owned()),
        None => Tag::Key(it.to_owned()),
    }));
    // No trace has more tags, and each filter is a condition of the statement, whose size is bounded.
    if tags.len() > MAX_TAG_FILTERS {
        return Err(invalid("tag", &format!("must not be repeated more than {MAX_TAG_FILTERS} times")));
    }
    let failure_type = match query.get("failure_type") {
        None => None,
        Some(word) => match word.parse() {
            Ok(FailureType::Other) | Err(_) => {
                return Err(invalid(
                    "failure_type",
                    "must be timeout, rate_limit, invalid_response or context_length",
                ));
            }
            Ok(known) => Some(known),
        },
    };
    let words: Vec<String> =
        query.get("q").unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() && query.get("q").is_some() {
        return Err(invalid("q", "must have at least one word"));
    }
    let (from, to) = Query::ordered(("from", "to"), (query.time("from")?, query.time("to")?))?;
    let natural = |min: &'static str, max: &'static str| {
        Query::ordered((min, max), (query.natural(min)?, query.natural(max)?))
    };
    Ok(Filter {
        project_id: query.uuid("project_id")?,
        model: query.text("model"),
        error: query.boolean("error")?,
        failure_type,
        from,
        to,
        stored_until: None,
        latency: natural("latency_min", "latency_max")?,
        tokens: natural("token_count_min", "token_count_max")?,
        cost: Query::ordered(("min_cost", "max_cost"), (query.money("min_cost")?, query.money("max_cost")?))?,
        tags,
        session_id: query.text("session_id"),
        user_id: query.text("user_id"),
        name: query.text("name"),
        external_id: query.text("external_id"),
        words,
    })
}

/// Returns the scope of a list's cursors.
fn scope(filter: &Filter) -> String {
    format!("traces {filter:?}")
}

fn span_scope(trace: Uuid) -> String {
    format!("spans {trace}")
}
