//! An identity provider on a port of its own, that can be slow, broken or away.

#![allow(clippy::disallowed_methods, reason = "the provider runs beside the test")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing,
};
use serde_json::{Value, json};
use server::clock::Clock;
use tests::{On, TestApp};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::signer::Signer;

/// What the tokens of the tests are for.
pub const AUDIENCE: &str = "https://loupe.example";

/// How the provider answers.
#[derive(Clone, Debug)]
pub enum Mood {
    /// As it should.
    Well,
    /// With this status.
    Failing(u16),
    /// As it should, after this time.
    Slow(Duration),
    /// With this body.
    Saying(String),
}

/// A running provider.
pub struct Provider {
    /// Its issuer.
    pub issuer: String,
    state: Arc<Published>,
    serving: JoinHandle<()>,
}

struct Published {
    issuer: Mutex<Value>,
    jwks_uri: Mutex<String>,
    keys: Mutex<Vec<Value>>,
    mood: Mutex<Mood>,
    fetches: AtomicUsize,
}

impl Provider {
    /// A provider with these keys.
    pub async fn with(keys: &[&Signer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Published {
            issuer: Mutex::new(json!(issuer)),
            jwks_uri: Mutex::new(format!("{issuer}/keys")),
            keys: Mutex::default(),
            mood: Mutex::new(Mood::Well),
            fetches: AtomicUsize::new(0),
        });
        let router = Router::new()
            .route("/.well-known/openid-configuration", routing::get(discovery))
            .route("/keys", routing::get(jwks))
            .route("/moved", routing::get(async || (StatusCode::FOUND, [("location", "/keys")])))
            .with_state(Arc::clone(&state));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let provider = Self { issuer, state, serving };
        provider.publish(keys);
        provider
    }

    /// Publishes these keys from now on, and no others.
    pub fn publish(&self, keys: &[&Signer]) {
        self.publish_raw(keys.iter().map(|it| it.jwk.clone()).collect());
    }

    /// The same for keys of any shape.
    pub fn publish_raw(&self, keys: Vec<Value>) {
        *self.state.keys.lock().unwrap() = keys;
    }

    /// Answers in this way from now on.
    pub fn is(&self, mood: Mood) {
        *self.state.mood.lock().unwrap() = mood;
    }

    /// Says in its discovery document that it is this issuer, and that its keys are there.
    pub fn claims_to_be(&self, issuer: Value, jwks_uri: &str) {
        *self.state.issuer.lock().unwrap() = issuer;
        jwks_uri.clone_into(&mut self.state.jwks_uri.lock().unwrap());
    }

    /// How often its keys, or what leads to them, were asked for in vain or with success.
    pub fn fetches(&self) -> usize {
        self.state.fetches.load(Ordering::SeqCst)
    }

    /// A server that trusts it, on SQLite, with these flags too.
    pub async fn app(&self, flags: &[&str]) -> TestApp {
        self.app_on(On::Sqlite, flags).await
    }

    /// A server that trusts it.
    pub async fn app_on(&self, database: On, flags: &[&str]) -> TestApp {
        let trust = ["--oidc-issuer", &self.issuer, "--oidc-audience", AUDIENCE];
        TestApp::with(database, api::Plan::Enterprise, &[&trust, flags].concat()).await
    }

    /// Claims of an owner that are good for an hour.
    pub fn claims(&self, app: &TestApp) -> Value {
        let now = app.clock.now() / 1_000_000;
        json!({
            "iss": self.issuer, "aud": AUDIENCE, "sub": "auth0|ada", "tenant_id": app.tenant, "role": "owner",
            "iat": now, "exp": now + 3_600,
        })
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn discovery(State(state): State<Arc<Published>>) -> Response {
    // Fetched before the keys each time; counted as one fetch with them unless it goes no further.
    let document =
        json!({"issuer": *state.issuer.lock().unwrap(), "jwks_uri": *state.jwks_uri.lock().unwrap()});
    let mood = state.mood.lock().unwrap().clone();
    match mood {
        Mood::Failing(_) => answer(&state, String::new()).await,
        _ => document.to_string().into_response(),
    }
}

async fn jwks(State(state): State<Arc<Published>>) -> Response {
    let keys = json!({"keys": *state.keys.lock().unwrap()}).to_string();
    answer(&state, keys).await
}

async fn answer(state: &Published, good: String) -> Response {
    state.fetches.fetch_add(1, Ordering::SeqCst);
    let mood = state.mood.lock().unwrap().clone();
    match mood {
        Mood::Well => good.into_response(),
        Mood::Failing(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Mood::Slow(time) => {
            tokio::time::sleep(time).await;
            good.into_response()
        }
        Mood::Saying(body) => body.into_response(),
    }
}
