//! Every endpoint that the clients use, with the type of its answer.

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Auth, Body, Call, call::Method, stream::Traces};
use crate::{
    Timestamp,
    audit::AuditLog,
    credential::{NewProviderCredential, Provider, ProviderCredential, ProviderCredentialList},
    eval::{
        Bulk, BulkStarted, Evaluation, EvaluationContext, EvaluationList, EvaluationStatus, EvaluatorType,
        NewBulk, NewEvaluation,
    },
    eval_rule::{
        EvalRule, EvalRuleChange, EvalRuleList, NewBackfill, NewEvalRule, NewRuleTest, RuleDecisionList,
        RuleTest,
    },
    evaluator::{Evaluator, EvaluatorChange, EvaluatorList, NewEvaluator},
    feedback::{Feedback, FeedbackLabel, FeedbackList, NewFeedback},
    filter::Filter,
    ingest::{BatchResult, Ingested},
    key::{ApiKey, ApiKeyList, NewApiKey},
    member::{Member, MemberChange, MemberList, MemberStatus},
    metrics::{Interval, Metrics, ProjectMetric, ProjectMetricValue, ProjectWindow, Window},
    model::ModelList,
    project::{NewProject, Project, ProjectChange, ProjectList, ProjectStatus},
    search::{SearchResults, VectorSearch},
    session::SessionList,
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

/// The traces that a filter selects, with their spans, as a stream of lines in a format
/// (`jsonl` or `otlp`). To be opened with [`super::Client::download`].
pub fn export_traces(filter: &Filter, project: Option<Uuid>, format: &str) -> Call<()> {
    filtered(Call::get("/v1/traces/export"), filter, project).query("format", format)
}

/// Deletes a trace with all that hangs on it.
pub fn delete_trace(id: &str) -> Call<()> {
    Call::delete(format!("/v1/traces/{}", segment(id))).with(Auth::Session)
}

/// Which sessions; each member that is absent leaves the choice open.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Of one project.
    pub project_id: Option<Uuid>,
    /// Of one user of the application.
    pub user_id: Option<String>,
    /// With a trace at or after this time.
    pub from: Option<Timestamp>,
    /// With a trace at or before this time.
    pub to: Option<Timestamp>,
}

/// A page of sessions, by their last trace, newest first.
pub fn sessions(filter: &SessionFilter, page: &Page) -> Call<SessionList> {
    let SessionFilter { project_id, user_id, from, to } = filter;
    let call = Call::get("/v1/sessions").maybe("project_id", *project_id).maybe("user_id", user_id.as_ref());
    paged(call.maybe("from", *from).maybe("to", *to), page)
}

/// What metrics are asked for; each member that is absent leaves the choice open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricQuery {
    /// Of one project.
    pub project_id: Option<Uuid>,
    /// Of traces of one model.
    pub model: Option<String>,
    /// Up to now; the server's default is 24 hours.
    pub window: Option<Window>,
    /// From this time on; it wins over `window`.
    pub from: Option<Timestamp>,
    /// Up to this time.
    pub to: Option<Timestamp>,
    /// Also as a series.
    pub interval: Option<Interval>,
    /// Also by group: `model`, `name` or `tag:<key>`.
    pub group_by: Option<String>,
}

/// Rolling metrics of traces.
pub fn metrics(query: &MetricQuery) -> Call<Metrics> {
    let MetricQuery { project_id, model, window, from, to, interval, group_by } = query;
    let call = Call::get("/v1/metrics").maybe("project_id", *project_id).maybe("model", model.as_ref());
    let call = call.maybe("window", *window).maybe("from", *from).maybe("to", *to);
    call.maybe("interval", *interval).maybe("group_by", group_by.as_ref())
}

/// A metric of a project.
pub fn project_metric(
    project: Uuid,
    metric: ProjectMetric,
    window: ProjectWindow,
) -> Call<ProjectMetricValue> {
    let call = Call::get(format!("/v1/projects/{project}/metrics"));
    call.query("metric", metric).query("window", window)
}

