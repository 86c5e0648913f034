//! Middleware that runs before every handler: authentication, rate limiting, authorization and
//! idempotency, in that order. Each route declares its requirements.

use std::sync::Arc;

use api::ErrorCode;
use axum::{
    body::Body,
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use store::{health::Unavailable, rates::RateBucket};
use uuid::Uuid;

use super::{
    auth, body_memory,
    client_address::ClientAddress,
    idempotency,
    outer_layer::RequestId,
    read,
    route::{self, AuthSchemes, Route},
    unauthenticated_connections::ConnectionSlot,
};
use crate::{
    access::{Access, Caller},
    app::App,
    audit::{self, Actor, AuditAction, AuditEvent},
    error::{Error, Problem, Result, internal, problem},
    http::error::UnwrittenProblem,
    limits::RateLimitDecision,
    seats,
};

const LIMIT_HEADER: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING_HEADER: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET_HEADER: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The route of the handler that a request reached.
#[derive(Clone)]
pub struct RouteState {
    /// The state.
    pub app: Arc<App>,
    /// The route.
    pub route: &'static Route,
}

/// Serves a request whose caller meets the requirements of the route.
pub async fn handle(State(state): State<RouteState>, request: Request, next: Next) -> Response {
    let limited = route::is_rate_limited(request.uri().path());
    if state.route.access == Access::Open {
        return if limited { serve_public(&state.app, request, next).await } else { next.run(request).await };
    }
    let app = Arc::clone(&state.app);
    let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let is_delete = request.method() == Method::DELETE;
    if let Err(reason) = check_writable(&app, writes, is_delete) {
        return Error::from(reason).into_response();
    }
    match app.db.health.while_reachable(serve(state, request, next)).await {
        // A write is acknowledged only if its database file is still in place.
        Ok(response) if writes && response.status().is_success() => match app.db.health.check_file() {
            Ok(()) => response,
            Err(reason) => Error::from(reason).into_response(),
        },
        Ok(response) => response,
        Err(reason) => Error::from(reason).into_response(),
    }
}

/// Rejects writes that cannot be stored. Deleting is allowed on a nearly full disk.
fn check_writable(app: &App, writes: bool, is_delete: bool) -> Result<(), Unavailable> {
    match app.db.health.unavailable() {
        Some(Unavailable::DiskFull) if is_delete => Ok(()),
        Some(reason) if writes => Err(reason),
        _ if writes => app.db.health.check_file(),
        _ => Ok(()),
    }
}

/// Serves a request of a route that requires a token.
async fn serve(state: RouteState, request: Request, next: Next) -> Response {
    let caller = match authenticate(&state.app, state.route.schemes, &request).await {
        Ok(caller) => caller,
        Err(error) => return reject_unauthenticated(&state.app, &request, error),
    };
    let (mut response, decision) = match count_request(&state, &caller).await {
        Ok(decision) if decision.allowed => (authorize(&state, caller, request, next).await, decision),
        Ok(decision) => (rate_limited(&state.app, decision), decision),
        Err(error) => return reject_unauthenticated(&state.app, &request, error),
    };
    set_rate_limit_headers(response.headers_mut(), decision);
    response
}

/// Counts requests to unknown paths and methods against the rate limit.
pub async fn count_unrouted(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if !route::is_rate_limited(request.uri().path()) {
        return next.run(request).await;
    }
    let authenticated =
        app.db.health.while_reachable(authenticate(&app, AuthSchemes::Bearer, &request)).await;
    let Ok(Ok(caller)) = authenticated else {
        return serve_public(&app, request, next).await;
    };
    let decision = match app
        .rate_limits
        .count(caller.tenant_id, caller.plan, RateBucket::Other, app.clock.now())
        .await
    {
        Ok(decision) => decision,
        Err(error) => return reject_unauthenticated(&app, &request, error),
    };
    let mut response = if decision.allowed { next.run(request).await } else { rate_limited(&app, decision) };
    set_rate_limit_headers(response.headers_mut(), decision);
    response
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        // Missing only if a handler requires a caller on a public route.
        parts.extensions.get::<Self>().cloned().ok_or_else(|| internal().into())
    }
}

/// Identifies the caller. A connection that presents a valid token no longer counts as unauthenticated.
fn authenticate<'a>(
    app: &'a App,
    schemes: AuthSchemes,
    request: &'a Request,
) -> impl Future<Output = Result<Caller>> + Send + 'a {
    // Only these parts are captured, because a request is not `Sync`.
    let (headers, id) = (request.headers(), request_id(request));
    let slot = request.extensions().get::<ConnectionSlot>().cloned();
    async move {
        let token_check = slot.as_ref().map(ConnectionSlot::protect);
        let identified = auth::identify_by(app, headers, schemes, id).await;
        drop(token_check);
        if let (Ok(_), Some(slot)) = (&identified, &slot) {
            slot.release();
        }
        identified
    }
}

/// Returns the ID that the outermost layer assigned to the request.
fn request_id(request: &Request) -> RequestId {
    request.extensions().get().cloned().unwrap_or_default()
}

async fn count_request(state: &RouteState, caller: &Caller) -> Result<RateLimitDecision> {
    let now = state.app.clock.now();
    state.app.rate_limits.count(caller.tenant_id, caller.plan, state.route.bucket, now).await
}

