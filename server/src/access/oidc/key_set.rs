//! The keys that a provider publishes (RFC 7517): their permitted algorithms, and signature
//! verification.

use anyhow::{Context, ensure};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey};
use moka::sync::Cache;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::access::jwt::{self, UnverifiedToken};

/// Maximum number of keys; a provider has two or three.
const MAX_KEYS: usize = 64;
/// Permitted sizes of an RSA modulus in bits: smaller keys are weak (RFC 7518, section 3.3), larger
/// ones expensive to verify.
const RSA_MODULUS_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;
/// Maximum number of tokens whose verified signature is cached.
const MAX_VERIFIED_TOKENS: u64 = 10_000;

/// The keys that a provider published at one time.
pub struct KeySet {
    keys: Vec<Key>,
    // Part of the key set, so that no result outlives a removed key.
    verified: Cache<[u8; 32], ()>,
}

/// A public key that may verify signatures.
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

/// A key in published form; certificates are ignored.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    d: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Value>,
}

impl KeySet {
    /// Parses a JWK set and skips keys that cannot verify tokens.
    ///
    /// # Errors
    ///
    /// Fails when it is not a JWK set, or has too many keys.
    pub fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        let published: Jwks = serde_json::from_slice(bytes).context("the response is not a JWK set")?;
        let count = published.keys.len();
        ensure!(count <= MAX_KEYS, "the JWK set has {count} keys; at most {MAX_KEYS} are read");
        let keys: Vec<Key> = published
            .keys
            .into_iter()
            .filter_map(|it| Key::from_jwk(&serde_json::from_value(it).ok()?))
            .collect();
        if keys.len() < count {
            tracing::debug!(published = count, usable = keys.len(), "some published keys are not used");
        }
        Ok(Self { keys, verified: Cache::new(MAX_VERIFIED_TOKENS) })
    }

    /// Returns the number of usable keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether one of the keys signed the token; `None` if the key that signed it is not in the set.
    pub async fn signed(&self, token: &UnverifiedToken<'_>) -> Option<bool> {
        let digest: [u8; 32] = Sha256::digest(token.text().as_bytes()).into();
        if self.verified.get(&digest).is_some() {
            return Some(true);
        }
        let verdict = self.verify(token);
        if verdict == Some(true) {
            self.verified.insert(digest, ());
        }
        verdict
    }

    fn verify(&self, token: &UnverifiedToken<'_>) -> Option<bool> {
        let supports_algorithm = |it: &&Key| it.algorithms.contains(&token.algorithm);
        let Some(id) = &token.key_id else {
            // Without a key ID, exactly one key must be eligible, and an unknown key may have signed
            // it.
            let mut eligible = self.keys.iter().filter(supports_algorithm);
            let key = eligible.next()?;
            if eligible.next().is_some() {
                return Some(false);
            }
            return token.is_signed_by(&key.key).then_some(true);
        };
        let mut with_id = self.keys.iter().filter(|it| it.id.as_ref() == Some(id)).peekable();
        with_id.peek()?;
        Some(with_id.filter(supports_algorithm).any(|it| token.is_signed_by(&it.key)))
    }
}

impl Key {
    /// Returns the key if it is public, intended for signatures, of a supported type and strong enough.
    fn from_jwk(jwk: &Jwk) -> Option<Self> {
        let verifies = jwk.usage.as_ref().is_none_or(|it| it == "sig")
            && jwk.key_ops.as_ref().is_none_or(|it| it.iter().any(|it| it == "verify"));
        // A published private key is compromised.
        if !verifies || jwk.d.is_some() {
            return None;
        }
        let (mut algorithms, key) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => (RSA_ALGORITHMS.to_vec(), rsa(jwk)?),
            ("EC", Some("P-256")) => (vec![Algorithm::ES256], ec(jwk, 32)?),
            ("EC", Some("P-384")) => (vec![Algorithm::ES384], ec(jwk, 48)?),
            ("OKP", Some("Ed25519")) => {
                (vec![Algorithm::EdDSA], DecodingKey::from_ed_der(&number(jwk.x.as_deref()?, 32)?))
            }
            _ => return None,
        };
        if let Some(name) = &jwk.alg {
            let only = jwt::algorithm(name)?;
            algorithms.retain(|it| *it == only);
        }
        (!algorithms.is_empty()).then(|| Self { id: jwk.kid.clone(), algorithms, key })
    }
}

