//! The state that requests and jobs share, and the background tasks.

use std::{future::Future, net::IpAddr, sync::Arc, time::Duration};

use api::ErrorCode;
use outbound::{OutboundClient, resolver::Resolver};
use queue::{ConcurrencyLimits, JobResult, Registry, WakeUps, worker};
use semantics::prices::PriceTable;
use store::{Db, Transaction, quotas::Quota, traces::TraceRules};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use crate::{
    access::{
        Caller, master_key::MasterKey, oidc::IdentityProvider, plans::monthly_limit, seal::Sealer,
        session::Sessions,
    },
    access_cache::AccessCache,
    audit::{self, AuditAction},
    clock::Clock,
    code_runner::CodeRunner,
    config::Config,
    cursor::Cursors,
    embedding::Embedder,
    error::{Result, problem},
    evaluator::CompiledEvaluators,
    failures::cluster_cache::ClusterCache,
    ingest::{options::IngestOptions, rejections::RejectionRecorder, writer::Writer},
    judging::Judge,
    keyed_semaphore::{KeyedPermit, KeyedSemaphore},
    limits::{LocalBuckets, RateLimits},
    log_joining::{recent::RecentRecords, senders::LogSenders},
    memory::{MEMORY_WAIT, MemoryBudget, MemoryHolder, Reservation},
    metrics::queries::MetricsQueries,
    search::Search,
    telemetry::{Telemetry, http::EndpointName},
    webhooks::sending_limits::SendingLimits,
};

/// Bytes reserved for reading a block of rows: their small texts, compressed and decompressed.
const WORKSPACE_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of request bodies of a tenant that arrive at the same time.
const MAX_ARRIVING_BODIES: usize = 1_024;
/// Maximum number of open streams of a tenant.
pub const MAX_STREAMS: usize = 50;
/// Maximum number of running exports of a tenant.
pub const MAX_EXPORTS: usize = 3;
/// Maximum number of running tests of a tenant's webhooks; a test may wait for its receiver.
const MAX_WEBHOOK_TESTS: usize = 16;
/// Maximum number of waiting reads of a tenant, and the maximum waiting time.
const MAX_WAITING_READS: usize = 1_024;
const READ_WAIT: Duration = Duration::from_secs(10);

/// The jobs, tasks, rules and endpoints of all features. [`crate::features`] assembles them.
pub struct Features {
    /// The kinds of jobs.
    pub jobs: Registry<App>,
    /// Functions that start the background tasks of a process that runs jobs.
    pub start: Vec<fn(&Arc<App>)>,
    /// Computes rows and jobs of traces within the transactions that store them.
    pub rules: Arc<dyn TraceRules>,
    /// The endpoints of the API.
    pub endpoints: Vec<EndpointName>,
    /// Returns the OpenAPI document as JSON.
    pub openapi_json: fn() -> anyhow::Result<&'static [u8]>,
}