/// Authorizes and serves a request of a known caller within the rate limit.
async fn authorize(state: &RouteState, caller: Caller, mut request: Request, next: Next) -> Response {
    if let Err(error) = seats::record_activity(&state.app, &caller).await {
        return error.into_response();
    }
    let target = state.route.audited.is_some().then(|| request.uri().path().to_owned());
    let response = match state.route.access.check(&caller) {
        Err(problem) if problem.required_plan.is_some() => {
            plan_too_low(state, &caller, request, problem).await
        }
        Err(problem) => Error::from(problem).into_response(),
        Ok(()) => {
            request.extensions_mut().insert(caller.clone());
            if request.method() == Method::POST && request.headers().contains_key(idempotency::KEY_HEADER) {
                idempotency::run_once(&state.app, &caller, request, next).await
            } else {
                run(state, &caller, request, next).await
            }
        }
    };
    let rejection_code =
        response.extensions().get::<UnwrittenProblem>().map(|UnwrittenProblem(problem)| problem.code);
    if let (Some(action), Some(path), Some(code)) = (state.route.audited, target, rejection_code) {
        record_rejection(&state.app, &caller, action, &path, code).await;
    }
    response
}

/// Returns the error for a plan that is too low. If the required plan depends on the body, this parses
/// the body, so that a caller who upgrades to the named plan is not rejected again.
async fn plan_too_low(state: &RouteState, caller: &Caller, request: Request, problem: Problem) -> Response {
    let Some(plan_of_body) = state.route.plan_of_body else { return Error::from(problem).into_response() };
    let (parts, body) = request.into_parts();
    let required_plan = match read::read(&state.app, Some(caller.tenant_id), &parts.headers, body).await {
        Ok(body) => plan_of_body(&body.bytes),
        Err(_) => return Error::from(problem).into_response(),
    };
    let required_plan = problem.required_plan.map_or(required_plan, |it| it.max(required_plan));
    Error::from(Problem::plan_too_low(required_plan, caller.plan)).into_response()
}

/// Runs the handler. A read waits for a permit while too many reads of its tenant are running.
async fn run(state: &RouteState, caller: &Caller, request: Request, next: Next) -> Response {
    let (app, tenant) = (&state.app, caller.tenant_id);
    let _permit = match state.route.waits_for_permit {
        true => match app.read_permit(tenant).await {
            Ok(permit) => Some(permit),
            Err(error) => return error.into_response(),
        },
        false => None,
    };
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let response = next.run(request).await;
    match is_read {
        true => body_memory::count_response(app, tenant, response)
            .await
            .unwrap_or_else(IntoResponse::into_response),
        false => body_memory::count_write_response(app, tenant, response),
    }
}

/// Records in the audit log that a sensitive action of a known caller was rejected.
async fn record_rejection(app: &App, caller: &Caller, action: AuditAction, path: &str, code: ErrorCode) {
    // Malformed requests and unknown targets are not recorded.
    if !matches!(code.status(), 402 | 403 | 409) {
        return;
    }
    let (actor, now) = (Actor::from(caller), app.clock.now());
    if !app.rejection_limits.count((actor.tenant_id, actor.id.clone(), action), now).allowed {
        return;
    }
    let mut event = AuditEvent::of(action);
    if let Some(id) = path.split('/').find_map(|it| Uuid::parse_str(it).ok()) {
        event = event.on(id);
    }
    if let Err(error) = audit::record_rejection(&app.db.write, actor, event, code.as_str(), now).await {
        tracing::warn!(%error, action = action.as_str(), "a rejected action could not be recorded in the audit log");
    }
}

/// Serves a public route under `/v1`, which is rate limited by client address.
async fn serve_public(app: &App, request: Request, next: Next) -> Response {
    let decision = app.address_limits.count(client_address_of(&request).bucket_key(), app.clock.now());
    let mut response = if decision.allowed { next.run(request).await } else { rate_limited(app, decision) };
    set_rate_limit_headers(response.headers_mut(), decision);
    response
}

/// Failed authentications are rate limited by client address. A request that could not be authenticated
/// because the identity provider is down always gets its 503.
fn reject_unauthenticated(app: &App, request: &Request, error: Error) -> Response {
    let decision = app.address_limits.count(client_address_of(request).bucket_key(), app.clock.now());
    let response = error.into_response();
    let keeps_response = decision.allowed || response.status().is_server_error();
    let mut response = if keeps_response { response } else { rate_limited(app, decision) };
    set_rate_limit_headers(response.headers_mut(), decision);
    response
}

fn client_address_of(request: &Request<Body>) -> ClientAddress {
    // Every connection has one; without it, all would share one bucket.
    let unknown = ClientAddress(std::net::Ipv4Addr::UNSPECIFIED.into());
    request.extensions().get().copied().unwrap_or(unknown)
}

fn rate_limited(app: &App, decision: RateLimitDecision) -> Response {
    let seconds = (decision.resets_at - app.clock.now().div_euclid(1_000_000)).max(1);
    let message =
        format!("at most {} requests per minute are allowed; try again in {seconds} s", decision.limit);
    let mut response = problem(ErrorCode::RateLimited, message).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

fn set_rate_limit_headers(headers: &mut HeaderMap, decision: RateLimitDecision) {
    headers.insert(LIMIT_HEADER, HeaderValue::from(decision.limit));
    headers.insert(REMAINING_HEADER, HeaderValue::from(decision.remaining));
    headers.insert(RESET_HEADER, HeaderValue::from(decision.resets_at));
}

/// Responds to requests for unknown paths.
pub async fn path_not_found() -> Response {
    Error::from(Problem::new(ErrorCode::NotFound, "this path does not exist")).into_response()
}

/// Responds to unsupported methods; the router adds the `Allow` header.
pub async fn method_not_allowed() -> Response {
    StatusCode::METHOD_NOT_ALLOWED.into_response()
}
