//! A `POST` of JSON, which judges and embedding providers take.

use std::time::Duration;

use outbound::{
    AddressOwner, HeaderMap, Method, OutboundRequest, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue},
};

/// The address and the limits of a request.
pub struct JsonPost {
    /// The URL.
    pub url: Url,
    /// The party that set the URL.
    pub set_by: AddressOwner,
    /// The headers that authenticate: see [`key_header`].
    pub headers: HeaderMap,
    /// Timeout of everything, from name resolution to the end of the response.
    pub timeout: Duration,
    /// Maximum number of bytes of the response that are read.
    pub max_body: usize,
}

impl JsonPost {
    /// Returns the request with this JSON body.
    pub fn with_body(self, body: Vec<u8>) -> OutboundRequest {
        let Self { url, set_by, mut headers, timeout, max_body } = self;
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json.clone());
        headers.insert(ACCEPT, json);
        OutboundRequest { method: Method::POST, url, set_by, headers, body: body.into(), timeout, max_body }
    }
}

/// Returns a header with a key, marked as sensitive so that it is never formatted; `None` if the key is
/// not a valid header value.
pub fn key_header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
