//! The access cache: keys, tenants, members, projects and their redactors, credentials, rules, policies, webhooks and prices,
//! so that requests are authorized without database reads.
//!
//! Every change of this data increments one row, the *cache version*, in the same transaction. The
//! process that made the change clears its cache immediately; every other one reads that row a few
//! times a second and clears its cache when it changed, so that a revoked key is valid nowhere for
//! longer than a second. A process that cannot read the row uses nothing older than a second.

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

use crate::{
    access::api_key::ApiKey,
    control::policy_set::PolicySet,
    deployments::cached::{ScoredMetrics, ServedVersions},
    error::Result,
    failures::rule_set::FailureRules,
    ingest::{prices::PriceBook, redaction::ProjectRedactor},
    keyed_semaphore::KeyedPermit,
    rule_set::RuleSet,
    subscriptions::Subscriptions,
};

/// Time for which the cache is valid after the version was read.
const MAX_AGE: Duration = Duration::from_millis(900);
/// Interval of reading the version.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of entries of each kind.
const MAX_ENTRIES: u64 = 20_000;
/// Maximum size of the cached policies in bytes.
const MAX_POLICY_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum size of the cached redactors in bytes.
const MAX_REDACTOR_BYTES: u64 = 64 * 1024 * 1024;
/// Approximate size in bytes of an entry without a redactor.
const MIN_REDACTOR_BYTES: usize = 256;
/// Maximum size of the cached prompts in bytes.
const MAX_PROMPT_BYTES: u64 = 64 * 1024 * 1024;
/// Approximate size in bytes of an entry without texts: most of it is for the name, which may have 200 characters.
const MIN_PROMPT_BYTES: usize = 1_024;

/// The access cache.
pub struct AccessCache {
    db: Db,
    validity: Arc<CacheValidity>,
    prices: Arc<PriceTable>,
    keys: VersionedCache<[u8; 32], Option<Arc<KeyWithPlan>>>,
    tenants: VersionedCache<Uuid, Option<Arc<tenant::Model>>>,
    tenants_by_external_id: VersionedCache<String, Option<Uuid>>,
    members: VersionedCache<(Uuid, String), Option<Arc<member::Model>>>,
    projects_by_name: VersionedCache<(Uuid, String), Option<(Uuid, bool)>>,
    archived_projects: VersionedCache<(Uuid, Uuid), Option<bool>>,
    price_books: VersionedCache<Uuid, Arc<PriceBook>>,
    redactors: VersionedCache<(Uuid, Uuid), Option<Arc<ProjectRedactor>>>,
    credentials: VersionedCache<Uuid, Arc<[provider_credential::Model]>>,
    rule_sets: VersionedCache<Uuid, Arc<RuleSet>>,
    subscriptions: VersionedCache<Uuid, Arc<Subscriptions>>,
    failure_rules: VersionedCache<Uuid, Arc<FailureRules>>,
    policies: VersionedCache<Uuid, Arc<PolicySet>>,
    prompt_versions: VersionedCache<(Uuid, Uuid, String), Option<Arc<ServedVersions>>>,
    scored_metrics: VersionedCache<Uuid, Arc<ScoredMetrics>>,
}

impl AccessCache {
    /// Creates an empty cache.
    pub fn new(db: Db, prices: Arc<PriceTable>) -> Self {
        let validity = Arc::new(CacheValidity::default());
        Self {
            db,
            prices,
            // Unknown keys are cached too, so that guessing keys does not cause queries.
            keys: VersionedCache::new(&validity, |_| true),
            tenants: VersionedCache::new(&validity, Option::is_some),
            tenants_by_external_id: VersionedCache::new(&validity, Option::is_some),
            members: VersionedCache::new(&validity, Option::is_some),
            projects_by_name: VersionedCache::new(&validity, Option::is_some),
            archived_projects: VersionedCache::new(&validity, Option::is_some),
            price_books: VersionedCache::new(&validity, |_| true),
            redactors: VersionedCache::limited(&validity, MAX_REDACTOR_BYTES, |it| {
                MIN_REDACTOR_BYTES + it.as_ref().map_or(0, |it| it.bytes())
            }),
            credentials: VersionedCache::new(&validity, |_| true),
            rule_sets: VersionedCache::new(&validity, |_| true),
            subscriptions: VersionedCache::new(&validity, |_| true),
            failure_rules: VersionedCache::new(&validity, |_| true),
            policies: VersionedCache::limited(&validity, MAX_POLICY_BYTES, |it| it.bytes()),
            prompt_versions: VersionedCache::limited(&validity, MAX_PROMPT_BYTES, |it| {
                MIN_PROMPT_BYTES + it.as_ref().map_or(0, |it| it.bytes())
            }),
            scored_metrics: VersionedCache::new(&validity, |_| true),
            validity,
        }
    }

