//! Handlers of semantic search.

use std::{collections::HashMap, sync::Arc};

use api::{
    ErrorCode, Plan, Timestamp,
    page::{DEFAULT_LIMIT, MAX_LIMIT},
    search::{NearSpan, SearchResult, SearchResults, VectorSearch},
};
use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use sha2::{Digest, Sha256};
use store::{
    projects, traces,
    vectors::{self, Hit, UnitVector, VectorFilter},
};
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Keys},
    app::App,
    error::{Problem, Result, not_found},
    feature::Feature,
    http::{
        page_writer::{PageWriter, PushOutcome},
        query::{Query, invalid},
        read::ApiJson,
        read_size::ROWS_PER_READ,
        route::{Route, route},
    },
    ingest::validation::validate_vector,
    traces::view,
};

/// Maximum length of a query in characters.
const MAX_QUERY_CHARS: usize = 4_000;

/// The query vector, filters and page of a search.
struct SearchRequest<'a> {
    query_vector: &'a UnitVector,
    filter: VectorFilter,
    /// Identifies the query vector, for the cursor.
    name: String,
    cursor: Option<&'a str>,
    limit: usize,
}

/// Semantic search.
pub const FEATURE: Feature = Feature { routes, ..Feature::NONE };

fn routes() -> Vec<Route> {
    vec![
        route!(by_words, Access::viewer().keys(Keys::Query).plan(Plan::Pro))
            .acquires_permits()
            .errors(&[ErrorCode::UpstreamFailed]),
        route!(by_vector, Access::viewer().keys(Keys::Query).plan(Plan::Pro))
            .errors(&[ErrorCode::NotFound, ErrorCode::InvalidCursor]),
    ]
}

