//! A server on a free port, with its own database and clock.
//!
//! Tests reach it over HTTP. They use the state inside the server only to arrange what no endpoint can, to
//! move the clock and to run the queue.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't be set up fails"
)]
#![allow(clippy::disallowed_methods, reason = "the server under test runs beside the test")]

use std::{net::SocketAddr, sync::Arc};

use api::{Plan, Role};
use outbound::resolver::{FakeResolver, Resolver};
use queue::worker;
use sea_orm::{EntityTrait, Set};
use server::{
    access::{api_key::ApiKey, master_key::MasterKey, session::Claims},
    app::App,
    clock::{Clock, FakeClock},
    config, first_start,
    http::serve::Listeners,
};
use store::{
    Db,
    quotas::{Quota, month},
    sqlite_url,
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{caller::Caller, postgres::Database};

/// The time at which tests begin: 2026-06-15T12:00:00Z, in microseconds.
pub const TEST_START_MICROS: i64 = 1_781_524_800_000_000;

/// The master key of the servers under test.
pub const MASTER_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// The database that a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// A SQLite file in a temporary folder.
    Sqlite,
    /// A PostgreSQL database that only this test uses.
    Postgres,
}

/// The value that keeps the database alive.
enum Holder {
    Sqlite {
        _folder: tempfile::TempDir,
    },
    Postgres {
        _database: Database,
    },
    /// The database is kept alive by another [`TestApp`].
    Elsewhere,
}

/// A running server with one tenant.
pub struct TestApp {
    /// The state inside the server.
    pub app: Arc<App>,
    /// The clock of the server.
    pub clock: Arc<FakeClock>,
    /// The names that the server can resolve, with their addresses.
    pub resolver: Arc<FakeResolver>,
    /// `http://127.0.0.1:port`.
    pub url: String,
    /// The address of OTLP over gRPC, if `otlp-grpc-listen` is among the flags.
    pub otlp_grpc_address: Option<SocketAddr>,
    /// The tenant created at the start.
    pub tenant: Uuid,
    /// The project of the tenant.
    pub project: Uuid,
    key: String,
    database: String,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    holder: Holder,
}

