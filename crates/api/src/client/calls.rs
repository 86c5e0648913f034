//! The endpoints that the clients use, with the types of their responses.

mod control_loop;

pub use control_loop::*;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Auth, Body, Call, call::Method, stream::Traces};
use crate::{
    Timestamp,
    anomaly::{AnomalyList, AnomalySeverity},
    audit::AuditLog,
    credential::{NewProviderCredential, Provider, ProviderCredential, ProviderCredentialList},
    eval::{Bulk, BulkStarted, Evaluation, EvaluationFilter, EvaluationList, NewBulk, NewEvaluation},
    eval_rule::{
        EvalRule, EvalRuleChange, EvalRuleList, NewBackfill, NewEvalRule, NewRuleTest, RuleDecisionList,
        RuleTest,
    },
    evaluator::{Evaluator, EvaluatorChange, EvaluatorList, NewEvaluator},
    failure::{
        ClusterFilter, ClusterStatus, FailureCluster, FailureClusterChange, FailureClusterList,
        FailureFilter, FailureList,
    },
    failure_rule::{FailureRule, FailureRuleChange, FailureRuleList, NewFailureRule},
    feedback::{Feedback, FeedbackLabel, FeedbackList, NewFeedback},
    filter::Filter,
    ingest::{BatchResult, Ingested},
    key::{ApiKey, ApiKeyList, NewApiKey},
    member::{Member, MemberChange, MemberList, MemberStatus},
    metrics::{Interval, Metrics, ProjectMetric, ProjectMetricValue, ProjectWindow, Window},
    model::ModelList,
    project::{NewProject, Project, ProjectChange, ProjectList, ProjectStatus, RedactionSettings},
    rejection::RejectionList,
    search::{SearchResults, VectorSearch},
    session::SessionList,
    tenant::Me,
    trace::{SpanList, Trace, TraceList},
    webhook::{
        NewWebhook, NewWebhookSecret, RotatedSecret, Webhook, WebhookChange, WebhookDelivery,
        WebhookDeliveryList, WebhookList, WebhookTest,
    },
};

/// Which page of a list to return.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Number of rows, 1 to 200; default: the server's.
    pub limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// Returns the tenant and role of the credential.
pub fn me() -> Call<Me> {
    Call::get("/v1/me")
}

/// Checks that the server is running. Needs no credential.
pub fn health() -> Call<Value> {
    Call::get("/healthz").with(Auth::None)
}

/// Lists traces, newest first, with texts shortened to a preview.
pub fn traces(filter: &Filter, project: Option<Uuid>, page: &Page) -> Call<TraceList> {
    whole_traces(filter, project, page).query("preview", true)
}

/// Lists traces, newest first, with complete texts. Large texts make pages shorter.
pub fn whole_traces(filter: &Filter, project: Option<Uuid>, page: &Page) -> Call<TraceList> {
    paged(filtered(Call::get("/v1/traces"), filter, project), page)
}

/// Streams the traces that match a filter as they change.
pub fn trace_stream(filter: &Filter, project: Option<Uuid>) -> Call<Traces> {
    filtered(Call::get("/v1/traces/stream"), filter, project)
}

/// Returns a trace with its spans, by ID or by the 32 digits of an OpenTelemetry trace ID.
pub fn trace(id: &str) -> Call<Trace> {
    Call::get(format!("/v1/traces/{}", segment(id)))
}

/// Lists the spans of a trace.
pub fn spans(trace: &str, page: &Page) -> Call<SpanList> {
    paged(Call::get(format!("/v1/traces/{}/spans", segment(trace))), page)
}

/// Exports the traces that match a filter, with their spans, as lines in a format (`jsonl` or `otlp`).
/// Open it with [`super::Client::download`].
pub fn export_traces(filter: &Filter, project: Option<Uuid>, format: &str) -> Call<()> {
    filtered(Call::get("/v1/traces/export"), filter, project).query("format", format)
}

/// Deletes a trace with its spans, evaluations and feedback.
pub fn delete_trace(id: &str) -> Call<()> {
    Call::delete(format!("/v1/traces/{}", segment(id))).with(Auth::Session)
}

