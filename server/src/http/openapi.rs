//! The OpenAPI document: paths and schemas from the handlers, errors and security from the route table.
//! `common` adds parts that all operations share.

mod common;

use std::collections::BTreeMap;

use api::{
    ErrorBody, ErrorCode,
    metrics::{Interval, Window},
};
use axum::http::Method;
use utoipa::{
    OpenApi,
    openapi::{
        ContentBuilder, Ref, RefOr, ResponseBuilder,
        path::Operation,
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};

use super::{auth::Schemes, outer};
use crate::{
    access::{Access, Keys},
    routes::{self, Route},
};

#[derive(OpenApi)]
#[openapi(
    info(title = "Loupe", description = "Observability and evaluation for LLM applications."),
    paths(
        crate::endpoints::health::root,
        crate::endpoints::health::live,
        crate::endpoints::health::ready,
        crate::endpoints::server_metrics::show,
        crate::endpoints::api_document::document,
        crate::ingest::endpoints::json::one,
        crate::ingest::endpoints::json::batch,
        crate::ingest::endpoints::otlp::traces,
        crate::ingest::endpoints::otlp::metrics,
        crate::ingest::endpoints::otlp::logs,
        crate::traces::endpoints::list,
        crate::traces::stream::follow,
        crate::traces::endpoints::detail,
        crate::traces::endpoints::spans,
        crate::traces::endpoints::delete,
        crate::traces::export::export,
        crate::traces::sessions::list,
        crate::search::endpoints::by_words,
        crate::search::endpoints::by_vector,
        crate::endpoints::feedback::list,
        crate::endpoints::feedback::create,
        crate::metrics::endpoints::show,
        crate::metrics::endpoints::of_project,
        crate::evals::endpoints::evaluations::list,
        crate::evals::endpoints::evaluations::create,
        crate::evals::endpoints::evaluations::create_bulk,
        crate::evals::endpoints::evaluations::bulk_progress,
        crate::evals::endpoints::evaluations::detail,
        crate::evals::endpoints::evaluators::list,
        crate::evals::endpoints::evaluators::create,
        crate::evals::endpoints::evaluators::detail,
        crate::evals::endpoints::evaluators::update,
        crate::evals::endpoints::evaluators::delete,
        crate::evals::endpoints::eval_rules::list,
        crate::evals::endpoints::eval_rules::create,
        crate::evals::endpoints::eval_rules::detail,
        crate::evals::endpoints::eval_rules::update,
        crate::evals::endpoints::eval_rules::delete,
        crate::evals::endpoints::eval_rules::decisions,
        crate::evals::endpoints::eval_rules::test,
        crate::evals::endpoints::eval_rules::backfill,
        crate::access::endpoints::keys::list,
        crate::access::endpoints::keys::create,
        crate::access::endpoints::keys::revoke,
        crate::access::endpoints::keys::current,
        crate::endpoints::projects::list,
        crate::endpoints::projects::create,
        crate::endpoints::projects::detail,
        crate::endpoints::projects::update,
        crate::endpoints::projects::archive,
        crate::endpoints::projects::unarchive,
        crate::endpoints::models::list,
        crate::endpoints::models::set,
        crate::access::endpoints::me::me,
        crate::access::endpoints::members::list,
        crate::access::endpoints::members::remove,
        crate::access::endpoints::members::update,
        crate::endpoints::audit_log::list,
        crate::access::endpoints::credentials::list,
        crate::access::endpoints::credentials::set,
        crate::access::endpoints::credentials::delete,
    ),
    // Types used only by parameters are not found automatically.
    components(schemas(ErrorBody, Interval, Window))
)]
struct Handlers;

/// Paths that are aliases of another path.
pub const PATH_ALIASES: &[(&str, &str)] = &[
    ("/v1/otlp/v1/traces", "/v1/otlp/traces"),
    ("/v1/traces", "/v1/otlp/traces"),
    ("/api/public/otel/v1/traces", "/v1/otlp/traces"),
    ("/v1/metrics", "/v1/otlp/v1/metrics"),
    ("/v1/logs", "/v1/otlp/v1/logs"),
];

/// Returns the document.
pub fn document() -> utoipa::openapi::OpenApi {
    let mut document = Handlers::openapi();
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("an API key or a session token"))
        .build();
    let components = document.components.get_or_insert_default();
    components.security_schemes.insert("bearer".to_owned(), SecurityScheme::Http(scheme).into());
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Basic)
        .description(Some("an API key as the password; the user name is ignored"))
        .build();
    components.security_schemes.insert("basic".to_owned(), SecurityScheme::Http(scheme).into());
    for route in routes::all() {
        if let Some(operation) = operation(&mut document, &route) {
            describe(operation, &route);
            common::complete(operation);
        }
    }
    document
}

