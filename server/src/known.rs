//! The access cache: keys, tenants, members, projects, credentials, rules and prices, so that requests
//! are authorized without database reads.
//!
//! Every change of this data increments one row, the *cache version*, in the same transaction. The
//! process that made the change clears its cache immediately; every other one reads that row a few
//! times a second and clears its cache when it changed, so that a revoked key is valid nowhere for
//! longer than a second. A process that can't read the row uses nothing older than a second.

use std::{
    future::Future,
    hash::Hash,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use entities::{member, provider_credential, tenant};
use moka::sync::Cache;
use semantics::prices::PriceTable;
use store::{Db, DbError, keys::KeyWithPlan};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{access::api_key::ApiKey, error::Result, ingest::prices::PriceBook, rule_set::Setup};

/// Time for which the cache is valid after the version was read.
const MAX_AGE: Duration = Duration::from_millis(900);
/// Interval of reading the version.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of entries of each kind.
const MAX_ENTRIES: u64 = 20_000;

/// The access cache.
pub struct AccessCache {
    db: Db,
    trust: Arc<Trust>,
    prices: Arc<PriceTable>,
    keys: Memory<[u8; 32], Option<Arc<KeyWithPlan>>>,
    tenants: Memory<Uuid, Option<Arc<tenant::Model>>>,
    external: Memory<String, Option<Uuid>>,
    members: Memory<(Uuid, String), Option<Arc<member::Model>>>,
    named: Memory<(Uuid, String), Option<(Uuid, bool)>>,
    archived: Memory<(Uuid, Uuid), Option<bool>>,
    books: Memory<Uuid, Arc<PriceBook>>,
    credentials: Memory<Uuid, Arc<[provider_credential::Model]>>,
    setups: Memory<Uuid, Arc<Setup>>,
}

impl AccessCache {
    /// Creates an empty cache.
    pub fn new(db: Db, prices: Arc<PriceTable>) -> Self {
        let trust = Arc::new(Trust::default());
        Self {
            db,
            prices,
            // Unknown keys are cached too, so that guessing keys does not cause queries.
            keys: Memory::new(&trust, |_| true),
            tenants: Memory::new(&trust, Option::is_some),
            external: Memory::new(&trust, Option::is_some),
            members: Memory::new(&trust, Option::is_some),
            named: Memory::new(&trust, Option::is_some),
            archived: Memory::new(&trust, Option::is_some),
            books: Memory::new(&trust, |_| true),
            credentials: Memory::new(&trust, |_| true),
            setups: Memory::new(&trust, |_| true),
            trust,
        }
    }

    /// Reads the version regularly until the server stops.
    pub async fn watch(self: Arc<Self>, stopping: CancellationToken) {
        let mut last = None;
        loop {
            let asked = Instant::now();
            let read = store::settings::get(self.db.current(), store::settings::CACHE_VERSION_SETTING);
            match self.db.health.while_reachable(read).await.unwrap_or_else(|it| Err(it.into())) {
                Ok(now) => {
                    if last.as_ref() != Some(&now) {
                        self.trust.forget();
                        last = Some(now);
                    }
                    self.trust.record_read(asked);
                }
                Err(error) => tracing::debug!(%error, "the cache version could not be read"),
            }
            if tokio::time::timeout(POLL_INTERVAL, stopping.cancelled()).await.is_ok() {
                return;
            }
        }
    }

    /// Clears the cache, after this process committed a change.
    pub fn forget(&self) {
        self.trust.forget();
    }

    /// Returns a key that is not revoked; it may have expired.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn key(&self, key: &ApiKey) -> Result<Option<Arc<KeyWithPlan>>> {
        let hash = key.hash();
        self.keys.get(hash, async || store::keys::by_hash(self.db.current(), &hash).await).await
    }

    /// Returns a tenant.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn tenant(&self, id: Uuid) -> Result<Option<Arc<tenant::Model>>> {
        let read = async || Ok(store::tenants::get(self.db.current(), id).await?.map(Arc::new));
        self.tenants.get(id, read).await
    }

    /// Returns the tenant that a token names: by ID, or by its name at the identity provider.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn tenant_claimed(&self, claim: &str) -> Result<Option<Arc<tenant::Model>>> {
        if let Ok(id) = Uuid::parse_str(claim)
            && let Some(tenant) = self.tenant(id).await?
        {
            return Ok(Some(tenant));
        }
        let read = async || store::tenants::by_external_id(self.db.current(), claim).await;
        match self.external.get(claim.to_owned(), read).await? {
            Some(id) => self.tenant(id).await,
            None => Ok(None),
        }
    }

    /// Returns a member by subject.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn member(&self, tenant: Uuid, subject: &str) -> Result<Option<Arc<member::Model>>> {
        let read =
            async || Ok(store::members::by_subject(self.db.current(), tenant, subject).await?.map(Arc::new));
        self.members.get((tenant, subject.to_owned()), read).await
    }

    /// Caches a member that this process has just stored, unless the version changed since `before`.
    pub fn remember_member(&self, row: member::Model, before: u64) {
        self.members.put((row.tenant_id, row.subject.clone()), before, Some(Arc::new(row)));
    }

    /// Returns the version, to be read before the data that is cached.
    pub fn generation(&self) -> u64 {
        self.trust.generation.load(SeqCst)
    }

    /// Returns the ID of a tenant's project by name, and whether it is archived.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn project_named(&self, tenant: Uuid, name: &str) -> Result<Option<(Uuid, bool)>> {
        let read = async || {
            let found = store::projects::by_name(self.db.current(), tenant, name).await?;
            Ok(found.map(|it| (it.id, it.archived_at.is_some())))
        };
        self.named.get((tenant, name.to_owned()), read).await
    }

    /// Whether a tenant's project is archived; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn is_archived(&self, tenant: Uuid, id: Uuid) -> Result<Option<bool>> {
        let read = async || {
            let found = store::projects::get(self.db.current(), tenant, id).await?;
            Ok(found.map(|it| it.archived_at.is_some()))
        };
        self.archived.get((tenant, id), read).await
    }

    /// Returns the prices of a tenant.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn price_book(&self, tenant: Uuid) -> Result<Arc<PriceBook>> {
        let read = async || {
            let own = store::prices::all(self.db.current(), tenant).await?;
            Ok(Arc::new(PriceBook::new(Arc::clone(&self.prices), own.into_iter().collect())))
        };
        self.books.get(tenant, read).await
    }

    /// Returns a tenant's provider credentials, with sealed keys.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn credentials(&self, tenant: Uuid) -> Result<Arc<[provider_credential::Model]>> {
        let read = async || Ok(store::credentials::all(self.db.current(), tenant).await?.into());
        self.credentials.get(tenant, read).await
    }

    /// Returns a tenant's eval rules and evaluators.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn setup(&self, tenant: Uuid) -> Result<Arc<Setup>> {
        let read = async || Ok(Arc::new(Setup::read(self.db.current(), tenant).await?));
        self.setups.get(tenant, read).await
    }
}