/// Selects sessions; absent fields do not restrict.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Sessions of this project.
    pub project_id: Option<Uuid>,
    /// Sessions of this end user.
    pub user_id: Option<String>,
    /// Sessions with a trace at or after this time.
    pub from: Option<Timestamp>,
    /// Sessions with a trace at or before this time.
    pub to: Option<Timestamp>,
}

/// Lists sessions by the start of their last trace, newest first.
pub fn sessions(filter: &SessionFilter, page: &Page) -> Call<SessionList> {
    let SessionFilter { project_id, user_id, from, to } = filter;
    let call = Call::get("/v1/sessions").maybe("project_id", *project_id).maybe("user_id", user_id.as_ref());
    paged(call.maybe("from", *from).maybe("to", *to), page)
}

/// Parameters of a metrics query; absent fields do not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricQuery {
    /// Traces of this project.
    pub project_id: Option<Uuid>,
    /// Traces of this model.
    pub model: Option<String>,
    /// A period up to now; default: 24 hours.
    pub window: Option<Window>,
    /// Start of the period; overrides `window`.
    pub from: Option<Timestamp>,
    /// End of the period.
    pub to: Option<Timestamp>,
    /// Length of the buckets of a series; default: no series.
    pub interval: Option<Interval>,
    /// Property to group by: `model`, `name` or `tag:<key>`; default: no groups.
    pub group_by: Option<String>,
}

/// Returns rolling metrics of traces.
pub fn metrics(query: &MetricQuery) -> Call<Metrics> {
    let MetricQuery { project_id, model, window, from, to, interval, group_by } = query;
    let call = Call::get("/v1/metrics").maybe("project_id", *project_id).maybe("model", model.as_ref());
    let call = call.maybe("window", *window).maybe("from", *from).maybe("to", *to);
    call.maybe("interval", *interval).maybe("group_by", group_by.as_ref())
}

/// Returns a metric of a project.
pub fn project_metric(
    project: Uuid,
    metric: ProjectMetric,
    window: ProjectWindow,
) -> Call<ProjectMetricValue> {
    let call = Call::get(format!("/v1/projects/{project}/metrics"));
    call.query("metric", metric).query("window", window)
}

/// Selects anomalies; absent fields do not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnomalyFilter {
    /// Anomalies of this project.
    pub project_id: Option<Uuid>,
    /// Anomalies of this metric, such as `error_rate`.
    pub metric: Option<String>,
    /// Anomalies of this severity.
    pub severity: Option<AnomalySeverity>,
    /// Anomalies detected at or after this time.
    pub from: Option<Timestamp>,
    /// Anomalies detected at or before this time.
    pub to: Option<Timestamp>,
}

/// Lists anomalies by the time of their detection, newest first.
pub fn anomalies(filter: &AnomalyFilter, page: &Page) -> Call<AnomalyList> {
    let AnomalyFilter { project_id, metric, severity, from, to } = filter;
    let call = Call::get("/v1/anomalies").maybe("project_id", *project_id).maybe("metric", metric.as_ref());
    paged(call.maybe("severity", *severity).maybe("from", *from).maybe("to", *to), page)
}

/// Selects feedback; absent fields do not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedbackFilter {
    /// Feedback on traces of this project.
    pub project_id: Option<Uuid>,
    /// Feedback on this trace.
    pub trace_id: Option<Uuid>,
    /// Feedback with this label.
    pub label: Option<FeedbackLabel>,
    /// Feedback first given at or after this time.
    pub from: Option<Timestamp>,
    /// Feedback first given at or before this time.
    pub to: Option<Timestamp>,
}

/// Lists feedback, newest first.
pub fn feedback(filter: &FeedbackFilter, page: &Page) -> Call<FeedbackList> {
    let FeedbackFilter { project_id, trace_id, label, from, to } = filter;
    let call = Call::get("/v1/feedback").maybe("project_id", *project_id).maybe("trace_id", *trace_id);
    paged(call.maybe("label", *label).maybe("from", *from).maybe("to", *to), page)
}

