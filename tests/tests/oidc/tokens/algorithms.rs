//! Signatures and algorithms.

use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Value, json};
use server::access::master_key::MasterKey;

use super::TokenCases;
use crate::signer::{Signer, encoded, signed};

pub fn add_cases(cases: &mut TokenCases) {
    add_every_kind_of_key(cases);
    add_unsigned_tokens(cases);
    add_public_keys_as_secrets(cases);
    add_other_algorithms(cases);
    add_other_keys(cases);
    add_degenerate_signatures(cases);
}

fn add_every_kind_of_key(cases: &mut TokenCases) {
    let (good, keys) = (cases.good.clone(), &cases.keys);
    let mut tokens = vec![
        ("RS256".to_owned(), keys.rsa.token(&good)),
        ("ES256".to_owned(), keys.p256.token(&good)),
        ("ES384".to_owned(), keys.p384.token(&good)),
        ("EdDSA".to_owned(), keys.ed25519.token(&good)),
        ("Ed25519".to_owned(), keys.ed25519.sign(&json!({"alg": "Ed25519", "kid": "ed25519"}), &good)),
    ];
    for algorithm in [
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
        Algorithm::PS256,
        Algorithm::PS384,
        Algorithm::PS512,
    ] {
        let header = json!({"alg": format!("{algorithm:?}"), "kid": "free"}).to_string();
        tokens.push((
            format!("{algorithm:?} of a key for all"),
            signed(&header, &good.to_string(), &keys.free.key, algorithm),
        ));
    }
    for (name, token) in tokens {
        cases.accept(name, &token);
    }
}

fn add_unsigned_tokens(cases: &mut TokenCases) {
    let claims = encoded(cases.good.to_string().as_bytes());
    let signature = cases.token(&cases.good).rsplit_once('.').unwrap().1.to_owned();
    for name in ["none", "None", "NONE", "nOnE", "", "null", "plain"] {
        for kid in [None, Some("rsa")] {
            let header = match kid {
                Some(kid) => json!({"alg": name, "kid": kid}),
                None => json!({"alg": name}),
            };
            let header = encoded(header.to_string().as_bytes());
            cases.reject(format!("`{name}`, kid {kid:?}, unsigned"), &format!("{header}.{claims}."));
            cases.reject(format!("`{name}`, kid {kid:?}, signed"), &format!("{header}.{claims}.{signature}"));
        }
    }
}

/// A known attack: a public key is used as the secret of an HMAC.
fn add_public_keys_as_secrets(cases: &mut TokenCases) {
    let (good, rsa) = (cases.good.clone(), &cases.keys.rsa);
    let modulus = rsa.jwk["n"].as_str().unwrap();
    let secrets: Vec<(&str, Vec<u8>)> = vec![
        ("PEM", rsa.pem.clone().into_bytes()),
        ("PEM without its last line break", rsa.pem.trim_end().as_bytes().to_vec()),
        ("PEM with CRLF", rsa.pem.replace('\n', "\r\n").into_bytes()),
        ("DER", rsa.der.clone()),
        ("the modulus as text", modulus.as_bytes().to_vec()),
        ("the JWK", rsa.jwk.to_string().into_bytes()),
        ("the key's id", b"rsa".to_vec()),
        ("a published secret", vec![7; 32]),
    ];
    let mut tokens = Vec::new();
    for (name, secret) in secrets {
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            for kid in ["rsa", "secret"] {
                let header = json!({"alg": format!("{algorithm:?}"), "kid": kid}).to_string();
                let key = EncodingKey::from_secret(&secret);
                let token = signed(&header, &good.to_string(), &key, algorithm);
                tokens.push((format!("{algorithm:?} with {name}, kid {kid}"), token));
            }
        }
    }
    // The secret of the local issuer, which is disabled here.
    let master = MasterKey::parse("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").unwrap();
    let local = EncodingKey::from_secret(&master.derive("session"));
    let token = signed(r#"{"typ":"JWT","alg":"HS256"}"#, &good.to_string(), &local, Algorithm::HS256);
    tokens.push(("the local issuer's".to_owned(), token));
    for (name, token) in tokens {
        cases.reject(name, &token);
    }
}

