//! The OpenAPI document, which follows from the routes. `common` adds parts that all operations share.

mod common;
mod webhook_events;

use std::collections::BTreeMap;

use api::ErrorBody;
use axum::http::Method;
use utoipa::{
    OpenApi,
    openapi::{
        ContentBuilder, Ref, RefOr, ResponseBuilder,
        path::Operation,
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};

use super::route::{AuthSchemes, Route};
use crate::access::{Access, Keys};

/// The parts of the document that belong to no route.
#[derive(OpenApi)]
#[openapi(
    info(title = "Loupe", description = "Observability and evaluation for LLM applications."),
    components(schemas(ErrorBody))
)]
struct DocumentBase;

/// Returns the document of these routes.
pub fn document(routes: &[Route]) -> utoipa::openapi::OpenApi {
    let mut document = DocumentBase::openapi();
    let components = document.components.get_or_insert_default();
    for (name, scheme) in [
        ("bearer", scheme(HttpAuthScheme::Bearer, "an API key or a session token")),
        ("basic", scheme(HttpAuthScheme::Basic, "an API key as the password; the user name is ignored")),
    ] {
        components.security_schemes.insert(name.to_owned(), scheme);
    }
    for route in routes {
        let (mut operation, schemas) = route.documentation();
        components.schemas.extend(schemas);
        describe(&mut operation, route);
        common::complete(&mut operation);
        let item = document.paths.paths.entry(route.path.clone()).or_default();
        let operation_slot = match route.method {
            Method::POST => &mut item.post,
            Method::PUT => &mut item.put,
            Method::PATCH => &mut item.patch,
            Method::DELETE => &mut item.delete,
            _ => &mut item.get,
        };
        *operation_slot = Some(operation);
    }
    webhook_events::add(&mut document);
    document
}

fn scheme(kind: HttpAuthScheme, description: &str) -> RefOr<SecurityScheme> {
    SecurityScheme::Http(HttpBuilder::new().scheme(kind).description(Some(description)).build()).into()
}

/// Adds access requirements and all error codes, and makes the operation's name unique: a handler's own
/// name is unique only within its tag.
fn describe(operation: &mut Operation, route: &Route) {
    if let (Some([tag, ..]), Some(name)) = (operation.tags.as_deref(), &operation.operation_id) {
        let path = route.alias_of.as_ref().map(|_| route.path.replace('/', "_")).unwrap_or_default();
        operation.operation_id = Some(format!("{}_{name}{path}", tag.to_lowercase().replace(' ', "_")));
    }
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in route.error_codes() {
        by_status.entry(code.status()).or_default().push(code.as_str());
    }
    for (status, codes) in by_status {
        let body = ContentBuilder::new().schema(Some(RefOr::Ref(Ref::from_schema_name("ErrorBody")))).build();
        let mut response = ResponseBuilder::new()
            .description(format!("code: {}", codes.join(", ")))
            .content("application/json", body);
        if route.has_otlp_errors {
            // A `google.rpc.Status` for clients that send protobuf.
            response = response.content("application/x-protobuf", ContentBuilder::new().build());
        }
        operation.responses.responses.insert(status.to_string(), response.build().into());
    }
    if let Access::Token { role, keys, plan } = route.access {
        let requirement = |scheme| SecurityRequirement::new(scheme, Vec::<String>::new());
        let mut security = vec![requirement("bearer")];
        if route.schemes == AuthSchemes::BearerOrBasic {
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
