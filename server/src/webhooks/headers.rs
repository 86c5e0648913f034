//! The headers of a signed request to an address of a tenant.

use outbound::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};
use uuid::Uuid;

use super::signature::{service_signature, standard_signature};

/// A message that is signed.
#[derive(Clone, Copy, Debug)]
pub struct SignedMessage<'a> {
    /// The message's ID, the same on every attempt.
    pub id: Uuid,
    /// What happened.
    pub event: &'a str,
    /// The delivery's ID.
    pub delivery: Uuid,
    /// The bytes of the request body.
    pub body: &'a [u8],
}

/// Returns the headers of a request with a message that is sent at `now` (microseconds). During the rotation of a
/// secret, the previous one signs, too.
pub fn signed_headers(
    secret: &str,
    previous_secret: Option<&str>,
    message: &SignedMessage<'_>,
    now: i64,
) -> HeaderMap {
    let (id, timestamp) = (message.id.to_string(), now.div_euclid(1_000_000).to_string());
    let secrets = std::iter::once(secret).chain(previous_secret);
    let standard: Vec<String> =
        secrets.map(|it| standard_signature(it, &id, &timestamp, message.body)).collect();
    let mut headers = HeaderMap::new();
    let mut insert = |name, value: &str| {
        // All values are visible ASCII.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    insert("content-type", "application/json");
    insert("x-service-signature", &service_signature(secret, message.body));
    if let Some(previous) = previous_secret {
        insert("x-service-signature-previous", &service_signature(previous, message.body));
    }
    insert("x-service-event", message.event);
    insert("x-service-delivery", &message.delivery.to_string());
    insert("x-service-timestamp", &timestamp);
    insert("webhook-id", &id);
    insert("webhook-timestamp", &timestamp);
    insert("webhook-signature", &standard.join(" "));
    headers
}
