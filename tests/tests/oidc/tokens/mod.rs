//! Generated tokens, each with the expected result, sent to `GET /v1/me`.

mod algorithms;
mod claims;
mod encodings;
mod headers;

use api::Plan;
use reqwest::{Method, header::HeaderValue};
use serde_json::{Value, json};
use server::{clock::Clock, first_start};
use tests::{Caller, On, TestApp};

use crate::{provider::Provider, signer::Signer};

/// The expected result for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// A session of the tenant with this role.
    Accepted(&'static str),
    /// 401.
    Rejected,
    /// 403: valid, but of an unknown tenant.
    UnknownTenant,
}

/// A token with the expected result.
struct TokenCase {
    name: String,
    authorization: Vec<u8>,
    verdict: Verdict,
}

/// The tokens so far, and the material from which they are made.
pub struct TokenCases {
    cases: Vec<TokenCase>,
    /// Valid claims.
    good: Value,
    keys: Keys,
}

/// The keys of the provider, and one key that is not the provider's.
struct Keys {
    /// An RSA key for RS256 only.
    rsa: Signer,
    /// An RSA key for any algorithm of RSA keys.
    free: Signer,
    p256: Signer,
    p384: Signer,
    ed25519: Signer,
    /// A key for encryption, which must not verify signatures.
    encryption: Signer,
    /// A key for deriving keys, which must not verify signatures.
    derivation: Signer,
    /// A key that is published with its private part.
    leaked: Signer,
    /// A key that is not the provider's, but has the ID of one of its keys.
    forged: Signer,
}

impl Keys {
    fn new() -> Self {
        Self {
            rsa: Signer::rsa("rsa"),
            free: Signer::rsa("free"),
            p256: Signer::p256("p256"),
            p384: Signer::p384("p384"),
            ed25519: Signer::ed25519("ed25519"),
            encryption: Signer::p256("encryption"),
            derivation: Signer::p256("derivation"),
            leaked: Signer::p256("leaked"),
            forged: Signer::rsa("rsa"),
        }
    }

    /// Returns the published keys.
    fn published(&self) -> Vec<Value> {
        let with = |key: &Signer, more: Value| {
            let mut jwk = key.jwk.clone();
            jwk.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            jwk
        };
        vec![
            with(&self.rsa, json!({"alg": "RS256", "use": "sig"})),
            self.free.jwk.clone(),
            with(&self.p256, json!({"alg": "ES256", "key_ops": ["verify"]})),
            self.p384.jwk.clone(),
            with(&self.ed25519, json!({"x5c": ["MIIB"], "x5t": "x"})),
            with(&self.encryption, json!({"use": "enc"})),
            with(&self.derivation, json!({"key_ops": ["deriveBits"]})),
            with(&self.leaked, json!({"d": "AAAA"})),
            // A published secret, which everyone knows.
            json!({"kty": "oct", "kid": "secret", "alg": "HS256", "k": crate::signer::encoded(&[7; 32])}),
            json!({"kty": "RSA", "kid": "halved", "n": "AQAB"}),
            json!({"kid": 5}),
            json!("no key"),
        ]
    }
}

impl TokenCases {
    fn add(&mut self, name: impl Into<String>, authorization: Vec<u8>, verdict: Verdict) {
        self.cases.push(TokenCase { name: name.into(), authorization, verdict });
    }

    /// Adds a token that the server must accept.
    fn accept(&mut self, name: impl Into<String>, token: &str) {
        self.add(name, format!("Bearer {token}").into_bytes(), Verdict::Accepted("owner"));
    }

    /// Adds a token that the server must reject.
    fn reject(&mut self, name: impl Into<String>, token: &str) {
        self.add(name, format!("Bearer {token}").into_bytes(), Verdict::Rejected);
    }

    /// Returns the valid claims with one claim added or replaced.
    fn with(&self, claim: &str, value: Value) -> Value {
        let mut claims = self.good.clone();
        claims[claim] = value;
        claims
    }

    /// Returns the valid claims without one.
    fn without(&self, claim: &str) -> Value {
        let mut claims = self.good.clone();
        claims.as_object_mut().unwrap().remove(claim).unwrap();
        claims
    }