/// Search spans by text, most similar first.
///
/// The text is embedded with the tenant's own provider credential and compared with spans whose vectors
/// come from the same model; `not_searched` counts the others. Without a credential with an
/// `embedding_model` the response is 502. The vector of a query is cached for ten minutes, for further
/// pages.
#[utoipa::path(get, path = "/v1/search/spans", tag = "Search", params(
    ("q" = String, Query, description = "the text to search for; at most 4,000 characters"),
    ("project_id" = Option<Uuid>, Query, description = "only spans of this project"),
    ("from" = Option<Timestamp>, Query, description = "only spans that started at this time or later"),
    ("to" = Option<Timestamp>, Query, description = "only spans that started at this time or earlier"),
    ("type" = Option<String>, Query, description = "only spans of this type"),
    ("model" = Option<String>, Query, description = "only spans of this model, exactly"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`, with the same text and filters"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = SearchResults)))]
pub async fn by_words(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Response> {
    let words = query.get("q").map(str::trim).filter(|it| !it.is_empty());
    let words = words.ok_or_else(|| invalid("q", "is required: the text to search for"))?;
    if words.chars().nth(MAX_QUERY_CHARS).is_some() {
        return Err(invalid("q", &format!("is longer than {MAX_QUERY_CHARS} characters")));
    }
    let project_id = query.uuid("project_id")?;
    let times = Query::ordered(("from", "to"), (query.time("from")?, query.time("to")?))?;
    let limit = query.limit()?;
    let kind = query.filled_text("type")?;
    if let Some(id) = project_id
        && projects::get(&app.db.read, caller.tenant_id, id).await?.is_none()
    {
        // The same shape as an empty list; no provider is called if there is nothing to search.
        let (results, next_cursor) = (Vec::new(), None);
        return Ok(Json(SearchResults {
            results,
            has_more: false,
            next_cursor,
            searched: 0,
            not_searched: 0,
        })
        .into_response());
    }
    let query_vector =
        app.search.query_vectors.embed(&app.embedder, caller.tenant_id, caller.plan, words).await?;
    let model = Some(query_vector.model.clone());
    let search = SearchRequest {
        query_vector: &query_vector.vector,
        filter: VectorFilter::of(project_id, times, kind.as_deref(), query.get("model"), model),
        name: words.to_owned(),
        cursor: query.get("cursor"),
        limit,
    };
    page(&app, caller.tenant_id, search).await
}

/// Search spans by vector, most similar first.
///
/// The vector is compared with the vectors of `embedding_model`, or with all, including those sent with
/// their spans. No embedding provider is needed. Instead of a vector, `near` names a stored span: its
/// vector is compared with those of the same model, including itself. An unknown span, or one without a
/// vector, gets 404.
#[utoipa::path(post, path = "/v1/search/spans", tag = "Search", request_body = VectorSearch,
    responses((status = 200, body = SearchResults)))]
pub async fn by_vector(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<VectorSearch>,
) -> Result<Response> {
    let VectorSearch { vector, near, project_id, from, to, kind, model, embedding_model, cursor, limit } =
        body;
    let (query_vector, embedding_model) = match near {
        None => {
            let vector = vector.ok_or_else(|| {
                Problem::missing("vector", "a vector of 1536 numbers, or `near` with a stored span")
            })?;
            (validate_vector("vector", &vector)?, embedding_model)
        }
        Some(_) if vector.is_some() => {
            return Err(Problem::field("near", "can't be combined with vector").into());
        }
        Some(NearSpan { trace_id, span_id }) => {
            let found = vectors::of_span(&app.db, caller.tenant_id, trace_id, span_id).await?;
            let (query_vector, vector_model) = found.ok_or_else(|| not_found("vector of this span"))?;
            (query_vector, embedding_model.or(Some(vector_model)))
        }
    };
    for (field, text) in [("type", &kind), ("model", &model), ("embedding_model", &embedding_model)] {
        // PostgreSQL cannot store NUL in texts.
        if text.as_deref().is_some_and(|it| it.contains('\0')) {
            return Err(Problem::field(field, "must not contain NUL").into());
        }
    }
    let times = (from.map(Timestamp::micros), to.map(Timestamp::micros));
    if let (Some(from), Some(to)) = times
        && to < from
    {
        return Err(Problem::field("to", "must not be before from").into());
    }
    let limit = match limit.map(u32::try_from) {
        None => DEFAULT_LIMIT,
        Some(Ok(limit)) if (1..=MAX_LIMIT).contains(&limit) => limit,
        Some(_) => return Err(Problem::field("limit", format!("must be between 1 and {MAX_LIMIT}")).into()),
    };
    if let Some(id) = project_id {
        projects::get(&app.db.read, caller.tenant_id, id).await?.ok_or_else(|| not_found("project"))?;
    }
    let search = SearchRequest {
        query_vector: &query_vector,
        filter: VectorFilter::of(project_id, times, kind.as_deref(), model.as_deref(), embedding_model),
        name: digest(&query_vector),
        cursor: cursor.as_deref(),
        limit: limit as usize,
    };
    page(&app, caller.tenant_id, search).await
}

async fn page(app: &App, tenant: Uuid, search: SearchRequest<'_>) -> Result<Response> {
    let SearchRequest { query_vector, filter, name, cursor, limit } = search;
    let scope = format!("search {name:?} {filter:?}");
    let after: Option<Hit> = cursor.map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let _permit = app.read_permit(tenant).await?;
    let found = app.search.nearest(&app.db, tenant, query_vector, &filter, after, limit + 1).await?;
    let mut hits = found.hits;
    let mut next_cursor = app.cursors.page(tenant, &scope, &mut hits, limit, |it| *it);
    let mut page = PageWriter::begin(app.workspace(tenant).await?, b"{\"results\":[");
    let mut last = None;
    'page: for block in hits.chunks(usize::from(ROWS_PER_READ)) {
        let ids: Vec<(Uuid, Uuid)> = block.iter().map(|it| (it.trace_id, it.id)).collect();
        let rows = traces::some_spans(&app.db, tenant, &ids).await?;
        let mut texts =
            traces::TextBlocks::load(&app.db, tenant, rows.iter().filter_map(|it| it.body_id)).await?;
        let mut rows: HashMap<_, _> = rows.into_iter().map(|it| ((it.trace_id, it.id), it)).collect();
        for hit in block {
            // The span may have been deleted since it was found.
            let Some(row) = rows.remove(&(hit.trace_id, hit.id)) else { continue };
            let counted = texts.of_span(&app.db, &row, page.memory()).await?;
            let (distance, score) = (hit.distance, (1.0 - hit.distance).clamp(0.0, 1.0));
            let result = SearchResult { span: view::span(row, counted.texts), score, distance };
            let pushed = page.push(result, counted.reserved).await?;
            if pushed == PushOutcome::Full {
                next_cursor = last.map(|it: Hit| app.cursors.sign(tenant, &scope, it));
                break 'page;
            }
            last = Some(*hit);
        }
    }
    let next = serde_json::to_string(&next_cursor).map_err(anyhow::Error::from)?;
    let end = format!(
        "],\"has_more\":{},\"next_cursor\":{next},\"searched\":{},\"not_searched\":{}}}",
        next_cursor.is_some(),
        found.searched,
        found.not_searched
    );
    Ok(page.finish(end.as_bytes()))
}

/// Returns a short digest of a vector.
fn digest(vector: &UnitVector) -> String {
    let mut digest = Sha256::new();
    vector.numbers().iter().for_each(|it| digest.update(it.to_le_bytes()));
    digest.finalize().iter().map(|it| format!("{it:02x}")).collect()
}
