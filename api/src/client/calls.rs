//! Every endpoint that the clients use, with the type of its answer.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Auth, Body, Call, call::Method, stream::Traces};
use crate::{
    filter::Filter,
    ingest::{BatchResult, Ingested},
    key::{ApiKey, ApiKeyList, NewApiKey},
    model::ModelList,
    project::{Project, ProjectList, ProjectStatus},
    tenant::Me,
    trace::{SpanList, Trace, TraceList},
};

/// A page of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Rows, 1 to 200; the server's default if absent.
    pub limit: Option<u32>,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

/// Who the credential belongs to.
pub fn me() -> Call<Me> {
    Call::get("/v1/me")
}

/// Whether the server's process is up. Needs no credential.
pub fn health() -> Call<Value> {
    Call::get("/healthz").with(Auth::None)
}

/// A page of traces, newest first, their texts cut to a preview.
pub fn traces(filter: &Filter, project: Option<Uuid>, page: &Page) -> Call<TraceList> {
    whole_traces(filter, project, page).query("preview", true)
}

/// A page of traces, newest first, their texts whole. Large texts make pages short.
pub fn whole_traces(filter: &Filter, project: Option<Uuid>, page: &Page) -> Call<TraceList> {
    paged(filtered(Call::get("/v1/traces"), filter, project), page)
}

/// The live stream of the traces that a filter selects.
pub fn trace_stream(filter: &Filter, project: Option<Uuid>) -> Call<Traces> {
    filtered(Call::get("/v1/traces/stream"), filter, project)
}

/// A trace with its spans, by id or by the 32 digits of an OpenTelemetry trace id.
pub fn trace(id: &str) -> Call<Trace> {
    Call::get(format!("/v1/traces/{}", segment(id)))
}

/// A further page of a trace's spans.
pub fn spans(trace: &str, page: &Page) -> Call<SpanList> {
    paged(Call::get(format!("/v1/traces/{}/spans", segment(trace))), page)
}

/// Stores one trace. Repeatable if the item has an id.
pub fn ingest(item: Value) -> Call<Ingested> {
    let named = has_id(&item);
    let call = Call::post("/v1/ingest").json(item);
    if named { call.repeatable() } else { call }
}

/// Stores up to [`crate::ingest::MAX_BATCH`] traces. Repeatable if all have ids.
pub fn ingest_batch(items: Vec<Value>) -> Call<BatchResult> {
    let named = items.iter().all(has_id);
    let call = Call::post("/v1/ingest/batch").json(json!({ "traces": items }));
    if named { call.repeatable() } else { call }
}

/// Stores an OTLP export request; spans carry their ids, so it is repeatable.
pub fn ingest_otlp(content_type: &'static str, bytes: Vec<u8>) -> Call<Value> {
    let mut call = Call::post("/v1/otlp/traces").repeatable();
    call.body = Body::Bytes { content_type, bytes };
    call
}

/// A page of API keys, newest first.
pub fn api_keys(page: &Page) -> Call<ApiKeyList> {
    paged(Call::get("/v1/apikeys"), page).with(Auth::SessionOnly)
}

/// Makes an API key; the answer holds its secret.
pub fn create_api_key(key: &NewApiKey) -> Call<ApiKey> {
    let NewApiKey { name, scopes, project_id, expires_at } = key;
    let mut body = json!({ "name": name });
    if let Some(scopes) = scopes {
        body["scopes"] = json!(scopes);
    }
    if let Some(project) = project_id {
        body["project_id"] = json!(project);
    }
    if let Some(expires) = expires_at {
        body["expires_at"] = json!(expires);
    }
    Call::post("/v1/apikeys").json(body).with(Auth::SessionOnly)
}

/// Ends an API key.
pub fn revoke_api_key(id: Uuid) -> Call<Value> {
    Call::new(Method::DELETE, format!("/v1/apikeys/{id}")).with(Auth::SessionOnly)
}

/// A page of projects, newest first; of one status, or all.
pub fn projects(status: Option<ProjectStatus>, page: &Page) -> Call<ProjectList> {
    let status = match status {
        Some(ProjectStatus::Active) => "active",
        Some(ProjectStatus::Archived) => "archived",
        None => "all",
    };
    paged(Call::get("/v1/projects").query("status", status), page)
}

/// One project.
pub fn project(id: Uuid) -> Call<Project> {
    Call::get(format!("/v1/projects/{id}"))
}

/// Suspends ingest for every key of a project.
pub fn archive_project(id: Uuid) -> Call<Project> {
    Call::post(format!("/v1/projects/{id}/archive")).with(Auth::Session)
}

/// Lets a project take traces again.
pub fn unarchive_project(id: Uuid) -> Call<Project> {
    Call::post(format!("/v1/projects/{id}/unarchive")).with(Auth::Session)
}

/// The prices of models.
pub fn models() -> Call<ModelList> {
    Call::get("/v1/models")
}

/// Text as one segment of a path: it can't leave its place, whatever it holds.
pub fn segment(text: &str) -> String {
    let mut path = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => path.push(char::from(byte)),
            b'.' if text.len() > 2 => path.push('.'),
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

fn filtered<T>(mut call: Call<T>, filter: &Filter, project: Option<Uuid>) -> Call<T> {
    for (name, value) in filter.params() {
        call = call.query(*name, value);
    }
    call.maybe("project_id", project)
}

fn paged<T>(call: Call<T>, page: &Page) -> Call<T> {
    call.maybe("limit", page.limit).maybe("cursor", page.cursor.as_deref())
}

fn has_id(item: &Value) -> bool {
    item.get("id").is_some_and(Value::is_string)
}
