//! The route table: method, path, access requirements, error codes and handler of every route. Access
//! requirements are data and are checked in one place; the OpenAPI document and the access tests use
//! the same table.

use std::sync::Arc;

use api::{
    ErrorCode::{self, *},
    Plan,
};
use axum::{
    http::Method,
    routing::{MethodRouter, delete, get, patch, post, put},
};
use store::rates::RateBucket;

use crate::{
    access::endpoints::{credentials, keys, me, members},
    access::{Access, Keys},
    app::App,
    audit::Action,
    endpoints::{
        api_document as docs, audit_log, feedback, health, models, projects, server_metrics as metrics,
    },
    evals::endpoints::{eval_rules, evaluations as eval, evaluators},
    http::auth::Schemes,
    ingest::endpoints::{json as ingest, otlp},
    metrics::endpoints as trace_metrics,
    search::endpoints as search,
    telemetry::http::Name,
    traces::{endpoints as traces, export, sessions, stream},
};

/// A row of the route table.
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, with `{name}` for parameters.
    pub path: &'static str,
    /// Access requirements.
    pub access: Access,
    /// The rate limit bucket.
    pub bucket: RateBucket,
    /// The audited action, so that rejections are recorded too.
    pub audited: Option<Action>,
    /// The authentication schemes that the route accepts.
    pub schemes: Schemes,
    /// Returns the lowest plan that allows a request with this body, if the plan depends on the body.
    /// Called only when the tenant's plan is too low.
    pub plan_of_body: Option<fn(&[u8]) -> Plan>,
    /// Whether the handler runs with one of the tenant's read permits.
    pub waits_for_permit: bool,
    /// Error codes of the handler; those that follow from access are derived.
    pub errors: &'static [ErrorCode],
    /// The handler.
    pub handler: MethodRouter<Arc<App>>,
}

/// Error codes of JSON ingest.
const INGEST_ERRORS: &[ErrorCode] = &[
    InvalidJson,
    InvalidBody,
    ValidationFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    ProjectArchived,
    IngestQuotaExceeded,
    Conflict,
    Overloaded,
];
/// Error codes of OTLP ingest.
const OTLP_ERRORS: &[ErrorCode] = &[
    InvalidBody,
    ValidationFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    ProjectArchived,
    IngestQuotaExceeded,
    Overloaded,
];
/// Error codes of OTLP metrics and logs, which are not stored.
const SIGNAL_ERRORS: &[ErrorCode] = &[UnsupportedMediaType];
/// Error codes of setting a price, whose model is in the path.
const PRICE_ERRORS: &[ErrorCode] =
    &[InvalidQuery, InvalidJson, InvalidBody, ValidationFailed, PayloadTooLarge, UnsupportedMediaType];
/// Error codes of lists.
const LIST_ERRORS: &[ErrorCode] = &[InvalidQuery, InvalidCursor];
/// Error codes of the trace list.
const TRACES_ERRORS: &[ErrorCode] = &[InvalidQuery, InvalidCursor, TagsFilterIncomplete];
/// Error codes of requests for a resource by ID.
const FOUND_ERRORS: &[ErrorCode] = &[InvalidQuery, NotFound];
/// Error codes of giving feedback.
const FEEDBACK_ERRORS: &[ErrorCode] =
    &[InvalidJson, InvalidBody, ValidationFailed, PayloadTooLarge, UnsupportedMediaType, NotFound];
/// Error codes of evaluating a trace.
const EVAL_ERRORS: &[ErrorCode] = &[
    InvalidJson,
    InvalidBody,
    ValidationFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    NotFound,
    ProviderCredentialsMissing,
    JudgeNotConfigured,
    EvalQuotaExceeded,
];
/// Error codes of a bulk evaluation.
const EVAL_BULK_ERRORS: &[ErrorCode] = &[
    InvalidJson,
    InvalidBody,
    ValidationFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    NotFound,
    ProviderCredentialsMissing,
    JudgeNotConfigured,
    EvalQuotaExceeded,
];
/// Error codes of testing and backfilling an eval rule.
const EVAL_OF_RULE_ERRORS: &[ErrorCode] = &[
    InvalidQuery,
    InvalidJson,
    InvalidBody,
    ValidationFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    NotFound,
    ProviderCredentialsMissing,
    JudgeNotConfigured,
    EvalRulesQuotaExceeded,
    EvalQuotaExceeded,
];
/// Error codes of creating an eval rule.
const NEW_RULE_ERRORS: &[ErrorCode] = &[
    InvalidJson,
    InvalidBody,
    ValidationFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    NotFound,
    EvalRulesQuotaExceeded,
];
/// Error codes of changing an eval rule.
const CHANGE_RULE_ERRORS: &[ErrorCode] = &[
    InvalidQuery,
    InvalidJson,
    InvalidBody,
    ValidationFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    NotFound,
    Conflict,
    EvalRulesQuotaExceeded,
];
/// Error codes of changing a custom evaluator, which is named in the path.
const CHANGE_EVALUATOR_ERRORS: &[ErrorCode] =
    &[InvalidJson, InvalidBody, ValidationFailed, PayloadTooLarge, UnsupportedMediaType, NotFound, Conflict];
