//! Everything of HTTP: the table of routes, who may call them, how requests are read and
//! answers written.

pub mod address;
pub mod auth;
pub mod cursor;
mod docs;
mod health;
mod ingest;
mod keys;
mod me;
mod models;
pub mod openapi;
mod otlp;
mod outer;
mod project_of;
mod projects;
mod query;
mod read;
pub mod routes;
pub mod serve;
mod stream;
mod trace_view;
mod traces;

use std::sync::Arc;

use axum::{Router, middleware};

use crate::app::App;

/// The whole service.
pub fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for route in routes::all() {
        let guard = auth::Guard { app: Arc::clone(app), access: route.access };
        let handler = route.handler.route_layer(middleware::from_fn_with_state(guard, auth::guard));
        router = router.route(route.path, handler);
    }
    router
        .merge(docs::swagger())
        .with_state(Arc::clone(app))
        // Outermost: whatever happens inside, the caller gets a body and a request id.
        .layer(middleware::from_fn(outer::wrap))
}