/// Algorithms of an RSA key that names none.
const RSA_ALGORITHMS: [Algorithm; 6] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

fn rsa(jwk: &Jwk) -> Option<DecodingKey> {
    let (n, e) = (decoded(jwk.n.as_deref()?)?, decoded(jwk.e.as_deref()?)?);
    // Some providers prepend the zero byte of the sign.
    let n = n.strip_prefix(&[0]).unwrap_or(&n);
    let bits = n.len() * 8 - n.first()?.leading_zeros() as usize;
    RSA_MODULUS_BITS.contains(&bits).then(|| DecodingKey::from_rsa_raw_components(n, &e))
}

fn ec(jwk: &Jwk, bytes: usize) -> Option<DecodingKey> {
    let (x, y) = (number(jwk.x.as_deref()?, bytes)?, number(jwk.y.as_deref()?, bytes)?);
    // An uncompressed point (SEC 1, section 2.3.3); verification checks that it is on the curve.
    Some(DecodingKey::from_ec_der(&[&[4][..], &x, &y].concat()))
}

/// Decodes a number of exactly this many bytes.
fn number(text: &str, bytes: usize) -> Option<Vec<u8>> {
    decoded(text).filter(|it| it.len() == bytes)
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usable_keys(jwk: Value) -> usize {
        KeySet::parse(json!({"keys": [jwk]}).to_string().as_bytes()).unwrap().len()
    }

    fn rsa_of(bytes: usize, first: u8) -> Value {
        let mut modulus = vec![0xff; bytes];
        modulus[0] = first;
        json!({"kty": "RSA", "n": BASE64_URL_SAFE_NO_PAD.encode(modulus), "e": "AQAB"})
    }

    #[test]
    fn weak_rsa_key_is_skipped() {
        for (bytes, first, expected) in [
            (128, 0xff, 0),
            (255, 0xff, 0),
            (256, 0x7f, 0),
            (256, 0x80, 1),
            (257, 0, 1),
            (1_024, 0xff, 1),
            (1_025, 1, 0),
        ] {
            assert_eq!(usable_keys(rsa_of(bytes, first)), expected, "{bytes} bytes from {first:#x}");
        }
    }

    #[test]
    fn jwk_not_intended_for_verification_is_skipped() {
        let changed = |name: &str, value: Value| {
            let mut jwk = rsa_of(256, 0xff);
            jwk[name] = value;
            usable_keys(jwk)
        };
        assert_eq!(changed("use", json!("sig")), 1);
        assert_eq!(changed("key_ops", json!(["sign", "verify"])), 1);
        assert_eq!(changed("alg", json!("PS512")), 1);
        assert_eq!(changed("use", json!("enc")), 0);
        assert_eq!(changed("key_ops", json!([])), 0);
        assert_eq!(changed("alg", json!("RSA-OAEP")), 0);
        assert_eq!(changed("alg", json!("ES256")), 0);
        assert_eq!(changed("alg", json!("HS256")), 0);
        assert_eq!(changed("kty", json!("oct")), 0);
        assert_eq!(changed("d", json!("AQAB")), 0);
        assert_eq!(changed("n", json!("AQ==")), 0);
    }

    #[test]
    fn ec_point_must_have_length_of_its_curve() {
        let point = |curve: &str, x: usize, y: usize| {
            let text = |bytes: usize| BASE64_URL_SAFE_NO_PAD.encode(vec![1; bytes]);
            usable_keys(json!({"kty": "EC", "crv": curve, "x": text(x), "y": text(y)}))
        };
        assert_eq!((point("P-256", 32, 32), point("P-384", 48, 48)), (1, 1));
        for (curve, x, y) in [
            ("P-256", 31, 32),
            ("P-256", 32, 33),
            ("P-256", 0, 64),
            ("P-384", 32, 32),
            ("P-521", 66, 66),
            ("secp256k1", 32, 32),
        ] {
            assert_eq!(point(curve, x, y), 0, "{curve} {x} {y}");
        }
    }
}
