//! The toolkit of HTTP: routes, middleware, parsing of requests and writing of responses. It knows no endpoint:
//! features declare them.

pub mod access_page;
pub mod address;
pub mod auth;
mod compress;
pub mod cors;
pub mod error;
pub mod guard;
mod head;
pub mod held;
pub mod idempotency;
pub mod openapi;
pub mod outer;
pub(crate) mod pieces;
pub mod query;
pub mod read;
pub mod read_size;
pub mod route;
pub mod serve;
mod shape;
mod socket;
pub mod standing;
pub mod trace_filter;
pub mod unauthenticated;
mod unread;

use std::sync::Arc;

use api::ErrorCode;
use axum::{Router, handler::Handler, middleware};
use route::Route;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::{app::App, error::problem};

/// Returns the whole service, without the routes of the metrics if they are served on a separate address.
pub fn router(app: &Arc<App>, routes: &'static [Route]) -> Router {
    let elsewhere = app.config.metrics_listen.is_some();
    let counted = middleware::from_fn_with_state(Arc::clone(app), guard::count);
    let router = table(app, routes.iter().filter(|it| !(elsewhere && it.is_on_metrics_address)))
        .method_not_allowed_fallback(guard::not_this_way.layer(counted.clone()))
        .fallback(guard::nothing_here.layer(counted))
        .merge(viewer());
    layered(router, app, routes).with_state(Arc::clone(app))
}

/// Returns a service with the metrics only.
pub fn figures(app: &Arc<App>, routes: &'static [Route]) -> Router {
    let router = table(app, routes.iter().filter(|it| it.is_on_metrics_address));
    layered(router, app, routes).with_state(Arc::clone(app))
}

/// Returns the service for connections beyond the limit.
pub fn busy(app: &Arc<App>) -> Router {
    let refuse =
        || async { problem(ErrorCode::Overloaded, "too many connections are open; try again shortly") };
    layered(Router::new().fallback(refuse), app, &[]).with_state(Arc::clone(app))
}

/// Returns the viewer of the OpenAPI document at `/docs`, which works without a network.
fn viewer() -> Router<Arc<App>> {
    SwaggerUi::new("/docs").config(Config::from("/v1/openapi.json")).into()
}

fn table(app: &Arc<App>, routes: impl Iterator<Item = &'static Route>) -> Router<Arc<App>> {
    routes.fold(Router::new(), |router, route| {
        let guard = guard::Guard { app: Arc::clone(app), route };
        let handler = route.handler.clone().route_layer(middleware::from_fn_with_state(guard, guard::guard));
        router.route(&route.path, handler)
    })
}

/// Adds the layers that apply to all responses.
fn layered(router: Router<Arc<App>>, app: &Arc<App>, routes: &'static [Route]) -> Router<Arc<App>> {
    // Inside of the compression layer, where the size is known.
    let router = router.layer(middleware::from_fn_with_state(Arc::clone(app), held::count_open));
    let router = router.layer(compress::layer());
    let router = match cors::layer(&app.config.cors_origins) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    // Outermost, so that every response has a body and a request ID.
    router.layer(middleware::from_fn_with_state((Arc::clone(app), routes), outer::wrap))
}
