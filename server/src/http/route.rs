//! A route: a handler with its access requirements, rate limit bucket, error codes and documentation.
//!
//! Method, path, parameters, bodies and description come from the `#[utoipa::path]` of the handler; the feature
//! that owns the handler adds the rest where it lists the route.

use std::sync::Arc;

use api::{
    ErrorCode::{self, *},
    Plan,
};
use axum::{http::Method, routing::MethodRouter};
use store::rates::RateBucket;
use utoipa::{
    ToSchema,
    openapi::{
        PathItem, RefOr, Schema,
        path::{Operation, ParameterIn},
    },
};
use utoipa_axum::router::UtoipaMethodRouter;

use crate::{access::Access, app::App, audit::AuditAction};

/// Returns the [`Route`] of a handler that has a `#[utoipa::path]`, with its access requirements.
macro_rules! route {
    ($handler:path, $access:expr) => {
        $crate::http::route::Route::new(|| utoipa_axum::routes!($handler), $access)
    };
}
pub(crate) use route;

/// A schema of the OpenAPI document, with its name.
type NamedSchema = (String, RefOr<Schema>);

/// The authentication schemes that a route accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthSchemes {
    /// `Authorization: Bearer <token>`.
    Bearer,
    /// Also accepts `Authorization: Basic <credentials>` with an API key as the password. The user name
    /// is ignored: exporters of other services send a public key there.
    BearerOrBasic,
}

/// A method and a path, with its requirements and its handler.
#[derive(Clone)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, with `{name}` for parameters.
    pub path: String,
    /// Access requirements.
    pub access: Access,
    /// The rate limit bucket.
    pub bucket: RateBucket,
    /// The audited action, so that rejections are recorded too.
    pub audited: Option<AuditAction>,
    /// The authentication schemes that the route accepts.
    pub schemes: AuthSchemes,
    /// Returns the lowest plan that allows a request with this body, if the plan depends on the body.
    /// Called only when the tenant's plan is too low.
    pub plan_of_body: Option<fn(&[u8]) -> Plan>,
    /// Whether the handler runs with one of the tenant's read permits.
    pub waits_for_permit: bool,
    /// Whether errors have the form of OTLP.
    pub has_otlp_errors: bool,
    /// Whether the route moves to the separate address of the metrics, if there is one.
    pub is_on_metrics_address: bool,
    /// The handler.
    pub handler: MethodRouter<Arc<App>>,
    /// The path that this one is an alias of.
    pub(super) alias_of: Option<String>,
    aliases: Vec<(&'static str, AuthSchemes)>,
    /// Error codes of the handler; those that follow from access are not among them.
    errors: Vec<ErrorCode>,
    utoipa_route: fn() -> UtoipaMethodRouter<Arc<App>>,
    parameter_types: Vec<fn() -> NamedSchema>,
}

impl Route {
    /// Creates the route of a documented handler; `route!` is the short form.
    pub fn new(utoipa_route: fn() -> UtoipaMethodRouter<Arc<App>>, access: Access) -> Self {
        let (_, paths, handler) = utoipa_route();
        let (path, item) = paths.paths.into_iter().next().unwrap_or_default();
        let (method, operation) = operation_of(item).unwrap_or_default();
        Self {
            waits_for_permit: method == Method::GET && access != Access::Open,
            errors: errors_of(&operation),
            method,
            path,
            access,
            bucket: RateBucket::Other,
            audited: None,
            schemes: AuthSchemes::Bearer,
            plan_of_body: None,
            has_otlp_errors: false,
            is_on_metrics_address: false,
            handler,
            alias_of: None,
            aliases: Vec::new(),
            utoipa_route,
            parameter_types: Vec::new(),
        }
    }

    /// Sets the rate limit bucket.
    pub fn counts_to(self, bucket: RateBucket) -> Self {
        Self { bucket, ..self }
    }

    /// Records rejections as this action in the audit log.
    pub fn audited(self, action: AuditAction) -> Self {
        Self { audited: Some(action), ..self }
    }

    /// Adds error codes to those that follow from access, parameters and body.
    pub fn errors(mut self, codes: &[ErrorCode]) -> Self {
        self.errors.extend(codes);
        self
    }

    /// Also serves the handler at another path.
    pub fn alias(mut self, path: &'static str) -> Self {
        self.aliases.push((path, AuthSchemes::Bearer));
        self
    }

    /// Also serves the handler at another path, which accepts Basic authentication, too.
    pub fn alias_with_basic(mut self, path: &'static str) -> Self {
        self.aliases.push((path, AuthSchemes::BearerOrBasic));
        self
    }

    /// Sets the function that determines the plan required by a body.
    pub fn plan_of_body(self, plan: fn(&[u8]) -> Plan) -> Self {
        Self { plan_of_body: Some(plan), ..self }
    }

    /// Declares that the handler acquires read permits itself.
    pub fn acquires_permits(self) -> Self {
        Self { waits_for_permit: false, ..self }
    }

    /// Declares that errors have the form of OTLP.
    pub fn with_otlp_errors(self) -> Self {
        Self { has_otlp_errors: true, ..self }
    }

    /// Moves the route to the separate address of the metrics, if there is one.
    pub fn on_metrics_address(self) -> Self {
        Self { is_on_metrics_address: true, ..self }
    }

    /// Describes a type that only parameters use: types of bodies are found automatically.
    pub fn parameter_type<T: ToSchema>(mut self) -> Self {
        self.parameter_types.push(|| (T::name().into_owned(), T::schema()));
        self
    }