/// The state of a server process.
pub struct App {
    /// The database.
    pub db: Db,
    /// The current time.
    pub clock: Arc<dyn Clock>,
    /// The configuration.
    pub config: Config,
    /// Verifies and issues session tokens.
    pub sessions: Sessions,
    /// Signs and verifies cursors.
    pub cursors: Cursors,
    /// Seals and unseals secrets.
    pub sealer: Arc<Sealer>,
    /// Stores traces.
    pub writer: Writer,
    /// Computes rows and jobs of traces within the transactions that store them.
    pub rules: Arc<dyn TraceRules>,
    /// How much each tenant sends in log records to this process.
    pub log_senders: LogSenders,
    /// Log records that this process stored recently, for spans that may follow.
    pub recent_records: RecentRecords,
    /// Announces the tenants with new or changed traces in this process.
    pub changed_tenants: broadcast::Sender<Uuid>,
    /// The outbound HTTP guard, for addresses set by tenants.
    pub outbound: OutboundClient,
    /// Computes embeddings of spans and queries.
    pub embedder: Embedder,
    /// Requests verdicts from judges.
    pub judge: Judge,
    /// Searches spans by their vectors.
    pub search: Search,
    /// Metrics of the server.
    pub telemetry: Arc<Telemetry>,
    /// The price table.
    pub prices: Arc<PriceTable>,
    /// Rate limits of tenants.
    pub rate_limits: RateLimits,
    /// Rate limits of requests without a valid token, by client address: they slow down guessing of
    /// keys. Requests with a valid token are not affected, because many clients may share an address.
    pub address_limits: LocalBuckets<IpAddr>,
    /// Rate limits of recorded rejections, by tenant, actor and action.
    pub rejection_limits: LocalBuckets<(Uuid, String, AuditAction)>,
    /// Records rejected input.
    pub rejections: RejectionRecorder,
    /// The access cache.
    pub access_cache: Arc<AccessCache>,
    /// Budget for the memory of request bodies and responses.
    pub memory: Arc<MemoryBudget>,
    /// Limits the request bodies that arrive for a tenant.
    pub arriving_bodies: KeyedSemaphore<MemoryHolder>,
    /// Limits the reads of a tenant, so that other tenants find database connections.
    pub reads: KeyedSemaphore<Uuid>,
    /// Limits the reads of a tenant's streams.
    pub stream_reads: KeyedSemaphore<Uuid>,
    /// Limits the open streams of a tenant.
    pub streams: KeyedSemaphore<Uuid>,
    /// Limits the running exports of a tenant.
    pub exports: KeyedSemaphore<Uuid>,
    /// Limits the batches of webhook deliveries that are sent at the same time.
    pub webhook_sending: SendingLimits,
    /// Limits the concurrent tests of a tenant's webhooks.
    pub webhook_tests: KeyedSemaphore<Uuid>,
    /// Limits the request bodies that are decoded at the same time.
    pub decoding_permits: Arc<Semaphore>,
    /// Answers metrics queries.
    pub metrics_queries: MetricsQueries,
    /// The cache of compiled code evaluators.
    pub compiled_evaluators: Arc<CompiledEvaluators>,
    /// Runs code evaluators.
    pub code_runner: CodeRunner,
    /// The failure clusters that jobs used last.
    pub clusters: ClusterCache,
    working: ConcurrencyLimits<(&'static str, Uuid)>,
    /// Returns the OpenAPI document as JSON.
    pub openapi_json: fn() -> anyhow::Result<&'static [u8]>,
    background_tasks: Vec<fn(&Arc<Self>)>,
    jobs: Registry<Self>,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl App {
    /// Creates the state for a migrated database and starts the writers.
    ///
    /// # Errors
    ///
    /// Fails when a setting is invalid.
    pub fn start(
        db: Db,
        clock: Arc<dyn Clock>,
        resolver: Arc<dyn Resolver>,
        config: Config,
        master: &MasterKey,
        features: Features,
    ) -> anyhow::Result<Arc<Self>> {
        let stopping = CancellationToken::new();
        let prices = Arc::new(config.price_table()?);
        let (writer, queue) = Writer::new();
        let (changed_tenants, _) = broadcast::channel(1_024);
        let outbound = OutboundClient::new(config.egress.outbound(config.listen)?, resolver);
        let (provider, key_fetcher) =
            IdentityProvider::configured(&config.oidc, Arc::clone(&clock), &outbound)?.unzip();
        let keys = |label| master.derive_all(label).into_iter().map(|it| it.1).collect::<Vec<_>>();
        let sessions = Sessions::configured(&config, || Ok(keys("session")))?.with_provider(provider);
        let pools = features.jobs.pools().to_vec();
        let telemetry = Arc::new(Telemetry::new(features.endpoints.into_iter(), pools, clock.now()));
        let (access_cache, sealer) =
            (Arc::new(AccessCache::new(db.clone(), Arc::clone(&prices))), Arc::new(Sealer::new(master)));
        let embedder = Embedder::new(
            &config.embedding,
            outbound.clone(),
            Arc::clone(&access_cache),
            Arc::clone(&sealer),
            Arc::clone(&clock),
            Arc::clone(&telemetry),
        );
        let judge = Judge::new(
            &config.judge,
            &config.embedding,
            outbound.clone(),
            Arc::clone(&access_cache),
            Arc::clone(&sealer),
            Arc::clone(&clock),
            Arc::clone(&telemetry),
        );
        let app = Arc::new(Self {
            sessions,
            telemetry,
            cursors: Cursors::new(keys("cursor")),
            sealer,
            outbound,
            embedder,
            judge,
            rate_limits: RateLimits::new(db.clone()),
            address_limits: LocalBuckets::new(config.unauthenticated_per_minute),
            rejection_limits: LocalBuckets::new(audit::MAX_RECORDED_REJECTIONS),
            rejections: RejectionRecorder::default(),
            access_cache,
            prices,
            search: Search::new(
                config.vector_cache_mib.saturating_mul(1024 * 1024),
                config.decoder_count(),
                config.search_exact,
            ),
            memory: MemoryBudget::new(config.request_memory_kib.saturating_mul(1024)),
            arriving_bodies: KeyedSemaphore::new(MAX_ARRIVING_BODIES),
            reads: KeyedSemaphore::new((config.database_connections as usize / 2).max(1)),
            stream_reads: KeyedSemaphore::new((config.database_connections as usize / 8).max(1)),
            streams: KeyedSemaphore::new(MAX_STREAMS),
            exports: KeyedSemaphore::new(MAX_EXPORTS),
            webhook_sending: SendingLimits::default(),
            webhook_tests: KeyedSemaphore::new(MAX_WEBHOOK_TESTS),
            decoding_permits: Arc::new(Semaphore::new(config.decoder_count())),
            metrics_queries: MetricsQueries::new(config.decoder_count()),
            compiled_evaluators: Arc::default(),
            code_runner: CodeRunner::new(config.decoder_count(), Arc::clone(&clock), stopping.clone()),
            clusters: ClusterCache::default(),
            working: ConcurrencyLimits::default(),
            writer,
            rules: features.rules,
            log_senders: LogSenders::default(),
            recent_records: RecentRecords::default(),
            openapi_json: features.openapi_json,
            background_tasks: features.start,
            jobs: features.jobs,
            changed_tenants,
            tasks: TaskTracker::new(),
            stopping,
            db,
            clock,
            config,
        });
        app.spawn(app.db.clone().watch(app.stopping.clone()));
        app.spawn(Arc::clone(&app.access_cache).watch(app.stopping.clone()));
        for _ in 0..app.db.writers() {
            app.spawn(queue.clone().run(
                app.db.clone(),
                Arc::clone(&app.clock),
                app.changed_tenants.clone(),
                Arc::clone(&app.telemetry),
                Arc::clone(&app.rules),
                app.stopping.clone(),
            ));
        }
        if let Some(key_fetcher) = key_fetcher {
            app.spawn(key_fetcher.run(app.stopping.clone()));
        }
        Ok(app)
    }

    /// Starts the workers of jobs, and the background tasks of all features.
    pub fn start_workers(self: &Arc<Self>) {
        worker::start(self);
        self.background_tasks.iter().for_each(|start| start(self));
    }

    /// Reserves the memory for reading a block of rows. The reservation grows with large texts, and shrinks
    /// to the size of the response that is built from them.
    ///
    /// # Errors
    ///
    /// Fails with `overloaded` when the tenant's share stays used up for too long.
    pub async fn workspace(&self, tenant: Uuid) -> Result<Reservation> {
        let mut memory = self.memory.reservation(MemoryHolder::Tenant(tenant));
        memory.grow(self.workspace_bytes(), MEMORY_WAIT).await?;
        Ok(memory)
    }

    /// Returns the number of bytes that [`Self::workspace`] reserves.
    pub fn workspace_bytes(&self) -> usize {
        WORKSPACE_BYTES.min(self.memory.total() / 16)
    }

    /// Returns the options for storing the traces of a request.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn ingest_options(&self, caller: &Caller) -> Result<IngestOptions> {
        let embeds_spans = self.embedder.embeds(caller.tenant_id, caller.plan).await?;
        Ok(IngestOptions { monthly_limit: monthly_limit(Quota::Traces, caller.plan), embeds_spans })
    }

    /// Waits until the tenant has fewer running reads than allowed.
    ///
    /// # Errors
    ///
    /// Fails with `overloaded` when too many reads wait, or for too long.
    pub async fn read_permit(&self, tenant: Uuid) -> Result<KeyedPermit<Uuid>> {
        self.reads.acquire(&tenant, MAX_WAITING_READS, READ_WAIT).await.ok_or_else(|| {
            problem(ErrorCode::Overloaded, "too many reads of this tenant are running; try again shortly")
        })
    }

    /// Spawns a task that shutdown waits for.
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.tasks.track_future(task));
    }

    /// Sleeps until `time` has passed or the server stops; returns true if it stops.
    pub async fn pause(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.stopping.cancelled()).await.is_ok()
    }

    /// Returns whether the server is stopping.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Returns a token that is cancelled when the server stops.
    pub fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }

    /// Stops all tasks, waits for them, and closes the database.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.db.clone().close().await;
    }

    /// Returns the wake-ups of worker pools, for a caller that has committed jobs.
    pub fn wake_ups(&self) -> &WakeUps {
        self.jobs.wake_ups()
    }

    /// Commits a change of cached access data and invalidates the caches: of this process immediately,
    /// of others within a second.
    ///
    /// # Errors
    ///
    /// Fails when the database fails; nothing has changed then.
    pub async fn commit(&self, txn: Transaction) -> Result<()> {
        store::settings::new_generation(&txn).await?;
        txn.commit().await?;
        self.access_cache.clear();
        Ok(())
    }
}

impl worker::Context for App {
    fn db(&self) -> &Db {
        &self.db
    }

    fn now(&self) -> i64 {
        self.clock.now()
    }

    fn registry(&self) -> &Registry<Self> {
        &self.jobs
    }

    fn working(&self) -> &ConcurrencyLimits<(&'static str, Uuid)> {
        &self.working
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        Self::spawn(self, task);
    }

    async fn pause(&self, time: Duration) -> bool {
        Self::pause(self, time).await
    }

    fn is_stopping(&self) -> bool {
        Self::is_stopping(self)
    }

    fn ended(&self, kind: &str, outcome: &JobResult) {
        self.telemetry.jobs.count_ended(kind, outcome);
    }
}