/// Error codes of creating an API key.
const NEW_KEY_ERRORS: &[ErrorCode] =
    &[InvalidJson, InvalidBody, ValidationFailed, PayloadTooLarge, UnsupportedMediaType, NotFound, Conflict];
/// Error codes of creating a resource with a name.
const NEW_ERRORS: &[ErrorCode] =
    &[InvalidJson, InvalidBody, ValidationFailed, PayloadTooLarge, UnsupportedMediaType, Conflict];
/// Error codes of changing a resource with a name.
const CHANGE_ERRORS: &[ErrorCode] = &[
    InvalidQuery,
    InvalidJson,
    InvalidBody,
    ValidationFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    NotFound,
    Conflict,
];
/// Error codes of changing a member.
const CHANGE_MEMBER_ERRORS: &[ErrorCode] = &[
    InvalidQuery,
    InvalidJson,
    InvalidBody,
    ValidationFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    NotFound,
];
/// Error codes of storing a provider credential.
const CREDENTIAL_ERRORS: &[ErrorCode] = &[
    InvalidQuery,
    InvalidJson,
    InvalidBody,
    ValidationFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    NotFound,
];
/// Error codes of a search by vector.
const SEARCH_ERRORS: &[ErrorCode] = &[
    InvalidJson,
    InvalidBody,
    ValidationFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    NotFound,
    InvalidCursor,
];
/// Error codes of archiving a project.
const ARCHIVE_ERRORS: &[ErrorCode] = &[InvalidQuery, NotFound, CannotArchiveLast];