    /// Returns a token of the provider with these claims.
    fn token(&self, claims: &Value) -> String {
        self.keys.rsa.token(claims)
    }

    /// Returns a token of the provider with the valid claims and this header.
    fn token_with_header(&self, header: &Value) -> String {
        self.keys.rsa.sign(header, &self.good)
    }
}

async fn every_token_case_has_its_verdict(database: On) {
    let keys = Keys::new();
    let provider = Provider::with(&[]).await;
    provider.publish_raw(keys.published());
    // The tokens are rejected within one minute of the stopped clock, so the limit must be high.
    let app = provider.app_on(database, &["--unauthenticated-per-minute", "10000"]).await;
    let good = provider.claims(&app);
    let mut cases = TokenCases { cases: Vec::new(), good, keys };
    algorithms::add_cases(&mut cases);
    headers::add_cases(&mut cases);
    encodings::add_cases(&mut cases);
    claims::add_cases(&mut cases);
    let number = cases.cases.len();
    assert!(number >= 190, "{number} cases");

    let (anyone, mut wrong) = (app.anonymous(), Vec::new());
    for case in &cases.cases {
        let found = verdict(&app, &anyone, case).await;
        if found != Ok(case.verdict) {
            wrong.push(format!("{}: {found:?}, not {:?}", case.name, case.verdict));
        }
    }
    assert!(wrong.is_empty(), "{} of {number}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(provider.fetches(), 1, "an invalid token caused a fetch of the keys");

    check_tenant_claims(&app, &cases).await;
    app.stop().await;
}

/// Checks that only the claim of the tenant selects the tenant. The claim is an id of Loupe or an external id, and
/// is compared exactly.
async fn check_tenant_claims(app: &TestApp, cases: &TokenCases) {
    let ids = ["org_AbC", "0198f7c0-0000-7000-8000-00000000acfe", "acme / caf\u{e9}"];
    let mut tenants = Vec::new();
    for id in ids {
        let txn = app.app.db.begin().await.unwrap();
        let (plan, now) = (Plan::Pro, app.clock.now());
        let made = first_start::create_tenant(&txn, id, plan, Some(id.to_owned()), None, now).await.unwrap();
        txn.commit().await.unwrap();
        tenants.push(made.tenant_id.to_string());
    }
    let me = async |claim: &str| {
        let token = cases.token(&cases.with("tenant_id", json!(claim)));
        app.bearer(&token).get("/v1/me").await
    };
    for (id, tenant) in ids.iter().zip(&tenants) {
        for claim in [id, &tenant.as_str()] {
            let found = me(claim).await.ok();
            assert_eq!(
                (&found["tenant"]["id"], &found["tenant"]["external_id"]),
                (&json!(tenant), &json!(id))
            );
        }
    }
    for claim in ["org_abc", "ORG_ABC", "org_AbC ", " org_AbC", "org_AbC%", "org_Ab_", "acme / cafe\u{301}"] {
        me(claim).await.is(403, "unknown_tenant");
    }
}

/// Sends a token. Returns the result, or an unexpected response.
async fn verdict(app: &TestApp, anyone: &Caller, case: &TokenCase) -> Result<Verdict, String> {
    let header = HeaderValue::from_bytes(&case.authorization).unwrap();
    let reply = anyone.send(anyone.request(Method::GET, "/v1/me").header("authorization", header)).await;
    match (reply.status, reply.code().as_deref()) {
        (200, None) => {
            let me = reply.json();
            let role = ["owner", "member", "viewer"].into_iter().find(|it| me["role"] == *it);
            let ours = me["tenant"]["id"] == app.tenant.to_string() && me["api_key"].is_null();
            role.filter(|_| ours).map(Verdict::Accepted).ok_or_else(|| me.to_string())
        }
        (401, Some("unauthorized")) if reply.headers["www-authenticate"] == "Bearer" => Ok(Verdict::Rejected),
        (403, Some("unknown_tenant")) => Ok(Verdict::UnknownTenant),
        (status, _) => Err(format!("{status} {}", reply.text())),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_token_case_has_its_verdict_on_sqlite() {
    every_token_case_has_its_verdict(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_token_case_has_its_verdict_on_postgres() {
    every_token_case_has_its_verdict(On::Postgres).await;
}