/// Which feedback; each member that is absent leaves the choice open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedbackFilter {
    /// On traces of one project.
    pub project_id: Option<Uuid>,
    /// On one trace.
    pub trace_id: Option<Uuid>,
    /// Of one verdict.
    pub label: Option<FeedbackLabel>,
    /// First said at or after this time.
    pub from: Option<Timestamp>,
    /// First said at or before this time.
    pub to: Option<Timestamp>,
}

/// A page of feedback, newest first.
pub fn feedback(filter: &FeedbackFilter, page: &Page) -> Call<FeedbackList> {
    let FeedbackFilter { project_id, trace_id, label, from, to } = filter;
    let call = Call::get("/v1/feedback").maybe("project_id", *project_id).maybe("trace_id", *trace_id);
    paged(call.maybe("label", *label).maybe("from", *from).maybe("to", *to), page)
}

/// Says something of a trace. With a user it may be said again; without, each one counts.
pub fn add_feedback(feedback: &NewFeedback) -> Call<Feedback> {
    let call = Call::post("/v1/feedback").json(given(feedback));
    if feedback.user_id.is_some() { call.repeatable() } else { call }
}

/// Which evaluations; each member that is absent leaves the choice open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvaluationFilter {
    /// Of one project.
    pub project_id: Option<Uuid>,
    /// Of one trace.
    pub trace_id: Option<Uuid>,
    /// By one evaluator.
    pub metric_name: Option<String>,
    /// By judges, or by code.
    pub evaluator_type: Option<EvaluatorType>,
    /// That are this far.
    pub status: Option<EvaluationStatus>,
    /// With this label.
    pub label: Option<String>,
    /// Of traces as ingested, or of remediated outputs.
    pub context: Option<EvaluationContext>,
    /// That one rule asked for.
    pub rule_id: Option<Uuid>,
    /// Asked for at or after this time.
    pub from: Option<Timestamp>,
    /// Asked for at or before this time.
    pub to: Option<Timestamp>,
    /// With at least this score.
    pub min_score: Option<f64>,
    /// With at most this score.
    pub max_score: Option<f64>,
}

/// A page of evaluations, newest first.
pub fn evaluations(filter: &EvaluationFilter, page: &Page) -> Call<EvaluationList> {
    let EvaluationFilter { project_id, trace_id, metric_name, evaluator_type, status, label, .. } = filter;
    let EvaluationFilter { context, rule_id, from, to, min_score, max_score, .. } = filter;
    let call = Call::get("/v1/eval").maybe("project_id", *project_id).maybe("trace_id", *trace_id);
    let call = call.maybe("metric_name", metric_name.as_ref()).maybe("evaluator_type", *evaluator_type);
    let call = call.maybe("status", *status).maybe("label", label.as_ref()).maybe("context", *context);
    let call = call.maybe("rule_id", *rule_id).maybe("from", *from).maybe("to", *to);
    paged(call.maybe("min_score", *min_score).maybe("max_score", *max_score), page)
}

/// An evaluation.
pub fn evaluation(id: Uuid) -> Call<Evaluation> {
    Call::get(format!("/v1/eval/{id}"))
}

/// Asks for an evaluation of a trace.
pub fn evaluate(new: &NewEvaluation) -> Call<Evaluation> {
    Call::post("/v1/eval").json(given(new))
}

/// Asks for evaluations of all traces that a filter selects.
pub fn evaluate_all(new: &NewBulk) -> Call<BulkStarted> {
    Call::post("/v1/eval/bulk").json(given(new))
}

/// Progress of many evaluations.
pub fn bulk(id: Uuid) -> Call<Bulk> {
    Call::get(format!("/v1/eval/bulk/{id}"))
}