/// Lists rejections, newest first.
pub fn rejections(project: Option<Uuid>, page: &Page) -> Call<RejectionList> {
    paged(Call::get("/v1/rejections").maybe("project_id", project), page)
}

/// Adds feedback to a trace. With a user ID a repetition replaces the feedback; without one, each
/// request adds another.
pub fn add_feedback(feedback: &NewFeedback) -> Call<Feedback> {
    let call = Call::post("/v1/feedback").json(given(feedback));
    if feedback.user_id.is_some() { call.repeatable() } else { call }
}

/// Lists evaluations, newest first.
pub fn evaluations(filter: &EvaluationFilter, page: &Page) -> Call<EvaluationList> {
    let EvaluationFilter { project_id, trace_id, metric_name, evaluator_type, status, label, .. } = filter;
    let EvaluationFilter { context, rule_id, from, to, min_score, max_score, .. } = filter;
    let call = Call::get("/v1/eval").maybe("project_id", *project_id).maybe("trace_id", *trace_id);
    let call = call.maybe("metric_name", metric_name.as_ref()).maybe("evaluator_type", *evaluator_type);
    let call = call.maybe("status", *status).maybe("label", label.as_ref()).maybe("context", *context);
    let call = call.maybe("rule_id", *rule_id).maybe("from", *from).maybe("to", *to);
    paged(call.maybe("min_score", *min_score).maybe("max_score", *max_score), page)
}

/// Returns an evaluation.
pub fn evaluation(id: Uuid) -> Call<Evaluation> {
    Call::get(format!("/v1/eval/{id}"))
}

/// Evaluates a trace.
pub fn evaluate(new: &NewEvaluation) -> Call<Evaluation> {
    Call::post("/v1/eval").json(given(new))
}

/// Evaluates all traces that match a filter.
pub fn evaluate_all(new: &NewBulk) -> Call<BulkStarted> {
    Call::post("/v1/eval/bulk").json(given(new))
}

/// Returns the progress of a bulk evaluation.
pub fn bulk(id: Uuid) -> Call<Bulk> {
    Call::get(format!("/v1/eval/bulk/{id}"))
}

/// Lists evaluators, the built-in ones first.
pub fn evaluators(page: &Page) -> Call<EvaluatorList> {
    paged(Call::get("/v1/evaluators"), page)
}

/// Returns an evaluator.
pub fn evaluator(name: &str) -> Call<Evaluator> {
    Call::get(format!("/v1/evaluators/{}", segment(name)))
}

/// Creates a custom evaluator.
pub fn create_evaluator(new: &NewEvaluator) -> Call<Evaluator> {
    Call::post("/v1/evaluators").json(given(new))
}

/// Changes a custom evaluator, which creates a new version.
pub fn update_evaluator(name: &str, change: &EvaluatorChange) -> Call<Evaluator> {
    Call::patch(format!("/v1/evaluators/{}", segment(name))).json(json!(change))
}

/// Deletes a custom evaluator.
pub fn delete_evaluator(name: &str) -> Call<()> {
    Call::delete(format!("/v1/evaluators/{}", segment(name)))
}

/// Lists webhooks, newest first.
pub fn webhooks(page: &Page) -> Call<WebhookList> {
    paged(Call::get("/v1/webhooks"), page)
}

/// Returns a webhook.
pub fn webhook(id: Uuid) -> Call<Webhook> {
    Call::get(format!("/v1/webhooks/{id}"))
}

/// Creates a webhook.
pub fn create_webhook(new: &NewWebhook) -> Call<Webhook> {
    Call::post("/v1/webhooks").json(json!(new))
}

/// Changes a webhook.
pub fn update_webhook(id: Uuid, change: &WebhookChange) -> Call<Webhook> {
    Call::patch(format!("/v1/webhooks/{id}")).json(json!(change))
}

/// Deletes a webhook.
pub fn delete_webhook(id: Uuid) -> Call<()> {
    Call::delete(format!("/v1/webhooks/{id}"))
}

