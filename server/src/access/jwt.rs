//! Parses signed tokens (compact JWS, RFC 7515) strictly and without trusting them.
//!
//! This module splits a token and verifies a signature with a given key. The issuer decides which keys
//! and algorithms are valid ([`super::session`], [`super::oidc`]); [`super::claims`] interprets the
//! claims. The rules are those of RFC 8725: nothing in a header selects a key by itself.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde_json::Value;

use super::strict_json::{self, Object};

/// Maximum length of a token in bytes.
const MAX_TOKEN: usize = 8 * 1024;

/// A well-formed token. Nothing in it has been verified.
pub struct UnverifiedToken<'a> {
    /// The signature algorithm according to the header.
    pub algorithm: Algorithm,
    /// The ID of the signing key according to the header.
    pub key_id: Option<String>,
    /// The claims.
    pub claims: Object,
    text: &'a str,
    signed: &'a str,
    signature: &'a str,
}

impl<'a> UnverifiedToken<'a> {
    /// Parses `text`; `None` if it cannot be a valid token for any key.
    pub fn parse(text: &'a str) -> Option<Self> {
        if text.len() > MAX_TOKEN {
            return None;
        }
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header = decode_part(header)?;
        // Critical extensions, encryption and compression are not supported.
        if ["crit", "enc", "zip"].iter().any(|it| header.contains_key(*it)) || !is_token_type(&header) {
            return None;
        }
        let key_id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return None,
        };
        let algorithm = algorithm(header.get("alg")?.as_str()?)?;
        Some(Self { algorithm, key_id, claims: decode_part(claims)?, text, signed, signature })
    }

    /// Returns whether `key` made the signature with the header's algorithm. The caller must ensure that the
    /// key is intended for that algorithm.
    pub fn is_signed_by(&self, key: &DecodingKey) -> bool {
        crypto::verify(self.signature, self.signed.as_bytes(), key, self.algorithm).unwrap_or(false)
    }

    /// Returns the whole token.
    pub fn text(&self) -> &str {
        self.text
    }
}

/// Returns an algorithm by its registered name (RFC 7518, RFC 8037, RFC 9864), except `none`.
pub fn algorithm(name: &str) -> Option<Algorithm> {
    Some(match name {
        "HS256" => Algorithm::HS256,
        "HS384" => Algorithm::HS384,
        "HS512" => Algorithm::HS512,
        "RS256" => Algorithm::RS256,
        "RS384" => Algorithm::RS384,
        "RS512" => Algorithm::RS512,
        "PS256" => Algorithm::PS256,
        "PS384" => Algorithm::PS384,
        "PS512" => Algorithm::PS512,
        "ES256" => Algorithm::ES256,
        "ES384" => Algorithm::ES384,
        "EdDSA" | "Ed25519" => Algorithm::EdDSA,
        _ => return None,
    })
}

/// Decodes a part of a token: base64url without padding, which contains a JSON object.
fn decode_part(text: &str) -> Option<Object> {
    strict_json::object(&BASE64_URL_SAFE_NO_PAD.decode(text).ok()?)
}

/// Returns whether the header names no type, or that of an access token. A token of another type (a logout, a
/// proof of possession) is rejected, whatever its signature.
fn is_token_type(header: &Object) -> bool {
    match header.get("typ") {
        None => true,
        Some(Value::String(name)) => {
            let name = name.to_ascii_lowercase();
            matches!(name.strip_prefix("application/").unwrap_or(&name), "jwt" | "at+jwt")
        }
        Some(_) => false,
    }
}