/// A page of evaluators: the built-in ones first.
pub fn evaluators(page: &Page) -> Call<EvaluatorList> {
    paged(Call::get("/v1/evaluators"), page)
}

/// An evaluator.
pub fn evaluator(name: &str) -> Call<Evaluator> {
    Call::get(format!("/v1/evaluators/{}", segment(name)))
}

/// Makes an evaluator.
pub fn create_evaluator(new: &NewEvaluator) -> Call<Evaluator> {
    Call::post("/v1/evaluators").json(given(new))
}

/// Changes one of the tenant's own evaluators, which makes a new version of it.
pub fn update_evaluator(name: &str, change: &EvaluatorChange) -> Call<Evaluator> {
    Call::patch(format!("/v1/evaluators/{}", segment(name))).json(json!(change))
}

/// Deletes one of the tenant's own evaluators.
pub fn delete_evaluator(name: &str) -> Call<()> {
    Call::delete(format!("/v1/evaluators/{}", segment(name)))
}

/// A page of eval rules, newest first.
pub fn eval_rules(project: Option<Uuid>, page: &Page) -> Call<EvalRuleList> {
    paged(Call::get("/v1/eval-rules").maybe("project_id", project), page)
}

/// An eval rule.
pub fn eval_rule(id: Uuid) -> Call<EvalRule> {
    Call::get(format!("/v1/eval-rules/{id}"))
}

/// Makes an eval rule.
pub fn create_eval_rule(new: &NewEvalRule) -> Call<EvalRule> {
    Call::post("/v1/eval-rules").json(json!(new))
}

/// Changes an eval rule.
pub fn update_eval_rule(id: Uuid, change: &EvalRuleChange) -> Call<EvalRule> {
    Call::patch(format!("/v1/eval-rules/{id}")).json(json!(change))
}

/// Deletes an eval rule.
pub fn delete_eval_rule(id: Uuid) -> Call<()> {
    Call::delete(format!("/v1/eval-rules/{id}"))
}

/// What a rule did with traces, or with one.
pub fn rule_decisions(id: Uuid, trace: Option<Uuid>, page: &Page) -> Call<RuleDecisionList> {
    paged(Call::get(format!("/v1/eval-rules/{id}/decisions")).maybe("trace_id", trace), page)
}

/// What a rule says of a trace, without anything being stored.
pub fn test_eval_rule(id: Uuid, test: &NewRuleTest) -> Call<RuleTest> {
    Call::post(format!("/v1/eval-rules/{id}/test")).json(given(test))
}

/// Runs a rule over past traces.
pub fn backfill_eval_rule(id: Uuid, backfill: &NewBackfill) -> Call<BulkStarted> {
    Call::post(format!("/v1/eval-rules/{id}/backfill")).json(given(backfill))
}

/// Filters of a search of spans by a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextSearch {
    /// What is looked for.
    pub q: String,
    /// In one project.
    pub project_id: Option<Uuid>,
    /// Started at or after this time.
    pub from: Option<Timestamp>,
    /// Started at or before this time.
    pub to: Option<Timestamp>,
    /// Of one kind.
    pub kind: Option<String>,
    /// Of one model.
    pub model: Option<String>,
}

/// Spans that mean what a text means, nearest first. Needs an embedding provider.
pub fn search_text(search: &TextSearch, page: &Page) -> Call<SearchResults> {
    let TextSearch { q, project_id, from, to, kind, model } = search;
    let call = Call::get("/v1/search/spans").query("q", q).maybe("project_id", *project_id);
    let call = call.maybe("from", *from).maybe("to", *to);
    paged(call.maybe("type", kind.as_ref()).maybe("model", model.as_ref()), page)
}

/// Spans whose vectors are nearest to one. Changes nothing, so it is repeatable.
pub fn search_vector(search: &VectorSearch) -> Call<SearchResults> {
    Call::post("/v1/search/spans").json(given(search)).repeatable()
}

