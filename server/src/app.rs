//! Everything that requests and jobs share, and the tasks that run beside them.

use std::{future::Future, sync::Arc, time::Duration};

use moka::future::Cache;
use semantics::prices::PriceTable;
use tokio::sync::{Semaphore, broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use crate::{
    access::{api_key::ApiKey, master_key::MasterKey, oidc::Provider, session::Sessions},
    clock::Clock,
    config::Config,
    error::Result,
    http::{cursor::Cursors, routes},
    ingest::{prices::PriceBook, writer::Writer},
    providers::{Egress, resolve::Resolver},
    store::{self, Db, keys::KnownKey},
    telemetry::Telemetry,
};

/// How long what other processes may change is remembered: a revoked key stops within it.
const MEMORY: Duration = Duration::from_secs(1);

/// The state of a server process.
pub struct App {
    /// The database.
    pub db: Db,
    /// The present.
    pub clock: Arc<dyn Clock>,
    /// The settings.
    pub config: Config,
    /// Signs and checks session tokens.
    pub sessions: Sessions,
    /// Signs and checks cursors.
    pub cursors: Cursors,
    /// Stores traces.
    pub writer: Writer,
    /// Tells which tenants have new or changed traces in this process.
    pub changed: broadcast::Sender<Uuid>,
    /// The way out to addresses that tenants set.
    pub egress: Egress,
    /// What the server tells about itself.
    pub telemetry: Arc<Telemetry>,
    /// Prices for all tenants.
    pub prices: Arc<PriceTable>,
    /// Bytes of request bodies held in memory, in KiB.
    pub body_memory: Arc<Semaphore>,
    /// Requests whose bodies are decoded at the same time.
    pub decoding: Arc<Semaphore>,
    keys: Cache<[u8; 32], Option<Arc<KnownKey>>>,
    projects: Cache<(Uuid, String), Option<(Uuid, bool)>>,
    archived: Cache<(Uuid, Uuid), Option<bool>>,
    tenants: Cache<Uuid, Option<Arc<entities::tenant::Model>>>,
    books: Cache<Uuid, Arc<PriceBook>>,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl App {
    /// The state for a database that is migrated. Starts the writers.
    ///
    /// # Errors
    /// When a setting can't be used.
    pub fn start(
        db: Db,
        clock: Arc<dyn Clock>,
        resolver: Arc<dyn Resolver>,
        config: Config,
        master: &MasterKey,
    ) -> anyhow::Result<Arc<Self>> {
        let (writer, queue) = Writer::new();
        let (changed, _) = broadcast::channel(1_024);
        let (provider, keeper) = Provider::configured(&config.oidc, Arc::clone(&clock))?.unzip();
        let sessions = Sessions::configured(&config, || Ok(vec![master.derive("session")]))?.with(provider);
        let telemetry = Arc::new(Telemetry::new(routes::names(), clock.now()));
        let app = Arc::new(Self {
            sessions,
            telemetry,
            cursors: Cursors::new(master.derive("cursor")),
            egress: Egress::new(&config.egress, vec![config.listen], resolver)?,
            prices: Arc::new(config.price_table()?),
            body_memory: Arc::new(Semaphore::new(config.body_memory_kib)),
            decoding: Arc::new(Semaphore::new(config.decoders())),
            writer,
            changed,
            keys: Cache::builder().max_capacity(10_000).time_to_live(MEMORY).build(),
            projects: Cache::builder().max_capacity(10_000).time_to_live(MEMORY).build(),
            archived: Cache::builder().max_capacity(10_000).time_to_live(MEMORY).build(),
            tenants: Cache::builder().max_capacity(10_000).time_to_live(MEMORY).build(),
            books: Cache::builder().max_capacity(1_000).time_to_live(MEMORY * 30).build(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            db,
            clock,
            config,
        });
        for _ in 0..app.db.writers() {
            app.spawn(queue.clone().run(
                app.db.clone(),
                Arc::clone(&app.clock),
                app.changed.clone(),
                Arc::clone(&app.telemetry),
                app.stopping.clone(),
            ));
        }
        if let Some(keeper) = keeper {
            app.spawn(keeper.run(app.stopping.clone()));
        }
        Ok(app)
    }

    /// Runs a task that shutdown waits for.
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.tasks.track_future(task));
    }

    /// Waits, or until the server stops; true then.
    pub async fn pause(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.stopping.cancelled()).await.is_ok()
    }

    /// Whether the server is going down.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Cancelled when the server goes down.
    pub fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }

    /// Tells every task to end, waits for them, and closes the database.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.db.clone().close().await;
    }

    /// What is known of a key, working or not.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn key(&self, key: &ApiKey) -> Result<Option<Arc<KnownKey>>> {
        let hash = key.hash();
        if let Some(known) = self.keys.get(&hash).await {
            return Ok(known);
        }
        let known = store::keys::by_hash(self.db.current(), &hash).await?.map(Arc::new);
        self.keys.insert(hash, known.clone()).await;
        Ok(known)
    }

    /// One tenant.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn tenant(&self, id: Uuid) -> Result<Option<Arc<entities::tenant::Model>>> {
        if let Some(known) = self.tenants.get(&id).await {
            return Ok(known);
        }
        let known = store::tenants::get(self.db.current(), id).await?.map(Arc::new);
        self.tenants.insert(id, known.clone()).await;
        Ok(known)
    }

    /// Id of a tenant's project by name, and whether it is archived.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn project_named(&self, tenant: Uuid, name: &str) -> Result<Option<(Uuid, bool)>> {
        let key = (tenant, name.to_owned());
        if let Some(known) = self.projects.get(&key).await {
            return Ok(known);
        }
        let found = store::projects::by_name(self.db.current(), tenant, name).await?;
        let known = found.map(|it| (it.id, it.archived_at.is_some()));
        if known.is_some() {
            self.projects.insert(key, known).await;
        }
        Ok(known)
    }

    /// Whether a tenant's project is archived; none if there is no such project.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_archived(&self, tenant: Uuid, id: Uuid) -> Result<Option<bool>> {
        if let Some(known) = self.archived.get(&(tenant, id)).await {
            return Ok(known);
        }
        let known =
            store::projects::get(self.db.current(), tenant, id).await?.map(|it| it.archived_at.is_some());
        self.archived.insert((tenant, id), known).await;
        Ok(known)
    }

    /// The prices of a tenant.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn price_book(&self, tenant: Uuid) -> Result<Arc<PriceBook>> {
        if let Some(book) = self.books.get(&tenant).await {
            return Ok(book);
        }
        let own = store::prices::all(self.db.current(), tenant).await?;
        let book = Arc::new(PriceBook::new(Arc::clone(&self.prices), own.into_iter().collect()));
        self.books.insert(tenant, Arc::clone(&book)).await;
        Ok(book)
    }

    /// Forgets what is remembered of keys, tenants, projects and prices, after this process
    /// changed some of it.
    pub fn forget(&self) {
        self.keys.invalidate_all();
        self.projects.invalidate_all();
        self.archived.invalidate_all();
        self.tenants.invalidate_all();
        self.books.invalidate_all();
    }
}
