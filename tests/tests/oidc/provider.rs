//! An identity provider on its own port, which can be slow, broken or unavailable.

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
use tests::{On, TestApp, loopback::LoopbackServer};
use tokio::sync::Notify;

use crate::signer::Signer;

/// The audience of the tests' tokens.
pub const TOKEN_AUDIENCE: &str = "https://loupe.example";

/// The behaviour of the provider.
#[derive(Clone, Debug, Default)]
pub enum Behaviour {
    /// Responds correctly.
    #[default]
    Succeeds,
    /// Responds with this status.
    Fails(u16),
    /// Responds correctly after this delay.
    Delays(Duration),
    /// Responds correctly once the test releases the response.
    Waits(Arc<Notify>),
    /// Responds with this body.
    RespondsWith(String),
}

/// A running provider.
pub struct Provider {
    /// The issuer.
    pub issuer: String,
    state: Arc<ProviderState>,
    _server: LoopbackServer,
}

#[derive(Default)]
struct ProviderState {
    issuer: Mutex<Value>,
    jwks_uri: Mutex<String>,
    keys: Mutex<Vec<Value>>,
    behaviour: Mutex<Behaviour>,
    fetches: AtomicUsize,
    open_fetches: AtomicUsize,
}

/// A fetch without a response yet; counts itself among the open ones.
struct OpenFetch<'a>(&'a AtomicUsize);

impl<'a> OpenFetch<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for OpenFetch<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Provider {
    /// Starts a provider with these keys.
    pub async fn with(keys: &[&Signer]) -> Self {
        let state = Arc::<ProviderState>::default();
        let router = Router::new()
            .route("/.well-known/openid-configuration", routing::get(discovery))
            .route("/keys", routing::get(jwks))
            .route("/moved", routing::get(async || (StatusCode::FOUND, [("location", "/keys")])))
            .with_state(Arc::clone(&state));
        let server = LoopbackServer::start(router).await;
        let provider = Self { issuer: server.url(), state, _server: server };
        provider.set_discovery_document(json!(provider.issuer), &format!("{}/keys", provider.issuer));
        provider.publish(keys);
        provider
    }

    /// Replaces the published keys.
    pub fn publish(&self, keys: &[&Signer]) {
        self.publish_raw(keys.iter().map(|it| it.jwk.clone()).collect());
    }

    /// Replaces the published keys by these, which may have any shape.
    pub fn publish_raw(&self, keys: Vec<Value>) {
        *self.state.keys.lock().unwrap() = keys;
    }

    /// Changes how the provider behaves from now on.
    pub fn set_behaviour(&self, behaviour: Behaviour) {
        *self.state.behaviour.lock().unwrap() = behaviour;
    }

    /// Sets the issuer and the address of the keys in the discovery document.
    pub fn set_discovery_document(&self, issuer: Value, jwks_uri: &str) {
        *self.state.issuer.lock().unwrap() = issuer;
        jwks_uri.clone_into(&mut self.state.jwks_uri.lock().unwrap());
    }

    /// Returns the number of requests for the keys or the discovery document, successful or not.
    pub fn fetches(&self) -> usize {
        self.state.fetches.load(Ordering::SeqCst)
    }

    /// Returns the number of fetches that the provider has not answered and the server has not given up.
    pub fn open_fetches(&self) -> usize {
        self.state.open_fetches.load(Ordering::SeqCst)
    }

    /// Starts a server on SQLite that trusts the provider, with these flags.
    pub async fn app(&self, flags: &[&str]) -> TestApp {
        self.app_on(On::Sqlite, flags).await
    }

    /// Starts a server that trusts the provider, with these flags.
    pub async fn app_on(&self, database: On, flags: &[&str]) -> TestApp {
        let trust = ["--oidc-issuer", &self.issuer, "--oidc-audience", TOKEN_AUDIENCE];
        TestApp::with(database, api::Plan::Enterprise, &[&trust, flags].concat()).await
    }

    /// Returns claims of an owner that are valid for an hour.
    pub fn claims(&self, app: &TestApp) -> Value {
        let now = app.clock.now() / 1_000_000;
        json!({
            "iss": self.issuer, "aud": TOKEN_AUDIENCE, "sub": "auth0|ada", "tenant_id": app.tenant, "role": "owner",
            "iat": now, "exp": now + 3_600,
        })
    }
}

async fn discovery(State(state): State<Arc<ProviderState>>) -> Response {
    // Requested before the keys each time; both count as one fetch unless only the document is requested.
    let document =
        json!({"issuer": *state.issuer.lock().unwrap(), "jwks_uri": *state.jwks_uri.lock().unwrap()});
    let behaviour = state.behaviour.lock().unwrap().clone();
    match behaviour {
        Behaviour::Fails(_) => respond(&state, String::new()).await,
        _ => document.to_string().into_response(),
    }
}

async fn jwks(State(state): State<Arc<ProviderState>>) -> Response {
    let keys = json!({"keys": *state.keys.lock().unwrap()}).to_string();
    respond(&state, keys).await
}

async fn respond(state: &ProviderState, good: String) -> Response {
    let _open = OpenFetch::new(&state.open_fetches);
    state.fetches.fetch_add(1, Ordering::SeqCst);
    let behaviour = state.behaviour.lock().unwrap().clone();
    match behaviour {
        Behaviour::Succeeds => good.into_response(),
        Behaviour::Fails(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Behaviour::Delays(time) => {
            tokio::time::sleep(time).await;
            good.into_response()
        }
        Behaviour::Waits(released) => {
            released.notified().await;
            good.into_response()
        }
        Behaviour::RespondsWith(body) => body.into_response(),
    }
}