/// The right key with an algorithm that differs from its signature or that the key is not for.
fn add_other_algorithms(cases: &mut TokenCases) {
    let good = cases.good.clone();
    let names = [
        json!("RS384"),
        json!("RS512"),
        json!("PS256"),
        json!("ES256"),
        json!("ES384"),
        json!("EdDSA"),
        json!("HS256"),
        json!("rs256"),
        json!(" RS256"),
        json!("RS256 "),
        json!("RSA256"),
        json!("RS1"),
        json!("RS256\0"),
        json!("ES256K"),
        json!("ES512"),
        json!("Ed448"),
        json!("RSA-OAEP"),
        json!("dir"),
        json!("A256GCM"),
        json!("SHA256withRSA"),
        json!(null),
        json!(256),
        json!(true),
        json!(["RS256"]),
        json!({"name": "RS256"}),
    ];
    for name in names {
        let token = cases.token_with_header(&json!({"alg": name, "kid": "rsa"}));
        cases.reject(format!("alg {name}"), &token);
    }
    let token = cases.token_with_header(&json!({"kid": "rsa"}));
    cases.reject("no alg", &token);
    let mut tokens = Vec::new();
    for algorithm in
        [Algorithm::RS384, Algorithm::RS512, Algorithm::PS256, Algorithm::PS384, Algorithm::PS512]
    {
        let header = json!({"alg": format!("{algorithm:?}"), "kid": "rsa"}).to_string();
        let token = signed(&header, &good.to_string(), &cases.keys.rsa.key, algorithm);
        tokens.push((format!("{algorithm:?} of a key for RS256"), token));
    }
    for (signer, kid) in
        [(&cases.keys.p256, "p384"), (&cases.keys.p256, "rsa"), (&cases.keys.ed25519, "p256")]
    {
        let header = json!({"alg": format!("{:?}", signer.algorithm), "kid": kid});
        tokens.push((format!("{:?} under the kid {kid}", signer.algorithm), signer.sign(&header, &good)));
    }
    for (name, token) in tokens {
        cases.reject(name, &token);
    }
}

fn add_other_keys(cases: &mut TokenCases) {
    let (good, keys) = (cases.good.clone(), &cases.keys);
    let unknown = Signer::p256("unknown");
    let with_kid = |signer: &Signer, kid: Value| {
        signer.sign(&json!({"alg": format!("{:?}", signer.algorithm), "kid": kid}), &good)
    };
    let tokens = [
        ("a foreign key under a known name", keys.forged.token(&good)),
        ("a foreign key", unknown.token(&good)),
        ("a foreign key under a known name of its kind", with_kid(&unknown, json!("p256"))),
        ("a key for encryption", keys.encryption.token(&good)),
        ("a key for deriving", keys.derivation.token(&good)),
        ("a key whose private half is published", keys.leaked.token(&good)),
        ("a key without an exponent", with_kid(&keys.rsa, json!("halved"))),
        ("another of the provider's keys", with_kid(&keys.free, json!("rsa"))),
    ];
    for (name, token) in tokens {
        cases.reject(name, &token);
    }
}

/// Signatures that faulty implementations accepted.
fn add_degenerate_signatures(cases: &mut TokenCases) {
    let good = encoded(cases.good.to_string().as_bytes());
    for (kid, algorithm, bytes) in [
        ("rsa", "RS256", 256),
        ("free", "PS256", 256),
        ("p256", "ES256", 64),
        ("p384", "ES384", 96),
        ("ed25519", "EdDSA", 64),
    ] {
        let header = encoded(json!({"alg": algorithm, "kid": kid}).to_string().as_bytes());
        for byte in [0_u8, 1, 0xff] {
            let signature = encoded(&vec![byte; bytes]);
            cases.reject(
                format!("{algorithm}, a signature of {byte}"),
                &format!("{header}.{good}.{signature}"),
            );
        }
        cases.reject(format!("{algorithm}, no signature"), &format!("{header}.{good}."));
    }
}