/// The header that names the project of an ingest, instead of the key's own project.
pub const PROJECT_NAME: &str = "X-Project-Name";

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
    Call::post("/v1/apikeys").json(given(key)).with(Auth::SessionOnly)
}

/// Ends an API key.
pub fn revoke_api_key(id: Uuid) -> Call<()> {
    Call::delete(format!("/v1/apikeys/{id}")).with(Auth::SessionOnly)
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

/// Makes a project.
pub fn create_project(project: &NewProject) -> Call<Project> {
    Call::post("/v1/projects").json(given(project)).with(Auth::Session)
}

/// Changes what is given of a project.
pub fn change_project(id: Uuid, change: &ProjectChange) -> Call<Project> {
    Call::patch(format!("/v1/projects/{id}")).json(json!(change)).with(Auth::Session)
}

/// Suspends ingest for every key of a project.
pub fn archive_project(id: Uuid) -> Call<Project> {
    Call::post(format!("/v1/projects/{id}/archive")).with(Auth::Session)
}

/// Lets a project take traces again.
pub fn unarchive_project(id: Uuid) -> Call<Project> {
    Call::post(format!("/v1/projects/{id}/unarchive")).with(Auth::Session)
}

/// A page of members, newest first, removed ones included.
pub fn members(page: &Page) -> Call<MemberList> {
    paged(Call::get("/v1/members"), page).with(Auth::SessionOnly)
}

/// Takes a member's seat; the member's tokens are refused from then on.
pub fn remove_member(id: Uuid) -> Call<()> {
    Call::delete(format!("/v1/members/{id}")).with(Auth::SessionOnly)
}

/// Lets a removed member in again.
pub fn restore_member(id: Uuid) -> Call<Member> {
    let change = MemberChange { status: MemberStatus::Active.as_str().to_owned() };
    Call::patch(format!("/v1/members/{id}")).json(json!(change)).with(Auth::SessionOnly)
}

/// The tenant's credentials for providers of models.
pub fn provider_credentials() -> Call<ProviderCredentialList> {
    Call::get("/v1/provider-credentials").with(Auth::SessionOnly)
}

/// Stores a credential. What it lacks is unset, but for the key, which stays.
pub fn put_provider_credential(
    provider: Provider,
    credential: &NewProviderCredential,
) -> Call<ProviderCredential> {
    let path = format!("/v1/provider-credentials/{}", provider.as_str());
    Call::new(Method::PUT, path).json(given(credential)).with(Auth::SessionOnly)
}

/// Deletes a credential.
pub fn delete_provider_credential(provider: Provider) -> Call<()> {
    Call::delete(format!("/v1/provider-credentials/{}", provider.as_str())).with(Auth::SessionOnly)
}

/// Which records of the audit log; each member that is absent leaves the choice open.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Of one action, such as `api_key.create`.
    pub action: Option<String>,
    /// Of one actor: a session's subject or a key's id.
    pub actor: Option<String>,
    /// At or after this time.
    pub from: Option<Timestamp>,
    /// At or before this time.
    pub to: Option<Timestamp>,
}

/// A page of the audit log, newest first.
pub fn audit_log(filter: &AuditFilter, page: &Page) -> Call<AuditLog> {
    let AuditFilter { action, actor, from, to } = filter;
    let call = Call::get("/v1/audit-log").with(Auth::Session);
    let call = call.maybe("action", action.as_ref()).maybe("actor", actor.as_ref());
    paged(call.maybe("from", *from).maybe("to", *to), page)
}

/// Returns a page of model prices, ordered by name.
pub fn models(page: &Page) -> Call<ModelList> {
    paged(Call::get("/v1/models"), page)
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

/// A body with the members that are given; those that are null are left out.
fn given(body: &impl Serialize) -> Value {
    let mut body = json!(body);
    if let Value::Object(members) = &mut body {
        members.retain(|_, value| !value.is_null());
    }
    body
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