/// Sends a `ping` to a webhook and returns the receiver's response.
pub fn test_webhook(id: Uuid) -> Call<WebhookTest> {
    Call::post(format!("/v1/webhooks/{id}/test"))
}

/// Replaces the secret of a webhook.
pub fn rotate_webhook_secret(id: Uuid, new: &NewWebhookSecret) -> Call<RotatedSecret> {
    Call::post(format!("/v1/webhooks/{id}/rotate-secret")).json(json!(new))
}

/// Lists the deliveries to a webhook, newest first.
pub fn webhook_deliveries(id: Uuid, page: &Page) -> Call<WebhookDeliveryList> {
    paged(Call::get(format!("/v1/webhooks/{id}/deliveries")), page)
}

/// Delivers an event to a webhook again.
pub fn redeliver(webhook: Uuid, delivery: Uuid) -> Call<WebhookDelivery> {
    Call::post(format!("/v1/webhooks/{webhook}/deliveries/{delivery}/redeliver"))
}

/// Lists eval rules, newest first.
pub fn eval_rules(project: Option<Uuid>, page: &Page) -> Call<EvalRuleList> {
    paged(Call::get("/v1/eval-rules").maybe("project_id", project), page)
}

/// Returns an eval rule.
pub fn eval_rule(id: Uuid) -> Call<EvalRule> {
    Call::get(format!("/v1/eval-rules/{id}"))
}

/// Creates an eval rule.
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

/// Lists the decisions of an eval rule, of all traces or of one.
pub fn rule_decisions(id: Uuid, trace: Option<Uuid>, page: &Page) -> Call<RuleDecisionList> {
    paged(Call::get(format!("/v1/eval-rules/{id}/decisions")).maybe("trace_id", trace), page)
}

/// Evaluates a trace with an eval rule without storing the result.
pub fn test_eval_rule(id: Uuid, test: &NewRuleTest) -> Call<RuleTest> {
    Call::post(format!("/v1/eval-rules/{id}/test")).json(given(test))
}

/// Applies an eval rule to existing traces.
pub fn backfill_eval_rule(id: Uuid, backfill: &NewBackfill) -> Call<BulkStarted> {
    Call::post(format!("/v1/eval-rules/{id}/backfill")).json(given(backfill))
}

/// Lists failures, newest first.
pub fn failures(filter: &FailureFilter, page: &Page) -> Call<FailureList> {
    let FailureFilter { project_id, failure_type, cluster_id, trace_id, model, from, to } = filter;
    let call = Call::get("/v1/failures").with(Auth::Session);
    let call = call.maybe("project_id", *project_id).maybe("type", *failure_type);
    let call = call.maybe("cluster_id", *cluster_id).maybe("trace_id", *trace_id);
    paged(call.maybe("model", model.as_ref()).maybe("from", *from).maybe("to", *to), page)
}

/// Lists failure clusters by their newest failures, newest first.
pub fn failure_clusters(filter: &ClusterFilter, page: &Page) -> Call<FailureClusterList> {
    let ClusterFilter { project_id, status, failure_type, from, to } = filter;
    let call = Call::get("/v1/failures/clusters").with(Auth::Session);
    let call = call.maybe("project_id", *project_id).maybe("status", *status);
    paged(call.maybe("failure_type", *failure_type).maybe("from", *from).maybe("to", *to), page)
}

/// Returns a failure cluster with its samples.
pub fn failure_cluster(id: Uuid) -> Call<FailureCluster> {
    Call::get(format!("/v1/failures/clusters/{id}")).with(Auth::Session)
}

/// Changes the status of a failure cluster.
pub fn update_failure_cluster(id: Uuid, status: ClusterStatus) -> Call<FailureCluster> {
    let change = FailureClusterChange { status: status.as_str().to_owned() };
    Call::patch(format!("/v1/failures/clusters/{id}")).with(Auth::Session).json(json!(change))
}

/// Lists failure rules, newest first: all, or those that concern a project.
pub fn failure_rules(project: Option<Uuid>, page: &Page) -> Call<FailureRuleList> {
    paged(Call::get("/v1/failure-rules").maybe("project_id", project), page)
}

