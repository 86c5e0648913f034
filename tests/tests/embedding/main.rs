//! Embedding in the background: the choice of provider and key, and the effect of failing providers on ingest
//! and jobs.
//!
//! Providers are real servers on the loopback address, which the configuration allows as an operator would.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "providers run beside the test")]

mod background;
mod failures;
mod first_start;
mod provider;
mod provider_selection;
mod queries;
mod server_metrics;

use api::{Plan, Role};
use entities::{job, span_vector};
use provider::Provider;
use sea_orm::{EntityTrait, QueryOrder};
use serde_json::{Value, json};
use tests::{On, Reply, TestApp};

/// Runs each test on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $name:ident($on:ident: On) $body:block)+) => {
        $(
            $(#[$meta])*
            mod $name {
                #[allow(unused_imports, reason = "a test uses only some of the imports of its file")]
                use super::*;

                async fn test($on: On) $body

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn sqlite() {
                    test(On::Sqlite).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn postgres() {
                    test(On::Postgres).await;
                }
            }
        )+
    };
}
pub(crate) use on_both;

/// The tenant's key, which only its provider may receive.
const TENANT_KEY: &str = "sk-canary-of-the-tenant";
/// The key of the platform's provider.
const PLATFORM_KEY: &str = "sk-canary-of-the-platform";

/// A server, the platform's provider and a tenant's own provider.
struct Scene {
    app: TestApp,
    platform: Provider,
    own: Provider,
    flags: Vec<String>,
}

impl Scene {
    /// Creates a scene with a tenant on this plan without a credential, and with the platform's provider.
    async fn on(database: On, plan: Plan) -> Self {
        let (platform, own) = (Provider::start().await, Provider::start().await);
        let flags = [
            "--embedding-api-key",
            PLATFORM_KEY,
            "--embedding-base-url",
            &platform.url(),
            "--embedding-model",
            "platform-model",
            "--egress-allow-cidrs",
            &own.address.to_string(),
        ]
        .map(str::to_owned)
        .to_vec();
        let words: Vec<&str> = flags.iter().map(String::as_str).collect();
        let app = TestApp::with(database, plan, &words).await;
        Self { app, platform, own, flags }
    }

    /// Creates a scene with a tenant on the plan Team whose own provider embeds.
    async fn with_own_provider(database: On) -> Self {
        let scene = Self::on(database, Plan::Team).await;
        scene.store_credential(json!({})).await.ok();
        // Runs the backfill, which finds no spans.
        scene.app.drain().await;
        scene
    }

    /// Stores the tenant's own provider, with these fields changed.
    async fn store_credential(&self, changes: Value) -> Reply {
        let mut body =
            json!({"api_key": TENANT_KEY, "base_url": self.own.url(), "embedding_model": "own-model"});
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        self.app.session(Role::Owner).put("/v1/provider-credentials/openai_compatible", &body).await
    }

    /// Starts another server on the same database, like a restart.
    async fn restart(&self) -> TestApp {
        let words: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.app.beside_with(&words).await
    }

    /// Stores a trace of one span with this input.
    async fn store_trace(&self, input: &str) {
        let span = json!({"name": "chat", "input": input, "output": "Done."});
        self.app.full_key().post("/v1/ingest", &json!({"spans": [span]})).await.ok();
    }

    /// Moves the clock to the time when waiting jobs are due, and runs them.
    async fn run_due_jobs(&self) -> usize {
        self.app.advance(2);
        self.app.drain().await
    }

    /// Returns the embedding models of the stored vectors.
    async fn vector_models(&self) -> Vec<String> {
        let rows = span_vector::Entity::find().all(&self.app.app.db.write).await.unwrap();
        let mut models: Vec<String> = rows.into_iter().map(|it| it.embedding_model).collect();
        models.sort_unstable();
        models
    }

    /// Returns the jobs that wait for a provider.
    async fn waiting_jobs(&self) -> Vec<job::Model> {
        let rows = job::Entity::find().order_by_asc(job::Column::RunAt);
        let rows = rows.all(&self.app.app.db.write).await.unwrap();
        rows.into_iter().filter(|it| it.lane == "embedding").collect()
    }

    async fn stop(self) {
        self.app.stop().await;
    }
}