/// Returns all routes.
pub fn all() -> Vec<Route> {
    let open = Access::Open;
    let viewer = Access::viewer().keys(Keys::Query);
    let any = Access::viewer().keys(Keys::Any);
    let member = Access::member().keys(Keys::Full);
    let owner = Access::owner().keys(Keys::Full);
    let ingest = member;
    vec![
        row(Method::GET, "/", open, &[], get(health::root)),
        row(Method::GET, "/healthz", open, &[], get(health::live)),
        row(Method::GET, "/readyz", open, &[Overloaded], get(health::ready)),
        row(Method::GET, metrics::METRICS_PATH, open, &[], get(metrics::show)),
        row(Method::GET, "/v1/openapi.json", open, &[], get(docs::document)),
        row(Method::POST, "/v1/ingest", ingest, INGEST_ERRORS, post(ingest::one))
            .counts_to(RateBucket::Ingest),
        row(Method::POST, "/v1/ingest/batch", ingest, INGEST_ERRORS, post(ingest::batch))
            .counts_to(RateBucket::Ingest),
        row(Method::POST, "/v1/otlp/traces", ingest, OTLP_ERRORS, post(otlp::traces))
            .counts_to(RateBucket::Ingest),
        row(Method::POST, "/v1/otlp/v1/traces", ingest, OTLP_ERRORS, post(otlp::traces))
            .counts_to(RateBucket::Ingest),
        row(Method::POST, "/v1/traces", ingest, OTLP_ERRORS, post(otlp::traces))
            .counts_to(RateBucket::Ingest),
        // The path of Langfuse's exporter, which supports Basic authentication only.
        row(Method::POST, "/api/public/otel/v1/traces", ingest, OTLP_ERRORS, post(otlp::traces))
            .counts_to(RateBucket::Ingest)
            .accepts_basic(),
        row(Method::POST, "/v1/otlp/v1/metrics", ingest, SIGNAL_ERRORS, post(otlp::metrics))
            .counts_to(RateBucket::Ingest),
        row(Method::POST, "/v1/metrics", ingest, SIGNAL_ERRORS, post(otlp::metrics))
            .counts_to(RateBucket::Ingest),
        row(Method::POST, "/v1/otlp/v1/logs", ingest, SIGNAL_ERRORS, post(otlp::logs))
            .counts_to(RateBucket::Ingest),
        row(Method::POST, "/v1/logs", ingest, SIGNAL_ERRORS, post(otlp::logs)).counts_to(RateBucket::Ingest),
        row(Method::GET, "/v1/traces", viewer, TRACES_ERRORS, get(traces::list))
            .counts_to(RateBucket::Traces),
        row(Method::GET, "/v1/traces/stream", viewer, TRACES_ERRORS, get(stream::follow)).acquires_permits(),
        row(
            Method::GET,
            "/v1/traces/export",
            viewer,
            &[InvalidQuery, TagsFilterIncomplete],
            get(export::export),
        )
        .acquires_permits(),
        row(Method::GET, "/v1/traces/{id}", viewer, FOUND_ERRORS, get(traces::detail)),
        row(
            Method::DELETE,
            "/v1/traces/{id}",
            Access::owner().keys(Keys::Full),
            FOUND_ERRORS,
            delete(traces::delete),
        )
        .audited(Action::TraceDelete),
        row(
            Method::GET,
            "/v1/traces/{id}/spans",
            viewer,
            &[InvalidQuery, InvalidCursor, NotFound],
            get(traces::spans),
        ),
        row(Method::GET, "/v1/metrics", viewer, &[InvalidQuery, Overloaded], get(trace_metrics::show))
            .counts_to(RateBucket::Metrics),
        row(Method::GET, "/v1/projects/{id}/metrics", viewer, FOUND_ERRORS, get(trace_metrics::of_project)),
        row(Method::GET, "/v1/sessions", viewer, LIST_ERRORS, get(sessions::list)),
        row(Method::GET, "/v1/feedback", viewer, LIST_ERRORS, get(feedback::list)),
        row(Method::POST, "/v1/feedback", member, FEEDBACK_ERRORS, post(feedback::create))
            .counts_to(RateBucket::Feedback),
        row(Method::GET, "/v1/eval", viewer, LIST_ERRORS, get(eval::list)),
        row(Method::POST, "/v1/eval", member, EVAL_ERRORS, post(eval::create)).counts_to(RateBucket::Eval),
        row(Method::POST, "/v1/eval/bulk", member, EVAL_BULK_ERRORS, post(eval::create_bulk)),
        row(Method::GET, "/v1/eval/bulk/{id}", viewer, FOUND_ERRORS, get(eval::bulk_progress)),
        row(Method::GET, "/v1/eval/{id}", viewer, FOUND_ERRORS, get(eval::detail)),
        row(Method::GET, "/v1/evaluators", viewer, LIST_ERRORS, get(evaluators::list)),
        row(Method::POST, "/v1/evaluators", member, NEW_ERRORS, post(evaluators::create)),
        row(Method::GET, "/v1/evaluators/{name}", viewer, &[NotFound], get(evaluators::detail)),
        row(
            Method::PATCH,
            "/v1/evaluators/{name}",
            member,
            CHANGE_EVALUATOR_ERRORS,
            patch(evaluators::update),
        ),
        row(
            Method::DELETE,
            "/v1/evaluators/{name}",
            owner,
            &[NotFound, Conflict],
            delete(evaluators::delete),
        ),
        row(Method::GET, "/v1/eval-rules", viewer, LIST_ERRORS, get(eval_rules::list)),
        row(Method::POST, "/v1/eval-rules", member, NEW_RULE_ERRORS, post(eval_rules::create)),
        row(Method::GET, "/v1/eval-rules/{id}", viewer, FOUND_ERRORS, get(eval_rules::detail)),
        row(Method::PATCH, "/v1/eval-rules/{id}", member, CHANGE_RULE_ERRORS, patch(eval_rules::update)),
        row(Method::DELETE, "/v1/eval-rules/{id}", member, FOUND_ERRORS, delete(eval_rules::delete)),
        row(
            Method::GET,
            "/v1/eval-rules/{id}/decisions",
            viewer,
            &[InvalidQuery, InvalidCursor, NotFound],
            get(eval_rules::decisions),
        ),
        row(Method::POST, "/v1/eval-rules/{id}/test", member, EVAL_OF_RULE_ERRORS, post(eval_rules::test)),
        row(
            Method::POST,
            "/v1/eval-rules/{id}/backfill",
            member,
            EVAL_OF_RULE_ERRORS,
            post(eval_rules::backfill),
        ),
        row(
            Method::GET,
            "/v1/search/spans",
            viewer.plan(Plan::Pro),
            &[InvalidQuery, InvalidCursor, UpstreamFailed],
            get(search::by_words),
        )
        .acquires_permits(),
        row(Method::POST, "/v1/search/spans", viewer.plan(Plan::Pro), SEARCH_ERRORS, post(search::by_vector)),
        row(Method::GET, "/v1/apikeys", Access::member(), LIST_ERRORS, get(keys::list)),
        row(Method::POST, "/v1/apikeys", Access::member(), NEW_KEY_ERRORS, post(keys::create))
            .audited(Action::KeyCreate),
        row(Method::GET, "/v1/apikeys/current", any, &[NotFound], get(keys::current)),
        row(Method::DELETE, "/v1/apikeys/{id}", Access::member(), FOUND_ERRORS, delete(keys::revoke))
            .audited(Action::KeyRevoke),
        row(Method::GET, "/v1/projects", viewer, LIST_ERRORS, get(projects::list)),
        row(Method::POST, "/v1/projects", member, NEW_ERRORS, post(projects::create))
            .audited(Action::ProjectCreate),
        row(Method::GET, "/v1/projects/{id}", viewer, FOUND_ERRORS, get(projects::detail)),
        row(Method::PATCH, "/v1/projects/{id}", owner, CHANGE_ERRORS, patch(projects::update))
            .audited(Action::ProjectUpdate),
        row(Method::POST, "/v1/projects/{id}/archive", owner, ARCHIVE_ERRORS, post(projects::archive))
            .audited(Action::ProjectArchive),
        row(Method::POST, "/v1/projects/{id}/unarchive", owner, FOUND_ERRORS, post(projects::unarchive))
            .audited(Action::ProjectUnarchive),
        row(Method::GET, "/v1/models", viewer, LIST_ERRORS, get(models::list)),
        row(Method::PUT, "/v1/models/{name}", owner, PRICE_ERRORS, put(models::set))
            .audited(Action::PriceSet),
        row(Method::GET, "/v1/me", any, &[], get(me::me)),
        row(Method::GET, "/v1/members", Access::viewer(), LIST_ERRORS, get(members::list)),
        row(Method::DELETE, "/v1/members/{id}", Access::owner(), FOUND_ERRORS, delete(members::remove))
            .audited(Action::MemberRemove),
        row(Method::PATCH, "/v1/members/{id}", Access::owner(), CHANGE_MEMBER_ERRORS, patch(members::update))
            .audited(Action::MemberRestore),
        row(
            Method::GET,
            "/v1/provider-credentials",
            Access::owner().plan(Plan::Pro),
            LIST_ERRORS,
            get(credentials::list),
        ),
        row(
            Method::PUT,
            "/v1/provider-credentials/{provider}",
            Access::owner().plan(Plan::Pro),
            CREDENTIAL_ERRORS,
            put(credentials::set),
        )
        .audited(Action::CredentialSet)
        .plan_of_body(credentials::plan_of_body),
        // Allowed on every plan, so that credentials can be deleted after a downgrade.
        row(
            Method::DELETE,
            "/v1/provider-credentials/{provider}",
            Access::owner(),
            FOUND_ERRORS,
            delete(credentials::delete),
        )
        .audited(Action::CredentialDelete),
        row(Method::GET, "/v1/audit-log", owner, LIST_ERRORS, get(audit_log::list)),
    ]
}

