//! Checks that the errors of a route are declared.
//!
//! Every request of every suite passes here. An error that the route does not declare, and that the OpenAPI
//! document therefore lacks, fails the test that received it.

#![allow(clippy::panic, reason = "an undeclared error fails the test")]

use api::ErrorCode;
use reqwest::Method;
use server::{features, http::route::Route};

/// Panics unless the route of `method` and `path` declares the error code.
pub fn check(method: &Method, path: &str, status: u16, code: Option<&str>) {
    let Some(code) = code else { panic!("{method} {path}: {status} without a code") };
    let Some(code) = ErrorCode::of(code) else { panic!("{method} {path}: unknown code {code}") };
    assert_eq!(code.status(), status, "{method} {path}: {}", code.as_str());
    let declared = match route(method, path) {
        Some(route) => route.error_codes().contains(&code),
        None => {
            matches!(
                code,
                ErrorCode::InvalidRequest
                    | ErrorCode::NotFound
                    | ErrorCode::MethodNotAllowed
                    | ErrorCode::RateLimited
                    | ErrorCode::HeadersTooLarge
            )
        }
    };
    assert!(declared, "{method} {path}: {} is not declared", code.as_str());
}

/// Returns the route of a request. A literal path has precedence over one with a parameter.
pub fn route(method: &Method, path: &str) -> Option<&'static Route> {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let leads = |route: &&Route| {
        let (mut pattern, mut given) = (route.path.split('/'), path.split('/'));
        pattern.by_ref().zip(given.by_ref()).all(|(a, b)| a == b || (a.starts_with('{') && !b.is_empty()))
            && route.path.split('/').count() == path.split('/').count()
    };
    let mut found: Vec<_> =
        features::routes().iter().filter(|it| it.method == *method).filter(leads).collect();
    found.sort_by_key(|it| it.path.contains('{'));
    found.first().copied()
}
