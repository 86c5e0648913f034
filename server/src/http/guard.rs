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
    address::ClientAddress,
    auth, held, idempotency,
    outer::RequestId,
    read,
    route::{self, Route, Schemes},
    unauthenticated::Slot,
};
use crate::{
    access::{Access, Caller},
    app::App,
    audit::{self, Action, Actor, Event},
    error::{Error, Problem, Result, internal, problem},
    http::error::UnwrittenProblem,
    limits::Verdict,
    seats,
};

const LIMIT_HEADER: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING_HEADER: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET_HEADER: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The route of the handler that a request reached.
#[derive(Clone)]
pub struct Guard {
    /// The state.
    pub app: Arc<App>,
    /// The route.
    pub route: &'static Route,
}

/// Serves a request whose caller meets the requirements of the route.
pub async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let limited = route::is_rate_limited(request.uri().path());
    if guard.route.access == Access::Open {
        return if limited { nobody(&guard.app, request, next).await } else { next.run(request).await };
    }
    let app = Arc::clone(&guard.app);
    let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let is_delete = request.method() == Method::DELETE;
    if let Err(reason) = may_write(&app, writes, is_delete) {
        return Error::from(reason).into_response();
    }
    match app.db.health.while_reachable(serve(guard, request, next)).await {
        // A write is acknowledged only if its database file is still in place.
        Ok(response) if writes && response.status().is_success() => match app.db.health.check_file() {
            Ok(()) => response,
            Err(reason) => Error::from(reason).into_response(),
        },
        Ok(response) => response,
        Err(reason) => Error::from(reason).into_response(),
    }
}

/// Rejects writes that can't be stored. Deleting is allowed on a nearly full disk.
fn may_write(app: &App, writes: bool, is_delete: bool) -> Result<(), Unavailable> {
    match app.db.health.unavailable() {
        Some(Unavailable::DiskFull) if is_delete => Ok(()),
        Some(reason) if writes => Err(reason),
        _ if writes => app.db.health.check_file(),
        _ => Ok(()),
    }
}

/// Serves a request of a route that requires a token.
async fn serve(guard: Guard, request: Request, next: Next) -> Response {
    let caller = match authenticate(&guard.app, guard.route.schemes, &request).await {
        Ok(caller) => caller,
        Err(error) => return turned_away(&guard.app, &request, error),
    };
    let (mut response, verdict) = match take(&guard, &caller).await {
        Ok(verdict) if verdict.allowed => (admitted(&guard, caller, request, next).await, verdict),
        Ok(verdict) => (too_many(&guard.app, verdict), verdict),
        Err(error) => return turned_away(&guard.app, &request, error),
    };
    tell(response.headers_mut(), verdict);
    response
}

/// Counts requests to unknown paths and methods against the rate limit.
pub async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if !route::is_rate_limited(request.uri().path()) {
        return next.run(request).await;
    }
    let known = app.db.health.while_reachable(authenticate(&app, Schemes::Bearer, &request)).await;
    let Ok(Ok(caller)) = known else {
        return nobody(&app, request, next).await;
    };
    let verdict =
        match app.limits.take(caller.tenant_id, caller.plan, RateBucket::Other, app.clock.now()).await {
            Ok(verdict) => verdict,
            Err(error) => return turned_away(&app, &request, error),
        };
    let mut response = if verdict.allowed { next.run(request).await } else { too_many(&app, verdict) };
    tell(response.headers_mut(), verdict);
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
    schemes: Schemes,
    request: &'a Request,
) -> impl Future<Output = Result<Caller>> + Send + 'a {
    // Only these parts are captured, because a request is not `Sync`.
    let (headers, id) = (request.headers(), id(request));
    let slot = request.extensions().get::<Slot>().cloned();
    async move {
        let checking = slot.as_ref().map(Slot::checking);
        let identified = auth::identify_by(app, headers, schemes, id).await;
        drop(checking);
        if let (Ok(_), Some(slot)) = (&identified, &slot) {
            slot.authenticated();
        }
        identified
    }
}

/// Returns the ID that the outermost layer assigned to the request.
fn id(request: &Request) -> RequestId {
    request.extensions().get().cloned().unwrap_or_default()
}

async fn take(guard: &Guard, caller: &Caller) -> Result<Verdict> {
    let now = guard.app.clock.now();
    guard.app.limits.take(caller.tenant_id, caller.plan, guard.route.bucket, now).await
}

/// Authorizes and serves a request of a known caller within the rate limit.
async fn admitted(guard: &Guard, caller: Caller, mut request: Request, next: Next) -> Response {
    if let Err(error) = seats::note(&guard.app, &caller).await {
        return error.into_response();
    }
    let target = guard.route.audited.is_some().then(|| request.uri().path().to_owned());
    let response = match guard.route.access.check(&caller) {
        Err(problem) if problem.required_plan.is_some() => {
            plan_too_low(guard, &caller, request, problem).await
        }
        Err(problem) => Error::from(problem).into_response(),
        Ok(()) => {
            request.extensions_mut().insert(caller.clone());
            if request.method() == Method::POST && request.headers().contains_key(idempotency::KEY_HEADER) {
                idempotency::once(&guard.app, &caller, request, next).await
            } else {
                run(guard, &caller, request, next).await
            }
        }
    };
    let refused =
        response.extensions().get::<UnwrittenProblem>().map(|UnwrittenProblem(problem)| problem.code);
    if let (Some(action), Some(path), Some(code)) = (guard.route.audited, target, refused) {
        write_down(&guard.app, &caller, action, &path, code).await;
    }
    response
}

