//! Checks the head of a request: its size, its `Host`, and the error body for heads that are not valid
//! HTTP.

use api::{ErrorBody, ErrorCode};
use axum::{
    extract::Request,
    http::{StatusCode, Version, header, uri::Authority},
};
use store::new_id;

use crate::error::{Problem, Result, problem};

/// Maximum size in bytes of a request head: the request line and all headers.
pub const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Maximum size in bytes of the response that hyper sends for an invalid head: the status line and
/// three headers.
const MAX_BARE_RESPONSE_BYTES: usize = 256;

/// Checks the `Host` header according to RFC 9112, section 3.2: HTTP/1.1 requires exactly one, and the
/// value must be a host with an optional port.
///
/// # Errors
///
/// Fails with `invalid_request`.
pub fn check_host(request: &Request) -> Result<()> {
    let invalid = |message| Err(problem(ErrorCode::InvalidRequest, message));
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if request.version() >= Version::HTTP_11 => {
            invalid("the request has no `Host` header; HTTP/1.1 requires one")
        }
        (Some(_), Some(_)) => invalid("the request has more than one `Host` header"),
        (Some(host), None) if !is_host(host.as_bytes()) => {
            invalid("the `Host` header must be a host name or an address, with an optional port")
        }
        _ => Ok(()),
    }
}

/// Returns whether the value is `host[:port]`. The grammar allows an empty one.
fn is_host(value: &[u8]) -> bool {
    if value.is_empty() {
        return true;
    }
    let Ok(authority) = Authority::try_from(value) else { return false };
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    let port = port.strip_prefix(':').unwrap_or(port);
    !authority.as_str().contains('@')
        && !authority.host().is_empty()
        && port.bytes().all(|it| it.is_ascii_digit())
}

/// Returns the complete response that replaces hyper's own for a head that it could not parse: the same
/// status, with an error body and a request id. Returns none if `written` is any other response.
pub fn replace_bare_response(written: &[u8]) -> Option<Vec<u8>> {
    if written.len() > MAX_BARE_RESPONSE_BYTES || !written.starts_with(b"HTTP/1.1 4") {
        return None;
    }
    let text = std::str::from_utf8(written).ok()?.strip_suffix("\r\n\r\n")?;
    let mut lines = text.split("\r\n");
    let status: u16 = lines.next()?.get(9..12)?.parse().ok()?;
    let (mut closes, mut is_empty) = (false, false);
    for line in lines {
        match line {
            "connection: close" => closes = true,
            "content-length: 0" => is_empty = true,
            line if line.starts_with("date: ") => {}
            // Responses of this service have at least a request ID.
            _ => return None,
        }
    }
    (closes && is_empty).then(|| response(status))
}

fn response(status: u16) -> Vec<u8> {
    let problem = match status {
        431 | 414 => Problem::new(
            ErrorCode::HeadersTooLarge,
            format!(
                "the request line and headers have more than {} KiB, or more than 100 headers",
                MAX_HEAD_BYTES / 1024
            ),
        ),
        _ => Problem::new(ErrorCode::InvalidRequest, "the request is not valid HTTP/1.1"),
    };
    let (id, status) = (new_id().to_string(), problem.code.status());
    let body: ErrorBody = problem.body(&id);
    // Serializing a text never fails.
    let body = serde_json::to_string(&body).unwrap_or_default();
    let reason = StatusCode::from_u16(status).ok().and_then(|it| it.canonical_reason()).unwrap_or_default();
    format!(
        "HTTP/1.1 {status} {reason}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         x-request-id: {id}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_header_is_name_or_address_with_optional_port() {
        for good in ["", "x", "x.example", "x:80", "127.0.0.1:4600", "[::1]", "[::1]:80", "x:", "xn--a"] {
            assert!(is_host(good.as_bytes()), "{good}");
        }
        for bad in
            ["a b", "a/b", "user@x", "x:port", "x:1:2", "[::1", ":80", "http://x", "a\u{e9}b", "x?y", "a\\b"]
        {
            assert!(!is_host(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn bare_response_is_replaced_only_if_sent_by_hyper() {
        let bare = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\
                    date: Sun, 22 Nov 2026 16:00:00 GMT\r\n\r\n";
        let replaced = String::from_utf8(replace_bare_response(bare.as_bytes()).unwrap()).unwrap();
        assert!(replaced.starts_with("HTTP/1.1 431 ") && replaced.contains("\"code\":\"headers_too_large\""));
        for other in [
            bare.replace(" 431 ", " 200 "),
            bare.replace("content-length: 0", "content-length: 0\r\nx-request-id: 1"),
            bare.replace("connection: close\r\n", ""),
            format!("{bare}x"),
        ] {
            assert_eq!(replace_bare_response(other.as_bytes()), None, "{other}");
        }
    }
}