/// A server that listens on a port.
struct Listening {
    app: Arc<App>,
    resolver: Arc<FakeResolver>,
    url: String,
    otlp_grpc_address: Option<SocketAddr>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl TestApp {
    /// Starts a server with a tenant on the plan Enterprise.
    pub async fn on(database: On) -> Self {
        Self::with(database, Plan::Enterprise, &[]).await
    }

    /// Starts a server with a tenant on this plan and with these flags.
    pub async fn with(database: On, plan: Plan, flags: &[&str]) -> Self {
        let (database, holder) = match database {
            On::Sqlite => {
                let folder = tempfile::tempdir().unwrap();
                (sqlite_url(folder.path()), Holder::Sqlite { _folder: folder })
            }
            On::Postgres => {
                let database = Database::create().await.expect("a PostgreSQL database");
                (database.url(), Holder::Postgres { _database: database })
            }
        };
        let db = Db::open(&database, None, 4).await.unwrap();
        db.migrate().await.unwrap();
        let clock = Arc::new(FakeClock::at(TEST_START_MICROS));
        let txn = db.begin().await.unwrap();
        let made =
            first_start::create_tenant(&txn, "default", plan, None, None, TEST_START_MICROS).await.unwrap();
        txn.commit().await.unwrap();
        let Listening { app, resolver, url, otlp_grpc_address, stop, serving } =
            listen(db, &clock, flags).await;
        Self {
            app,
            clock,
            resolver,
            url,
            otlp_grpc_address,
            tenant: made.tenant_id,
            project: made.project_id,
            key: made.secret.reveal().to_owned(),
            database,
            stop,
            serving,
            holder,
        }
    }

    /// Starts another server on the same database, like a second process.
    pub async fn beside(&self) -> Self {
        self.beside_with(&[]).await
    }

    /// Starts another server on the same database with these flags.
    pub async fn beside_with(&self, flags: &[&str]) -> Self {
        let db = Db::open(&self.database, None, 4).await.unwrap();
        let Listening { app, resolver, url, otlp_grpc_address, stop, serving } =
            listen(db, &self.clock, flags).await;
        Self {
            app,
            clock: Arc::clone(&self.clock),
            resolver,
            url,
            otlp_grpc_address,
            tenant: self.tenant,
            project: self.project,
            key: self.key.clone(),
            database: self.database.clone(),
            stop,
            serving,
            holder: Holder::Elsewhere,
        }
    }

    /// Stops the server and drops its database.
    pub async fn stop(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
        self.app.stop().await;
        drop(self.holder);
    }

    /// Moves the clock forward.
    pub fn advance(&self, seconds: i64) {
        self.clock.advance(seconds * 1_000_000);
    }

    /// Runs every job that is due. Returns the number of jobs.
    pub async fn drain(&self) -> usize {
        worker::drain(&self.app).await.unwrap()
    }

    /// Returns a caller without a token.
    pub fn anonymous(&self) -> Caller {
        Caller::new(&self.url, None)
    }

    /// Returns a caller that sends this bearer token.
    pub fn bearer(&self, token: &str) -> Caller {
        Caller::new(&self.url, Some(token))
    }

    /// Returns a caller with the tenant's first key, which has full access and the role of an owner.
    pub fn full_key(&self) -> Caller {
        self.bearer(&self.key)
    }

    /// Returns the text of the key of [`Self::full_key`].
    pub fn key_text(&self) -> &str {
        &self.key
    }

    /// Creates a key of the tenant with these scopes, created by a user of this role.
    pub async fn new_key(&self, maker: Role, scopes: &[&str]) -> Caller {
        let body = serde_json::json!({"name": "test", "scopes": scopes});
        let maker = match maker {
            // A viewer cannot create keys; a key of a viewer is inserted into the database instead.
            Role::Viewer => return self.db_viewer_key(scopes).await,
            role => self.session(role),
        };
        let reply = maker.post("/v1/apikeys", &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        self.bearer(reply.json()["secret"].as_str().unwrap())
    }

    async fn db_viewer_key(&self, scopes: &[&str]) -> Caller {
        let secret = ApiKey::generate().unwrap();
        let row = entities::api_key::Model {
            id: store::new_id(),
            tenant_id: self.tenant,
            project_id: self.project,
            hash: secret.hash().to_vec(),
            name: "viewer's".to_owned(),
            prefix: secret.prefix().to_owned(),
            scopes: scopes.join(","),
            role: Role::Viewer.as_str().to_owned(),
            created_at: TEST_START_MICROS,
            expires_at: None,
            revoked_at: None,
        };
        store::keys::add(&self.app.db.write, row).await.unwrap();
        self.bearer(secret.reveal())
    }

    /// Returns a caller with a session of the tenant.
    pub fn session(&self, role: Role) -> Caller {
        self.session_of(self.tenant, role)
    }

    /// Returns a caller with a session that claims this tenant.
    pub fn session_of(&self, tenant: Uuid, role: Role) -> Caller {
        self.session_with(&format!("test-{role}"), tenant, role)
    }

    /// Returns a caller with a session of the tenant and this subject.
    pub fn session_as(&self, subject: &str, role: Role) -> Caller {
        self.session_with(subject, self.tenant, role)
    }

    fn session_with(&self, subject: &str, tenant: Uuid, role: Role) -> Caller {
        let claims = Claims {
            sub: subject.to_owned(),
            tenant_id: tenant.to_string(),
            role: role.as_str().to_owned(),
            exp: self.clock.now() / 1_000_000 + 3_600,
            nbf: None,
        };
        self.bearer(&self.app.sessions.issue(&claims).unwrap())
    }

    /// Counts `n` traces as stored in the current month, without storing them.
    pub async fn use_traces(&self, n: i64) {
        self.use_quota(Quota::Traces, n).await;
    }

    /// Counts `n` LLM evaluations as used in the current month.
    pub async fn use_evaluations(&self, n: i64) {
        self.use_quota(Quota::LlmEvaluations, n).await;
    }

    async fn use_quota(&self, quota: Quota, n: i64) {
        let row = entities::quota_use::ActiveModel {
            tenant_id: Set(self.tenant),
            month: Set(month(self.clock.now())),
            quota: Set(quota.as_str().to_owned()),
            slot: Set(0),
            used: Set(n),
        };
        entities::quota_use::Entity::insert(row).exec_without_returning(&self.app.db.write).await.unwrap();
    }

    /// Changes the tenant's plan, like the operator's command.
    pub async fn set_plan(&self, plan: Plan) {
        let txn = self.app.db.begin().await.unwrap();
        store::tenants::set_plan(&txn, self.tenant, plan).await.unwrap();
        self.app.commit(txn).await.unwrap();
    }

    /// Creates another tenant. Returns its id and its full-access key.
    pub async fn other_tenant(&self, plan: Plan) -> (Uuid, Caller) {
        let txn = self.app.db.begin().await.unwrap();
        let made =
            first_start::create_tenant(&txn, "other", plan, None, None, self.clock.now()).await.unwrap();
        txn.commit().await.unwrap();
        (made.tenant_id, self.bearer(made.secret.reveal()))
    }
}

async fn listen(db: Db, clock: &Arc<FakeClock>, flags: &[&str]) -> Listening {
    let master = MasterKey::parse(MASTER_KEY).unwrap();
    let config = config::from_flags(flags).unwrap();
    let resolver = Arc::new(FakeResolver::default());
    let (ticking, resolving) =
        (Arc::clone(clock) as Arc<dyn Clock>, Arc::clone(&resolver) as Arc<dyn Resolver>);
    let app = App::start(db, ticking, resolving, config, &master, server::features::assemble()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let otlp_grpc = match &app.config.otlp_grpc_listen {
        Some(address) => Some(TcpListener::bind(address).await.unwrap()),
        None => None,
    };
    let otlp_grpc_address = otlp_grpc.as_ref().map(|it| it.local_addr().unwrap());
    let listeners = Listeners { http: listener, otlp_grpc };
    let stop = CancellationToken::new();
    let (serve, stopped) = (Arc::clone(&app), stop.clone().cancelled_owned());
    let serving = tokio::spawn(async move {
        server::http::serve::serve(&serve, server::features::routes(), listeners, stopped).await
    });
    Listening { app, resolver, url, otlp_grpc_address, stop, serving }
}
