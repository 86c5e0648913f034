//! Keys of every kind, and tokens put together by hand from what their parts say.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, crypto, jwk::Jwk};
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256, PublicKeyData,
    SignatureAlgorithm,
};
use serde_json::{Value, json};

/// A key pair under a name.
pub struct Signer {
    /// Its name.
    pub id: String,
    /// What it signs with.
    pub algorithm: Algorithm,
    /// The private half.
    pub key: EncodingKey,
    /// The public half, as a provider publishes it: with its name, and neither `alg` nor `use`.
    pub jwk: Value,
    /// The public half in PEM.
    pub pem: String,
    /// The public half in DER.
    pub der: Vec<u8>,
}

impl Signer {
    /// A new key for RS256.
    pub fn rsa(id: &str) -> Self {
        Self::new(id, Algorithm::RS256, &PKCS_RSA_SHA256)
    }

    /// A new key for ES256.
    pub fn p256(id: &str) -> Self {
        Self::new(id, Algorithm::ES256, &PKCS_ECDSA_P256_SHA256)
    }

    /// A new key for ES384.
    pub fn p384(id: &str) -> Self {
        Self::new(id, Algorithm::ES384, &PKCS_ECDSA_P384_SHA384)
    }

    /// A new key for EdDSA.
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

    /// The header of its tokens.
    pub fn header(&self) -> Value {
        json!({"alg": format!("{:?}", self.algorithm), "kid": self.id})
    }

    /// A token with these claims.
    pub fn token(&self, claims: &Value) -> String {
        self.sign(&self.header(), claims)
    }

    /// A token with this header, signed by what is the key's algorithm whatever the header says.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        signed(&header.to_string(), &claims.to_string(), &self.key, self.algorithm)
    }
}

/// A token of these two texts.
pub fn signed(header: &str, claims: &str, key: &EncodingKey, algorithm: Algorithm) -> String {
    signed_bytes(header.as_bytes(), claims.as_bytes(), key, algorithm)
}

/// A token of these bytes.
pub fn signed_bytes(header: &[u8], claims: &[u8], key: &EncodingKey, algorithm: Algorithm) -> String {
    let message = format!("{}.{}", encoded(header), encoded(claims));
    let signature = crypto::sign(message.as_bytes(), key, algorithm).unwrap();
    format!("{message}.{signature}")
}

/// Base64url without padding.
pub fn encoded(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