fn operation<'a>(document: &'a mut utoipa::openapi::OpenApi, route: &Route) -> Option<&'a mut Operation> {
    if let Some((_, original)) =
        PATH_ALIASES.iter().find(|it| it.0 == route.path && route.method == Method::POST)
    {
        let mut copy = document.paths.paths.get(*original)?.post.clone()?;
        copy.operation_id = copy.operation_id.map(|it| format!("{it}{}", route.path.replace('/', "_")));
        document.paths.paths.entry(route.path.to_owned()).or_default().post = Some(copy);
    }
    let item = document.paths.paths.get_mut(route.path)?;
    match route.method {
        Method::GET => item.get.as_mut(),
        Method::POST => item.post.as_mut(),
        Method::PUT => item.put.as_mut(),
        Method::PATCH => item.patch.as_mut(),
        Method::DELETE => item.delete.as_mut(),
        _ => None,
    }
}

/// Adds access requirements and all error codes, and makes the operation's name unique: a handler's own
/// name is unique only within its tag.
fn describe(operation: &mut Operation, route: &Route) {
    if let (Some([tag, ..]), Some(name)) = (operation.tags.as_deref(), &operation.operation_id) {
        operation.operation_id = Some(format!("{}_{name}", tag.to_lowercase().replace(' ', "_")));
    }
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in codes(route) {
        by_status.entry(code.status()).or_default().push(code.as_str());
    }
    for (status, codes) in by_status {
        let body = ContentBuilder::new().schema(Some(RefOr::Ref(Ref::from_schema_name("ErrorBody")))).build();
        let mut response = ResponseBuilder::new()
            .description(format!("code: {}", codes.join(", ")))
            .content("application/json", body);
        if outer::speaks_otlp(&route.method, route.path) {
            // A `google.rpc.Status` for clients that send protobuf.
            response = response.content("application/x-protobuf", ContentBuilder::new().build());
        }
        operation.responses.responses.insert(status.to_string(), response.build().into());
    }
    if let Access::Token { role, keys, plan } = route.access {
        let requirement = |scheme| SecurityRequirement::new(scheme, Vec::<String>::new());
        let mut security = vec![requirement("bearer")];
        if route.schemes == Schemes::BearerOrBasic {
            security.push(requirement("basic"));
        }
        operation.security = Some(security);
        let keys = match keys {
            Keys::Refused => "no API keys",
            Keys::Full => "API keys with full access",
            Keys::Query => "API keys with full access or the `query` scope",
            Keys::Any => "every API key",
        };
        let access = format!("Access: sessions with the role {role} or above, {keys}; plan {plan} or above.");
        let text = operation.description.take().map(|it| format!("{it}\n\n")).unwrap_or_default();
        operation.description = Some(text + &access);
    }
}

/// Returns every error code of a route: those that follow from access, and its own.
pub fn codes(route: &Route) -> Vec<ErrorCode> {
    let mut codes = Vec::new();
    if let Access::Token { plan, .. } = route.access {
        codes.extend([
            ErrorCode::Unauthorized,
            ErrorCode::UnknownTenant,
            ErrorCode::MemberRemoved,
            ErrorCode::SeatLimitExceeded,
            ErrorCode::ForbiddenRole,
            ErrorCode::ScopeForbidden,
            ErrorCode::SessionRequired,
        ]);
        if plan > api::Plan::Starter {
            codes.push(ErrorCode::PlanUpgradeRequired);
        }
        codes.push(ErrorCode::Overloaded);
    }
    if route.path.starts_with("/v1/") {
        codes.push(ErrorCode::RateLimited);
    }
    if route.method == Method::POST && route.access != Access::Open {
        codes.extend([
            ErrorCode::ValidationFailed,
            ErrorCode::PayloadTooLarge,
            ErrorCode::InvalidBody,
            ErrorCode::IdempotencyKeyReused,
            ErrorCode::IdempotencyInFlight,
        ]);
    }
    codes.extend(route.errors);
    codes.extend([
        ErrorCode::InvalidRequest,
        ErrorCode::MethodNotAllowed,
        ErrorCode::HeadersTooLarge,
        ErrorCode::Internal,
    ]);
    codes.sort_unstable_by_key(|it| (it.status(), it.as_str()));
    codes.dedup();
    codes
}