    /// Reads the version regularly until the server stops.
    pub async fn watch(self: Arc<Self>, stopping: CancellationToken) {
        let mut last = None;
        loop {
            let started_at = Instant::now();
            let read = store::settings::get(self.db.current(), store::settings::CACHE_VERSION_SETTING);
            match self.db.health.while_reachable(read).await.unwrap_or_else(|it| Err(it.into())) {
                Ok(now) => {
                    if last.as_ref() != Some(&now) {
                        self.validity.invalidate();
                        last = Some(now);
                    }
                    self.validity.record_read(started_at);
                }
                Err(error) => tracing::debug!(%error, "the cache version could not be read"),
            }
            if tokio::time::timeout(POLL_INTERVAL, stopping.cancelled()).await.is_ok() {
                return;
            }
        }
    }

    /// Clears the cache, after this process committed a change.
    pub fn clear(&self) {
        self.validity.invalidate();
    }

    /// Returns a key that is not revoked; it may have expired.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn api_key(&self, key: &ApiKey) -> Result<Option<Arc<KeyWithPlan>>> {
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
    pub async fn tenant_by_claim(&self, claim: &str) -> Result<Option<Arc<tenant::Model>>> {
        if let Ok(id) = Uuid::parse_str(claim)
            && let Some(tenant) = self.tenant(id).await?
        {
            return Ok(Some(tenant));
        }
        let read = async || store::tenants::by_external_id(self.db.current(), claim).await;
        match self.tenants_by_external_id.get(claim.to_owned(), read).await? {
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
    pub fn put_member(&self, row: member::Model, before: u64) {
        self.members.put((row.tenant_id, row.subject.clone()), before, Some(Arc::new(row)));
    }

    /// Returns the version, to be read before the data that is cached.
    pub fn version(&self) -> u64 {
        self.validity.version.load(SeqCst)
    }

    /// Returns the ID of a tenant's project by name, and whether it is archived.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn project_by_name(&self, tenant: Uuid, name: &str) -> Result<Option<(Uuid, bool)>> {
        let read = async || {
            let found = store::projects::by_name(self.db.current(), tenant, name).await?;
            Ok(found.map(|it| (it.id, it.archived_at.is_some())))
        };
        self.projects_by_name.get((tenant, name.to_owned()), read).await
    }

    /// Returns whether a tenant's project is archived; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn is_project_archived(&self, tenant: Uuid, id: Uuid) -> Result<Option<bool>> {
        let read = async || {
            let found = store::projects::get(self.db.current(), tenant, id).await?;
            Ok(found.map(|it| it.archived_at.is_some()))
        };
        self.archived_projects.get((tenant, id), read).await
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
        self.price_books.get(tenant, read).await
    }

    /// Returns the redactor of a project; `None` if nothing is redacted, or if there is no such project.
    ///
    /// # Errors
    ///
    /// Fails when the database fails, or when the stored settings cannot be compiled, so that no text is stored
    /// unmasked.
    pub async fn redactor(&self, tenant: Uuid, project: Uuid) -> Result<Option<Arc<ProjectRedactor>>> {
        let read = async || {
            let row = store::projects::get(self.db.current(), tenant, project).await?;
            let Some(stored) = row.and_then(|it| it.redaction) else { return Ok(None) };
            let invalid = |why: String| DbError::Custom(format!("redaction of project {project}: {why}"));
            let settings = serde_json::from_str(&stored).map_err(|it| invalid(it.to_string()))?;
            let redactor = ProjectRedactor::new(&settings).map_err(|it| invalid(it.to_string()))?;
            Ok(redactor.map(Arc::new))
        };
        self.redactors.get((tenant, project), read).await
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
    pub async fn rule_set(&self, tenant: Uuid) -> Result<Arc<RuleSet>> {
        let read = async || Ok(Arc::new(RuleSet::read(self.db.current(), tenant).await?));
        self.rule_sets.get(tenant, read).await
    }

    /// Returns which webhooks of a tenant receive which events.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn subscriptions(&self, tenant: Uuid) -> Result<Arc<Subscriptions>> {
        let read = async || Ok(Arc::new(Subscriptions::read(self.db.current(), tenant).await?));
        self.subscriptions.get(tenant, read).await
    }

    /// Returns a tenant's enabled failure rules.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn failure_rules(&self, tenant: Uuid) -> Result<Arc<FailureRules>> {
        let read = async || Ok(Arc::new(FailureRules::read(self.db.current(), tenant).await?));
        self.failure_rules.get(tenant, read).await
    }

    /// Returns a tenant's enabled policies that have a trigger.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn policies(&self, tenant: Uuid) -> Result<Arc<PolicySet>> {
        let read = async || Ok(Arc::new(PolicySet::read(self.db.current(), tenant).await?));
        self.policies.get(tenant, read).await
    }

    /// Returns the versions of a prompt that applications get; `None` if no version is shipped. `permit` is awaited before
    /// they are read from the database.
    ///
    /// # Errors
    ///
    /// Fails when the permit is refused, or when the database fails.
    pub async fn prompt_versions(
        &self,
        tenant: Uuid,
        project: Uuid,
        name: &str,
        permit: impl AsyncFnOnce() -> Result<KeyedPermit<Uuid>>,
    ) -> Result<Option<Arc<ServedVersions>>> {
        let key = (tenant, project, name.to_owned());
        if let Some(cached) = self.prompt_versions.cached(&key) {
            return Ok(cached);
        }
        let _permit = permit().await?;
        let read = async || ServedVersions::read(self.db.current(), tenant, project, name).await;
        self.prompt_versions.get(key, read).await
    }

    /// Returns the metrics whose scores count in tests and watches of a tenant's prompts.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn scored_metrics(&self, tenant: Uuid) -> Result<Arc<ScoredMetrics>> {
        let read = async || Ok(Arc::new(ScoredMetrics::read(self.db.current(), tenant).await?));
        self.scored_metrics.get(tenant, read).await
    }
}