/// Whether requests to a path count towards a rate limit; those to health checks and pages do not.
pub fn is_rate_limited(path: &str) -> bool {
    path.starts_with("/v1/") || path.starts_with("/api/public/otel/")
}

/// Returns the names of the routes in metrics.
pub fn names() -> impl Iterator<Item = Name> {
    all().into_iter().map(|it| Name {
        // The table uses methods that HTTP defines; their names are constants.
        method: HTTP_METHODS.into_iter().find(|name| *name == it.method.as_str()).unwrap_or_default(),
        route: it.path,
    })
}

/// The methods of routes.
const HTTP_METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

fn row(
    method: Method,
    path: &'static str,
    access: Access,
    errors: &'static [ErrorCode],
    handler: MethodRouter<Arc<App>>,
) -> Route {
    let waits_for_permit = method == Method::GET && access != Access::Open;
    Route {
        method,
        path,
        access,
        bucket: RateBucket::Other,
        audited: None,
        schemes: Schemes::Bearer,
        plan_of_body: None,
        waits_for_permit,
        errors,
        handler,
    }
}

impl Route {
    /// Sets the rate limit bucket.
    fn counts_to(self, bucket: RateBucket) -> Self {
        Self { bucket, ..self }
    }

    /// Sets the function that determines the plan required by a body.
    fn plan_of_body(self, plan: fn(&[u8]) -> Plan) -> Self {
        Self { plan_of_body: Some(plan), ..self }
    }

    /// Declares that the handler acquires read permits itself.
    fn acquires_permits(self) -> Self {
        Self { waits_for_permit: false, ..self }
    }

    /// Records rejections as this action in the audit log.
    fn audited(self, action: Action) -> Self {
        Self { audited: Some(action), ..self }
    }

    /// Also accepts Basic authentication.
    fn accepts_basic(self) -> Self {
        Self { schemes: Schemes::BearerOrBasic, ..self }
    }
}