    /// Returns the route, followed by a route for each of its aliases.
    pub fn with_aliases(mut self) -> Vec<Self> {
        let aliases = std::mem::take(&mut self.aliases);
        let alias = |(path, schemes): (&str, AuthSchemes)| Self {
            path: path.to_owned(),
            schemes,
            alias_of: Some(self.path.clone()),
            ..self.clone()
        };
        let aliases: Vec<Self> = aliases.into_iter().map(alias).collect();
        std::iter::once(self).chain(aliases).collect()
    }

    /// Whether requests count towards a rate limit.
    pub fn is_rate_limited(&self) -> bool {
        is_rate_limited(&self.path)
    }

    /// Returns every error code of the route: those that follow from access, parameters and body, and its own.
    pub fn error_codes(&self) -> Vec<ErrorCode> {
        let mut codes = self.errors.clone();
        if let Access::Token { plan, .. } = self.access {
            codes.extend([
                Unauthorized,
                UnknownTenant,
                MemberRemoved,
                SeatLimitExceeded,
                ForbiddenRole,
                ScopeForbidden,
                SessionRequired,
            ]);
            if plan > Plan::Starter {
                codes.push(PlanUpgradeRequired);
            }
            codes.push(Overloaded);
        }
        if self.is_rate_limited() {
            codes.push(RateLimited);
        }
        // Every POST with a token accepts an `Idempotency-Key`, for which the body is read.
        if self.method == Method::POST && self.access != Access::Open {
            codes.extend([
                ValidationFailed,
                PayloadTooLarge,
                InvalidBody,
                IdempotencyKeyReused,
                IdempotencyInFlight,
            ]);
        }
        codes.extend([InvalidRequest, MethodNotAllowed, HeadersTooLarge, Internal]);
        codes.sort_unstable_by_key(|it| (it.status(), it.as_str()));
        codes.dedup();
        codes
    }

    /// Returns the operation for the OpenAPI document, and the schemas that it refers to.
    pub(super) fn documentation(&self) -> (Operation, Vec<NamedSchema>) {
        let (mut schemas, paths, _) = (self.utoipa_route)();
        let item = paths.paths.into_values().next().unwrap_or_default();
        schemas.extend(self.parameter_types.iter().map(|it| it()));
        (operation_of(item).unwrap_or_default().1, schemas)
    }
}

/// Whether requests to a path count towards a rate limit; those to health checks and pages do not.
pub fn is_rate_limited(path: &str) -> bool {
    path.starts_with("/v1/") || path.starts_with("/api/public/otel/")
}

/// Returns the method and the operation of a path item, which has one.
fn operation_of(item: PathItem) -> Option<(Method, Operation)> {
    let operations = [
        (Method::GET, item.get),
        (Method::POST, item.post),
        (Method::PUT, item.put),
        (Method::PATCH, item.patch),
        (Method::DELETE, item.delete),
    ];
    operations.into_iter().find_map(|(method, operation)| Some((method, operation?)))
}

/// Returns the error codes that follow from the parameters and the body of an operation.
fn errors_of(operation: &Operation) -> Vec<ErrorCode> {
    let mut codes = Vec::new();
    for parameter in operation.parameters.iter().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        match (&parameter.parameter_in, parameter.name.as_str()) {
            (ParameterIn::Query, "cursor") => codes.extend([InvalidQuery, InvalidCursor]),
            (ParameterIn::Path, "id") => codes.extend([InvalidQuery, NotFound]),
            // A path that is not UTF-8 is an invalid query, too.
            (ParameterIn::Query | ParameterIn::Path, _) => codes.push(InvalidQuery),
            _ => {}
        }
    }
    if let Some(RefOr::T(body)) = &operation.request_body {
        codes.extend([InvalidBody, ValidationFailed, PayloadTooLarge, UnsupportedMediaType]);
        if body.content.keys().all(|it| it == "application/json") {
            codes.push(InvalidJson);
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[utoipa::path(post, path = "/v1/things/{id}", request_body = api::project::NewProject,
        params(("id" = String, Path), ("cursor" = Option<String>, Query)), responses((status = 204)))]
    async fn handler() {}

    #[test]
    fn error_codes_follow_from_access_parameters_and_body() {
        let open = route!(handler, Access::Open).errors(&[Conflict]).error_codes();
        for code in
            [InvalidQuery, InvalidCursor, NotFound, InvalidJson, UnsupportedMediaType, Conflict, RateLimited]
        {
            assert!(open.contains(&code), "{code:?}: {open:?}");
        }
        assert!(!open.contains(&Unauthorized) && !open.contains(&IdempotencyInFlight), "{open:?}");
        let member = route!(handler, Access::member().plan(Plan::Pro)).error_codes();
        for code in [Unauthorized, ForbiddenRole, PlanUpgradeRequired, IdempotencyInFlight] {
            assert!(member.contains(&code), "{code:?}: {member:?}");
        }
    }

    #[test]
    fn alias_has_the_requirements_of_its_route() {
        let route = route!(handler, Access::member()).counts_to(RateBucket::Ingest);
        let routes = route.alias("/a").alias_with_basic("/b").with_aliases();
        let paths: Vec<_> = routes.iter().map(|it| (it.path.as_str(), it.schemes)).collect();
        let expected = [
            ("/v1/things/{id}", AuthSchemes::Bearer),
            ("/a", AuthSchemes::Bearer),
            ("/b", AuthSchemes::BearerOrBasic),
        ];
        assert_eq!(paths, expected);
        for route in &routes {
            assert_eq!((&route.method, route.bucket), (&Method::POST, RateBucket::Ingest));
            assert_eq!(route.alias_of.is_some(), route.path != "/v1/things/{id}");
        }
    }
}