/// The version of the cached data and the time at which it was confirmed: together they decide whether entries are
/// valid.
struct CacheValidity {
    /// Incremented with every change.
    version: AtomicU64,
    started: Instant,
    /// Start of the last successful read of the version.
    version_read_at: Mutex<Option<Instant>>,
}

impl Default for CacheValidity {
    fn default() -> Self {
        Self { version: AtomicU64::new(1), started: Instant::now(), version_read_at: Mutex::new(None) }
    }
}

impl CacheValidity {
    fn invalidate(&self) {
        self.version.fetch_add(1, SeqCst);
    }

    fn record_read(&self, at: Instant) {
        *self.version_read_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// Returns whether data read at `read` in `version` is still valid.
    fn is_valid(&self, version: u64, read: Instant) -> bool {
        if version != self.version.load(SeqCst) {
            return false;
        }
        let version_read_at = *self.version_read_at.lock().unwrap_or_else(PoisonError::into_inner);
        version_read_at.unwrap_or(self.started).max(read).elapsed() < MAX_AGE
    }
}

/// Cached values by key, each with its time and version.
struct VersionedCache<K, V> {
    validity: Arc<CacheValidity>,
    /// Whether a value may be cached: missing rows may be created without a new version.
    is_cacheable: fn(&V) -> bool,
    cache: Cache<K, (u64, Instant, V)>,
}

impl<K, V> VersionedCache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn new(validity: &Arc<CacheValidity>, is_cacheable: fn(&V) -> bool) -> Self {
        let cache = Cache::builder().max_capacity(MAX_ENTRIES).time_to_idle(Duration::from_secs(600)).build();
        Self { validity: Arc::clone(validity), is_cacheable, cache }
    }

    /// Creates a cache of values of different sizes, which has at most `max_bytes`.
    fn limited(validity: &Arc<CacheValidity>, max_bytes: u64, bytes: fn(&V) -> usize) -> Self {
        let cache = Cache::builder()
            .weigher(move |_, (_, _, value): &(u64, Instant, V)| {
                u32::try_from(bytes(value)).unwrap_or(u32::MAX)
            })
            .max_capacity(max_bytes)
            .time_to_idle(Duration::from_secs(600))
            .build();
        Self { validity: Arc::clone(validity), is_cacheable: |_| true, cache }
    }

    /// Returns the cached value, else the result of `read`.
    async fn get<F: Future<Output = Result<V, DbError>>>(
        &self,
        key: K,
        read: impl FnOnce() -> F,
    ) -> Result<V> {
        if let Some(value) = self.cached(&key) {
            return Ok(value);
        }
        // Read before the data, so that a concurrent change invalidates the entry.
        let version = self.validity.version.load(SeqCst);
        let at = Instant::now();
        let value = read().await?;
        if (self.is_cacheable)(&value) {
            self.cache.insert(key, (version, at, value.clone()));
        }
        Ok(value)
    }

    /// Returns the cached value if it is valid.
    fn cached(&self, key: &K) -> Option<V> {
        let (version, at, value) = self.cache.get(key)?;
        self.validity.is_valid(version, at).then_some(value)
    }

    fn put(&self, key: K, version: u64, value: V) {
        self.cache.insert(key, (version, Instant::now(), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn value_changed_during_read_is_not_cached() {
        let validity = Arc::new(CacheValidity::default());
        let memory = VersionedCache::<u8, u8>::new(&validity, |_| true);
        let read_during_change = memory.get(1, async || {
            validity.invalidate();
            Ok(1)
        });
        assert_eq!(read_during_change.await.unwrap(), 1);
        assert_eq!(memory.get(1, async || Ok(2)).await.unwrap(), 2);
        assert_eq!(memory.get(1, async || Ok(3)).await.unwrap(), 2);
        validity.invalidate();
        assert_eq!(memory.get(1, async || Ok(4)).await.unwrap(), 4);
    }

    #[tokio::test]
    async fn cache_expires_when_version_is_not_read() {
        let validity = CacheValidity::default();
        let old = Instant::now().checked_sub(Duration::from_secs(2)).unwrap();
        let version = validity.version.load(SeqCst);
        let never_read = CacheValidity { started: old, ..CacheValidity::default() };
        assert!(!never_read.is_valid(version, old));
        assert!(never_read.is_valid(version, Instant::now()));
        never_read.record_read(Instant::now());
        assert!(never_read.is_valid(version, old));
    }
}