/// Returns the error for a plan that is too low. If the required plan depends on the body, this parses
/// the body, so that a caller who upgrades to the named plan is not rejected again.
async fn plan_too_low(guard: &Guard, caller: &Caller, request: Request, problem: Problem) -> Response {
    let Some(plan_of_body) = guard.route.plan_of_body else { return Error::from(problem).into_response() };
    let (parts, body) = request.into_parts();
    let needed = match read::read(&guard.app, Some(caller.tenant_id), &parts.headers, body).await {
        Ok(held) => plan_of_body(&held.bytes),
        Err(_) => return Error::from(problem).into_response(),
    };
    let needed = problem.required_plan.map_or(needed, |it| it.max(needed));
    Error::from(Problem::plan_too_low(needed, caller.plan)).into_response()
}

/// Runs the handler. A read waits for a permit while too many reads of its tenant are running.
async fn run(guard: &Guard, caller: &Caller, request: Request, next: Next) -> Response {
    let (app, tenant) = (&guard.app, caller.tenant_id);
    let _permit = match guard.route.waits_for_permit {
        true => match app.read_permit(tenant).await {
            Ok(permit) => Some(permit),
            Err(error) => return error.into_response(),
        },
        false => None,
    };
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let response = next.run(request).await;
    match is_read {
        true => held::count(app, tenant, response).await.unwrap_or_else(IntoResponse::into_response),
        false => held::count_write(app, tenant, response),
    }
}

/// Records in the audit log that a sensitive action of a known caller was rejected.
async fn write_down(app: &App, caller: &Caller, action: Action, path: &str, code: ErrorCode) {
    // Malformed requests and unknown targets are not recorded.
    if !matches!(code.status(), 402 | 403 | 409) {
        return;
    }
    let (actor, now) = (Actor::from(caller), app.clock.now());
    if !app.refusals.take((actor.tenant_id, actor.id.clone(), action), now).allowed {
        return;
    }
    let mut event = Event::of(action);
    if let Some(id) = path.split('/').find_map(|it| Uuid::parse_str(it).ok()) {
        event = event.on(id);
    }
    if let Err(error) = audit::refused(&app.db.write, actor, event, code.as_str(), now).await {
        tracing::warn!(%error, action = action.as_str(), "a rejected action could not be recorded in the audit log");
    }
}

/// Serves a public route under `/v1`, which is rate limited by client address.
async fn nobody(app: &App, request: Request, next: Next) -> Response {
    let verdict = app.addresses.take(address(&request).bucket_key(), app.clock.now());
    let mut response = if verdict.allowed { next.run(request).await } else { too_many(app, verdict) };
    tell(response.headers_mut(), verdict);
    response
}

/// Failed authentications are rate limited by client address. A request that could not be authenticated
/// because the identity provider is down always gets its 503.
fn turned_away(app: &App, request: &Request, error: Error) -> Response {
    let verdict = app.addresses.take(address(request).bucket_key(), app.clock.now());
    let response = error.into_response();
    let served = verdict.allowed || response.status().is_server_error();
    let mut response = if served { response } else { too_many(app, verdict) };
    tell(response.headers_mut(), verdict);
    response
}

fn address(request: &Request<Body>) -> ClientAddress {
    // Every connection has one; without it, all would share one bucket.
    let unknown = ClientAddress(std::net::Ipv4Addr::UNSPECIFIED.into());
    request.extensions().get().copied().unwrap_or(unknown)
}

fn too_many(app: &App, verdict: Verdict) -> Response {
    let seconds = (verdict.resets_at - app.clock.now().div_euclid(1_000_000)).max(1);
    let message =
        format!("at most {} requests per minute are allowed; try again in {seconds} s", verdict.limit);
    let mut response = problem(ErrorCode::RateLimited, message).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

fn tell(headers: &mut HeaderMap, verdict: Verdict) {
    headers.insert(LIMIT_HEADER, HeaderValue::from(verdict.limit));
    headers.insert(REMAINING_HEADER, HeaderValue::from(verdict.remaining));
    headers.insert(RESET_HEADER, HeaderValue::from(verdict.resets_at));
}

/// Responds to requests for unknown paths.
pub async fn nothing_here() -> Response {
    Error::from(Problem::new(ErrorCode::NotFound, "this path does not exist")).into_response()
}

/// Responds to unsupported methods; the router adds the `Allow` header.
pub async fn not_this_way() -> Response {
    StatusCode::METHOD_NOT_ALLOWED.into_response()
}
