//! What every request passes before its handler: token, rate limit, access, repetition, in this
//! order. What a route asks for is data of the table of routes.

use std::sync::Arc;

use api::{ErrorCode, Plan};
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
    address::ClientAddress, auth, held, idempotency, outer::RequestId, read, routes, unauthenticated::Slot,
};
use crate::{
    access::{Access, Caller},
    app::App,
    audit::{self, Action, Actor, Event},
    error::{Error, Problem, Result, internal, problem},
    http::error::Unwritten,
    limits::Verdict,
    seats,
};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// What [`guard`] needs to know of a route.
#[derive(Clone)]
pub struct Guard {
    /// The state.
    pub app: Arc<App>,
    /// Who may call.
    pub access: Access,
    /// Which requests a minute it counts to.
    pub bucket: RateBucket,
    /// What a refusal is written down as.
    pub audited: Option<Action>,
    /// The authentication schemes that the route accepts.
    pub schemes: auth::Schemes,
    /// The lowest plan that allows a request with this body.
    pub plan_of_body: Option<fn(&[u8]) -> Plan>,
    /// Whether the handler runs with one of the tenant's read permits.
    pub waits_for_permit: bool,
}

/// Lets a request pass whose token may do what the route does.
pub async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let limited = routes::is_rate_limited(request.uri().path());
    if guard.access == Access::Open {
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

/// Refuses writes that can't be stored. Deleting is allowed on a nearly full disk.
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
    let caller = match authenticate(&guard.app, guard.schemes, &request).await {
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

/// For paths and methods that no route has: they are counted like the others.
pub async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if !routes::is_rate_limited(request.uri().path()) {
        return next.run(request).await;
    }
    let known = app.db.health.while_reachable(authenticate(&app, auth::Schemes::Bearer, &request)).await;
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
        // Missing only if a handler asks for a caller on an open route.
        parts.extensions.get::<Self>().cloned().ok_or_else(|| internal().into())
    }
}

/// Identifies the caller. A connection that presents a valid token no longer counts as unauthenticated.
fn authenticate<'a>(
    app: &'a App,
    schemes: auth::Schemes,
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

/// The id that the outermost layer gave the request.
fn id(request: &Request) -> RequestId {
    request.extensions().get().cloned().unwrap_or_default()
}

async fn take(guard: &Guard, caller: &Caller) -> Result<Verdict> {
    let now = guard.app.clock.now();
    guard.app.limits.take(caller.tenant_id, caller.plan, guard.bucket, now).await
}

/// The request of a known caller within the limit.
async fn admitted(guard: &Guard, caller: Caller, mut request: Request, next: Next) -> Response {
    if let Err(error) = seats::note(&guard.app, &caller).await {
        return error.into_response();
    }
    let target = guard.audited.is_some().then(|| request.uri().path().to_owned());
    let response = match guard.access.check(&caller) {
        Err(problem) if problem.required_plan.is_some() => {
            plan_too_low(guard, &caller, request, problem).await
        }
        Err(problem) => Error::from(problem).into_response(),
        Ok(()) => {
            request.extensions_mut().insert(caller.clone());
            if request.method() == Method::POST && request.headers().contains_key(idempotency::KEY) {
                idempotency::once(&guard.app, &caller, request, next).await
            } else {
                run(guard, &caller, request, next).await
            }
        }
    };
    let refused = response.extensions().get::<Unwritten>().map(|Unwritten(problem)| problem.code);
    if let (Some(action), Some(path), Some(code)) = (guard.audited, target, refused) {
        write_down(&guard.app, &caller, action, &path, code).await;
    }
    response
}

/// Returns the error for a plan that is too low. Where the required plan depends on the body, this reads
/// the body, so that a caller who upgrades to the named plan is not refused again.
async fn plan_too_low(guard: &Guard, caller: &Caller, request: Request, problem: Problem) -> Response {
    let Some(plan_of_body) = guard.plan_of_body else { return Error::from(problem).into_response() };
    let (parts, body) = request.into_parts();
    let needed = match read::read(&guard.app, Some(caller.tenant_id), &parts.headers, body).await {
        Ok(held) => plan_of_body(&held.bytes),
        Err(_) => return Error::from(problem).into_response(),
    };
    let needed = problem.required_plan.map_or(needed, |it| it.max(needed));
    Error::from(Problem::plan_too_low(needed, caller.plan)).into_response()
}

/// Runs the handler. A read waits while too many reads of its tenant are running.
async fn run(guard: &Guard, caller: &Caller, request: Request, next: Next) -> Response {
    let (app, tenant) = (&guard.app, caller.tenant_id);
    let _permit = match guard.waits_for_permit {
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

/// Writes down that a sensitive action was refused to a known caller.
async fn write_down(app: &App, caller: &Caller, action: Action, path: &str, code: ErrorCode) {
    // What was malformed, or aimed at nothing, was no attempt.
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
        tracing::warn!(%error, action = action.as_str(), "a refusal could not be written down");
    }
}

/// An open route under `/v1`: its caller has no token, only an address.
async fn nobody(app: &App, request: Request, next: Next) -> Response {
    let verdict = app.addresses.take(address(&request).bucket_key(), app.clock.now());
    let mut response = if verdict.allowed { next.run(request).await } else { too_many(app, verdict) };
    tell(response.headers_mut(), verdict);
    response
}

/// Who can't be let in is told so as often as the address may ask; who could not be judged is
/// told that in any case.
fn turned_away(app: &App, request: &Request, error: Error) -> Response {
    let verdict = app.addresses.take(address(request).bucket_key(), app.clock.now());
    let response = error.into_response();
    let served = verdict.allowed || response.status().is_server_error();
    let mut response = if served { response } else { too_many(app, verdict) };
    tell(response.headers_mut(), verdict);
    response
}

fn address(request: &Request<Body>) -> ClientAddress {
    // Every connection has one; without it all share one bucket.
    let unknown = ClientAddress(std::net::Ipv4Addr::UNSPECIFIED.into());
    request.extensions().get().copied().unwrap_or(unknown)
}

fn too_many(app: &App, verdict: Verdict) -> Response {
    let seconds = (verdict.resets_at - app.clock.now().div_euclid(1_000_000)).max(1);
    let message = format!("{} requests a minute are allowed here; try again in {seconds} s", verdict.limit);
    let mut response = problem(ErrorCode::RateLimited, message).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

fn tell(headers: &mut HeaderMap, verdict: Verdict) {
    headers.insert(LIMIT, HeaderValue::from(verdict.limit));
    headers.insert(REMAINING, HeaderValue::from(verdict.remaining));
    headers.insert(RESET, HeaderValue::from(verdict.resets_at));
}

/// Answers what no route has.
pub async fn nothing_here() -> Response {
    Error::from(Problem::new(ErrorCode::NotFound, "there is nothing at this path")).into_response()
}

/// Answers a method that a path does not take; the router adds those that it takes.
pub async fn not_this_way() -> Response {
    StatusCode::METHOD_NOT_ALLOWED.into_response()
}