/// Returns a failure rule.
pub fn failure_rule(id: Uuid) -> Call<FailureRule> {
    Call::get(format!("/v1/failure-rules/{id}"))
}

/// Creates a failure rule.
pub fn create_failure_rule(new: &NewFailureRule) -> Call<FailureRule> {
    Call::post("/v1/failure-rules").json(given(new))
}

/// Changes a failure rule.
pub fn update_failure_rule(id: Uuid, change: &FailureRuleChange) -> Call<FailureRule> {
    Call::patch(format!("/v1/failure-rules/{id}")).json(json!(change))
}

/// Deletes a failure rule.
pub fn delete_failure_rule(id: Uuid) -> Call<()> {
    Call::delete(format!("/v1/failure-rules/{id}"))
}

/// Query and filters of a semantic search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextSearch {
    /// The query.
    pub q: String,
    /// Spans of this project.
    pub project_id: Option<Uuid>,
    /// Spans that started at or after this time.
    pub from: Option<Timestamp>,
    /// Spans that started at or before this time.
    pub to: Option<Timestamp>,
    /// Spans of this type.
    pub kind: Option<String>,
    /// Spans of this model.
    pub model: Option<String>,
}

/// Searches for spans with a meaning similar to a text. Requires an embedding provider.
pub fn search_text(search: &TextSearch, page: &Page) -> Call<SearchResults> {
    let TextSearch { q, project_id, from, to, kind, model } = search;
    let call = Call::get("/v1/search/spans").query("q", q).maybe("project_id", *project_id);
    let call = call.maybe("from", *from).maybe("to", *to);
    paged(call.maybe("type", kind.as_ref()).maybe("model", model.as_ref()), page)
}

/// Searches for the spans whose vectors are nearest to a vector. Read-only, and therefore repeatable.
pub fn search_vector(search: &VectorSearch) -> Call<SearchResults> {
    Call::post("/v1/search/spans").json(given(search)).repeatable()
}

/// Header with the project name of an ingest request; overrides the project of the API key.
pub const PROJECT_NAME_HEADER: &str = "X-Project-Name";

/// Stores one trace. Repeatable if the item has an ID.
pub fn ingest(item: Value) -> Call<Ingested> {
    let named = has_id(&item);
    let call = Call::post("/v1/ingest").json(item);
    if named { call.repeatable() } else { call }
}

/// Stores up to [`crate::ingest::MAX_BATCH`] traces. Repeatable if all items have IDs.
pub fn ingest_batch(items: Vec<Value>) -> Call<BatchResult> {
    let named = items.iter().all(has_id);
    let call = Call::post("/v1/ingest/batch").json(json!({ "traces": items }));
    if named { call.repeatable() } else { call }
}

/// Stores an OTLP export request. Repeatable, because spans carry their IDs.
pub fn ingest_otlp(content_type: &'static str, bytes: Vec<u8>) -> Call<Value> {
    let mut call = Call::post("/v1/otlp/traces").repeatable();
    call.body = Body::Bytes { content_type, bytes };
    call
}

/// Lists API keys, newest first.
pub fn api_keys(page: &Page) -> Call<ApiKeyList> {
    paged(Call::get("/v1/apikeys"), page).with(Auth::SessionOnly)
}

/// Creates an API key; the response contains its secret.
pub fn create_api_key(key: &NewApiKey) -> Call<ApiKey> {
    Call::post("/v1/apikeys").json(given(key)).with(Auth::SessionOnly)
}

/// Revokes an API key.
pub fn revoke_api_key(id: Uuid) -> Call<()> {
    Call::delete(format!("/v1/apikeys/{id}")).with(Auth::SessionOnly)
}

/// Lists projects, newest first, optionally with one status.
pub fn projects(status: Option<ProjectStatus>, page: &Page) -> Call<ProjectList> {
    let status = match status {
        Some(ProjectStatus::Active) => "active",
        Some(ProjectStatus::Archived) => "archived",
        None => "all",
    };
    paged(Call::get("/v1/projects").query("status", status), page)
}

