//! Keys of every kind, and tokens that are assembled from their parts.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, crypto, jwk::Jwk};
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256, PublicKeyData,
    SignatureAlgorithm,
};
use serde_json::{Value, json};

/// A named key pair.
pub struct Signer {
    /// The key ID.
    pub id: String,
    /// The algorithm of the key.
    pub algorithm: Algorithm,
    /// The private key.
    pub key: EncodingKey,
    /// The public key as a provider publishes it: with its ID, without `alg` and `use`.
    pub jwk: Value,
    /// The public key in PEM.
    pub pem: String,
    /// The public key in DER.
    pub der: Vec<u8>,
}

impl Signer {
    /// Generates a key for RS256.
    pub fn rsa(id: &str) -> Self {
        Self::new(id, Algorithm::RS256, &PKCS_RSA_SHA256)
    }

    /// Generates a key for ES256.
    pub fn p256(id: &str) -> Self {
        Self::new(id, Algorithm::ES256, &PKCS_ECDSA_P256_SHA256)
    }

    /// Generates a key for ES384.
    pub fn p384(id: &str) -> Self {
        Self::new(id, Algorithm::ES384, &PKCS_ECDSA_P384_SHA384)
    }

    /// Generates a key for EdDSA.
    pub fn ed25519(id: &str) -> Self {
        Self::new(id, Algorithm::EdDSA, &PKCS_ED25519)
    }

    fn new(id: &str, algorithm: Algorithm, kind: &'static SignatureAlgorithm) -> Self {
        let pair = KeyPair::generate_for(kind).unwrap();
        let private = pair.serialize_pem().into_bytes();
        let key = match algorithm {
            Algorithm::RS256 => EncodingKey::from_rsa_pem(&private).unwrap(),
            Algorithm::EdDSA => EncodingKey::from_ed_der(pair.serialized_der()),
            _ => EncodingKey::from_ec_pem(&private).unwrap(),
        };
        let mut jwk = match algorithm {
            Algorithm::EdDSA => json!({"kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key_raw())}),
            _ => serde_json::to_value(Jwk::from_encoding_key(&key, algorithm).unwrap()).unwrap(),
        };
        jwk.as_object_mut().unwrap().remove("alg");
        jwk["kid"] = json!(id);
        let (pem, der) = (pair.public_key_pem(), pair.subject_public_key_info());
        Self { id: id.to_owned(), algorithm, key, jwk, pem, der }
    }

    /// Returns the header of the key's tokens.
    pub fn header(&self) -> Value {
        json!({"alg": format!("{:?}", self.algorithm), "kid": self.id})
    }

    /// Returns a token with these claims.
    pub fn token(&self, claims: &Value) -> String {
        self.sign(&self.header(), claims)
    }

    /// Returns a token with this header. It is signed with the key's algorithm, whatever the header states.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        signed(&header.to_string(), &claims.to_string(), &self.key, self.algorithm)
    }
}

/// Returns a token of these two texts.
pub fn signed(header: &str, claims: &str, key: &EncodingKey, algorithm: Algorithm) -> String {
    signed_bytes(header.as_bytes(), claims.as_bytes(), key, algorithm)
}

/// Returns a token of these bytes.
pub fn signed_bytes(header: &[u8], claims: &[u8], key: &EncodingKey, algorithm: Algorithm) -> String {
    let message = format!("{}.{}", encoded(header), encoded(claims));
    let signature = crypto::sign(message.as_bytes(), key, algorithm).unwrap();
    format!("{message}.{signature}")
}

/// Encodes in Base64url without padding.
pub fn encoded(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
