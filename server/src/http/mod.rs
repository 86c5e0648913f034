//! The toolkit of HTTP: routes, middleware, parsing of requests and writing of responses. It knows no endpoint:
//! features declare them.

pub mod access_page;
pub mod auth;
pub mod body_memory;
pub(crate) mod chunked_json;
pub mod client_address;
mod compression;
pub mod cors;
mod draining_body;
pub mod error;
pub(crate) mod grpc;
pub mod idempotency;
pub mod in_process;
mod json_type_error;
pub mod openapi;
pub mod outer_layer;
pub mod page_writer;
pub mod query;
pub mod read;
pub mod read_size;
mod request_head;
pub mod route;
pub mod route_middleware;
mod rpc_status;
pub mod serve;
mod socket;
pub mod token_recheck;
pub mod trace_filter;
pub mod unauthenticated_connections;

use std::sync::Arc;

use api::ErrorCode;
use axum::{Router, handler::Handler, middleware};
use route::Route;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::{app::App, error::problem};

/// Returns the whole service, without the routes of the metrics if they are served on a separate address.
pub fn router(app: &Arc<App>, routes: &'static [Route]) -> Router {
    let has_metrics_address = app.config.metrics_listen.is_some();
    let counted = middleware::from_fn_with_state(Arc::clone(app), route_middleware::count_unrouted);
    let router =
        with_routes(app, routes.iter().filter(|it| !(has_metrics_address && it.is_on_metrics_address)))
            .method_not_allowed_fallback(route_middleware::method_not_allowed.layer(counted.clone()))
            .fallback(route_middleware::path_not_found.layer(counted))
            .merge(api_docs());
    with_layers(router, app, routes).with_state(Arc::clone(app))
}

/// Returns a service that serves only the metrics.
pub fn metrics_router(app: &Arc<App>, routes: &'static [Route]) -> Router {
    let router = with_routes(app, routes.iter().filter(|it| it.is_on_metrics_address));
    with_layers(router, app, routes).with_state(Arc::clone(app))
}

/// Returns the service for connections beyond the limit.
pub fn overload_router(app: &Arc<App>) -> Router {
    let refuse =
        || async { problem(ErrorCode::Overloaded, "too many connections are open; try again shortly") };
    with_layers(Router::new().fallback(refuse), app, &[]).with_state(Arc::clone(app))
}

/// Returns the viewer of the OpenAPI document at `/docs`, which works without a network.
fn api_docs() -> Router<Arc<App>> {
    SwaggerUi::new("/docs").config(Config::from("/v1/openapi.json")).into()
}

fn with_routes(app: &Arc<App>, routes: impl Iterator<Item = &'static Route>) -> Router<Arc<App>> {
    routes.fold(Router::new(), |router, route| {
        let state = route_middleware::RouteState { app: Arc::clone(app), route };
        let handler = route
            .handler
            .clone()
            .route_layer(middleware::from_fn_with_state(state, route_middleware::handle));
        router.route(&route.path, handler)
    })
}

/// Adds the layers that apply to all responses.
fn with_layers(router: Router<Arc<App>>, app: &Arc<App>, routes: &'static [Route]) -> Router<Arc<App>> {
    // Inside of the compression layer, where the size is known.
    let router =
        router.layer(middleware::from_fn_with_state(Arc::clone(app), body_memory::count_public_response));
    let router = router.layer(compression::layer());
    let router = match cors::layer(&app.config.cors_origins) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    // Outermost, so that every response has a body and a request ID.
    router.layer(middleware::from_fn_with_state((Arc::clone(app), routes), outer_layer::handle))
}