/// Returns a project.
pub fn project(id: Uuid) -> Call<Project> {
    Call::get(format!("/v1/projects/{id}"))
}

/// Creates a project.
pub fn create_project(project: &NewProject) -> Call<Project> {
    Call::post("/v1/projects").json(given(project)).with(Auth::Session)
}

/// Changes the given fields of a project.
pub fn change_project(id: Uuid, change: &ProjectChange) -> Call<Project> {
    Call::patch(format!("/v1/projects/{id}")).json(json!(change)).with(Auth::Session)
}

/// Returns the redaction settings of a project.
pub fn redaction(project: Uuid) -> Call<RedactionSettings> {
    Call::get(format!("/v1/projects/{project}/redaction"))
}

/// Replaces the redaction settings of a project.
pub fn set_redaction(project: Uuid, settings: &RedactionSettings) -> Call<RedactionSettings> {
    let path = format!("/v1/projects/{project}/redaction");
    Call::new(Method::PUT, path).json(json!(settings)).with(Auth::Session)
}

/// Suspends ingest for every key of a project.
pub fn archive_project(id: Uuid) -> Call<Project> {
    Call::post(format!("/v1/projects/{id}/archive")).with(Auth::Session)
}

/// Resumes ingest into a project.
pub fn unarchive_project(id: Uuid) -> Call<Project> {
    Call::post(format!("/v1/projects/{id}/unarchive")).with(Auth::Session)
}

/// Lists members, newest first, including removed ones.
pub fn members(page: &Page) -> Call<MemberList> {
    paged(Call::get("/v1/members"), page).with(Auth::SessionOnly)
}

/// Removes a member; the server rejects the member's tokens from then on.
pub fn remove_member(id: Uuid) -> Call<()> {
    Call::delete(format!("/v1/members/{id}")).with(Auth::SessionOnly)
}

/// Restores a removed member.
pub fn restore_member(id: Uuid) -> Call<Member> {
    let change = MemberChange { status: MemberStatus::Active.as_str().to_owned() };
    Call::patch(format!("/v1/members/{id}")).json(json!(change)).with(Auth::SessionOnly)
}

/// Lists the tenant's provider credentials.
pub fn provider_credentials() -> Call<ProviderCredentialList> {
    Call::get("/v1/provider-credentials").with(Auth::SessionOnly)
}

/// Stores a provider credential. Absent fields are cleared, except the key, which keeps its value.
pub fn put_provider_credential(
    provider: Provider,
    credential: &NewProviderCredential,
) -> Call<ProviderCredential> {
    let path = format!("/v1/provider-credentials/{}", provider.as_str());
    Call::new(Method::PUT, path).json(given(credential)).with(Auth::SessionOnly)
}

/// Deletes a provider credential.
pub fn delete_provider_credential(provider: Provider) -> Call<()> {
    Call::delete(format!("/v1/provider-credentials/{}", provider.as_str())).with(Auth::SessionOnly)
}

/// Selects records of the audit log; absent fields do not restrict.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Records of this action, such as `api_key.create`.
    pub action: Option<String>,
    /// Records of this actor: a session's subject or a key's ID.
    pub actor: Option<String>,
    /// Records at or after this time.
    pub from: Option<Timestamp>,
    /// Records at or before this time.
    pub to: Option<Timestamp>,
}

/// Lists audit records, newest first.
pub fn audit_log(filter: &AuditFilter, page: &Page) -> Call<AuditLog> {
    let AuditFilter { action, actor, from, to } = filter;
    let call = Call::get("/v1/audit-log").with(Auth::Session);
    let call = call.maybe("action", action.as_ref()).maybe("actor", actor.as_ref());
    paged(call.maybe("from", *from).maybe("to", *to), page)
}

/// Lists model prices, ordered by name.
pub fn models(page: &Page) -> Call<ModelList> {
    paged(Call::get("/v1/models"), page)
}

/// Encodes text as one path segment.
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

/// Serializes a body without its null members.
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
