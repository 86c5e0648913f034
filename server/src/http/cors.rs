//! CORS: which pages of other origins may call the API from a browser.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{Any, CorsLayer};

use crate::config::origins::CorsOrigins;

/// How long browsers may cache a preflight response.
const MAX_AGE: Duration = Duration::from_secs(600);

/// Returns the layer that answers preflight requests and adds headers; `None` when no origin is
/// allowed.
pub fn layer(origins: &CorsOrigins) -> Option<CorsLayer> {
    let layer = CorsLayer::new()
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::CONTENT_ENCODING,
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("last-event-id"),
            HeaderName::from_static("x-request-id"),
            HeaderName::from_static("x-project-name"),
        ])
        .expose_headers([
            HeaderName::from_static("x-request-id"),
            HeaderName::from_static("x-ratelimit-limit"),
            HeaderName::from_static("x-ratelimit-remaining"),
            HeaderName::from_static("x-ratelimit-reset"),
            header::RETRY_AFTER,
            HeaderName::from_static("idempotency-replayed"),
            HeaderName::from_static("x-error-code"),
        ])
        .max_age(MAX_AGE);
    match origins {
        CorsOrigins::None => None,
        // The response is the same for all origins, so caches need not distinguish them.
        CorsOrigins::Any => Some(layer.allow_origin(Any).vary([])),
        CorsOrigins::Listed(list) => {
            // Their parser accepts visible ASCII only, so every one of them fits into a header.
            let list: Vec<_> = list.iter().filter_map(|it| HeaderValue::from_str(it).ok()).collect();
            Some(layer.allow_origin(list).vary([header::ORIGIN]))
        }
    }
}