/// Whether cached data is valid.
struct Trust {
    /// Incremented with every change.
    generation: AtomicU64,
    started: Instant,
    /// Start of the last successful read of the version.
    looked: Mutex<Option<Instant>>,
}

impl Default for Trust {
    fn default() -> Self {
        Self { generation: AtomicU64::new(1), started: Instant::now(), looked: Mutex::new(None) }
    }
}

impl Trust {
    fn forget(&self) {
        self.generation.fetch_add(1, SeqCst);
    }

    fn record_read(&self, at: Instant) {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// Whether data read at `read` in `generation` is still valid.
    fn holds(&self, generation: u64, read: Instant) -> bool {
        if generation != self.generation.load(SeqCst) {
            return false;
        }
        let looked = *self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        looked.unwrap_or(self.started).max(read).elapsed() < MAX_AGE
    }
}

/// Cached values by key, each with its time and version.
struct Memory<K, V> {
    trust: Arc<Trust>,
    /// Which values are cached. Missing rows may be created without a new version.
    keep: fn(&V) -> bool,
    cache: Cache<K, (u64, Instant, V)>,
}

impl<K, V> Memory<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn new(trust: &Arc<Trust>, keep: fn(&V) -> bool) -> Self {
        let cache = Cache::builder().max_capacity(MAX_ENTRIES).time_to_idle(Duration::from_secs(600)).build();
        Self { trust: Arc::clone(trust), keep, cache }
    }

    /// Returns the cached value, else the result of `read`.
    async fn get<F: Future<Output = Result<V, DbError>>>(
        &self,
        key: K,
        read: impl FnOnce() -> F,
    ) -> Result<V> {
        if let Some((generation, at, value)) = self.cache.get(&key)
            && self.trust.holds(generation, at)
        {
            return Ok(value);
        }
        // Read before the data, so that a concurrent change invalidates the entry.
        let generation = self.trust.generation.load(SeqCst);
        let at = Instant::now();
        let value = read().await?;
        if (self.keep)(&value) {
            self.cache.insert(key, (generation, at, value.clone()));
        }
        Ok(value)
    }

    fn put(&self, key: K, generation: u64, value: V) {
        self.cache.insert(key, (generation, Instant::now(), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn value_changed_during_read_is_not_cached() {
        let trust = Arc::new(Trust::default());
        let memory = Memory::<u8, u8>::new(&trust, |_| true);
        let raced = memory.get(1, async || {
            trust.forget();
            Ok(1)
        });
        assert_eq!(raced.await.unwrap(), 1);
        assert_eq!(memory.get(1, async || Ok(2)).await.unwrap(), 2);
        assert_eq!(memory.get(1, async || Ok(3)).await.unwrap(), 2);
        trust.forget();
        assert_eq!(memory.get(1, async || Ok(4)).await.unwrap(), 4);
    }

    #[tokio::test]
    async fn cache_expires_when_version_is_not_read() {
        let trust = Trust::default();
        let old = Instant::now().checked_sub(Duration::from_secs(2)).unwrap();
        let generation = trust.generation.load(SeqCst);
        let unlooked = Trust { started: old, ..Trust::default() };
        assert!(!unlooked.holds(generation, old));
        assert!(unlooked.holds(generation, Instant::now()));
        unlooked.record_read(Instant::now());
        assert!(unlooked.holds(generation, old));
    }
}
