//! An independent computation of the signatures, with another library than the server's.

use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use jsonwebtoken::{Algorithm, EncodingKey, crypto};

use crate::receiver::Received;

/// Returns the HMAC-SHA256 of a message.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let text = crypto::sign(message, &EncodingKey::from_secret(key), Algorithm::HS256).unwrap();
    BASE64_URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// Returns the expected value of `X-Service-Signature`.
pub fn service(request: &Received, secret: &str) -> String {
    let hex: String = hmac(secret.as_bytes(), &request.body).iter().map(|it| format!("{it:02x}")).collect();
    format!("sha256={hex}")
}

/// Returns the expected signature in `webhook-signature` for a key.
pub fn standard(request: &Received, key: &[u8]) -> String {
    let (id, timestamp) = (&request.headers["webhook-id"], &request.headers["webhook-timestamp"]);
    let message = [format!("{id}.{timestamp}.").as_bytes(), &request.body].concat();
    format!("v1,{}", BASE64_STANDARD.encode(hmac(key, &message)))
}

/// Panics unless both signatures of a request are valid.
#[track_caller]
pub fn verify(request: &Received, secret: &str) {
    assert_eq!(request.headers["x-service-signature"], service(request, secret));
    assert_eq!(request.headers["webhook-signature"], standard(request, secret.as_bytes()));
}
