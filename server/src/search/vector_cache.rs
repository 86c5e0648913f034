//! The vectors of projects in memory, for SQLite.
//!
//! A project is loaded when it is first searched, and updated at each search, so that a search sees all
//! commits of all processes. The total memory is bounded: the least recently searched projects are
//! dropped, and a project that is too large alone is not kept. Projects are loaded one after the other,
//! and their size is updated as they grow.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use moka::sync::Cache;
use store::{
    Db, DbError,
    vectors::{Arrival, arrivals, count, rows_of},
};
use tokio::{
    sync::{Mutex, MutexGuard, Semaphore},
    task::spawn_blocking,
};
use uuid::Uuid;

use super::vector_block::{VECTORS_PER_BLOCK, VectorBlock};

/// Number of vectors read at once.
pub const VECTORS_PER_READ: usize = 2 * VECTORS_PER_BLOCK;
/// Number of vectors above which sorting runs on a blocking thread.
const MAX_INLINE_SORT: usize = 32;

/// Bytes that a project takes without its vectors.
const PROJECT_BASE_BYTES: usize = 512;

/// The cache of projects.
pub struct VectorCache {
    projects: Projects,
    capacity: usize,
    /// Limits the concurrent loading of projects to one.
    loading: Semaphore,
}

/// Projects by tenant and ID.
type Projects = Cache<(Uuid, Uuid), Arc<CachedProject>>;

/// The vectors of a project at one point in time.
pub enum ProjectVectors {
    /// All vectors.
    Loaded(Vec<Arc<VectorBlock>>),
    /// There are too many vectors to keep them.
    TooLarge,
}

#[derive(Default)]
struct CachedProject {
    loaded: Mutex<LoadedProject>,
    bytes: AtomicUsize,
}

#[derive(Default)]
struct LoadedProject {
    blocks: Vec<Arc<VectorBlock>>,
    /// Number of vectors at which the project was found to be too large.
    too_large: Option<usize>,
}

impl VectorCache {
    /// Creates an index with a maximum memory in bytes.
    pub fn new(capacity: usize) -> Self {
        let projects = Cache::builder()
            .max_capacity(u64::try_from(capacity).unwrap_or(u64::MAX))
            .weigher(|_, it: &Arc<CachedProject>| {
                u32::try_from(PROJECT_BASE_BYTES + it.bytes.load(Ordering::Relaxed)).unwrap_or(u32::MAX)
            })
            .build();
        Self { projects, capacity, loading: Semaphore::new(1) }
    }

    /// Returns the memory in use in bytes.
    pub fn bytes(&self) -> u64 {
        self.projects.weighted_size()
    }

    /// Returns the vectors of a project as committed now.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn snapshot(&self, db: &Db, tenant: Uuid, project: Uuid) -> Result<ProjectVectors, DbError> {
        let key = (tenant, project);
        let cached = self.projects.get_with(key, Arc::default);
        let loaded = cached.loaded.lock().await;
        let mut update = ProjectUpdate { projects: &self.projects, key, cached: &cached, loaded };
        let loaded = &mut update.loaded;
        if let Some(before) = loaded.too_large {
            if count(db, tenant, project).await? > before / 2 {
                return Ok(ProjectVectors::TooLarge);
            }
            loaded.too_large = None;
        }
        if !update
            .load_new_vectors(db, &self.loading, self.capacity.saturating_sub(PROJECT_BASE_BYTES))
            .await?
        {
            update.loaded.blocks = Vec::new();
            update.loaded.too_large = Some(count(db, tenant, project).await?);
        } else {
            update.loaded.drop_deleted(db, tenant, project).await?;
        }
        Ok(match update.loaded.too_large {
            Some(_) => ProjectVectors::TooLarge,
            None => ProjectVectors::Loaded(update.loaded.blocks.clone()),
        })
    }
}

/// A project that is being updated. Its size is re-measured after each addition, and when the search
/// ends or is cancelled.
struct ProjectUpdate<'a> {
    projects: &'a Projects,
    key: (Uuid, Uuid),
    cached: &'a Arc<CachedProject>,
    loaded: MutexGuard<'a, LoadedProject>,
}

impl Drop for ProjectUpdate<'_> {
    fn drop(&mut self) {
        self.update_size();
    }
}

impl ProjectUpdate<'_> {
    fn update_size(&self) {
        let bytes = self.loaded.bytes();
        if self.cached.bytes.swap(bytes, Ordering::Relaxed) != bytes {
            // Inserting measures the size.
            self.projects.insert(self.key, Arc::clone(self.cached));
            self.projects.run_pending_tasks();
        }
    }
    /// Adds new vectors. Returns false when they do not fit.
    async fn load_new_vectors(
        &mut self,
        db: &Db,
        loading: &Semaphore,
        max_bytes: usize,
    ) -> Result<bool, DbError> {
        let (tenant, project) = self.key;
        let mut loading_permit = None;
        loop {
            let last = self.loaded.blocks.last().and_then(|it| it.last()).map(|it| it.row);
            let mut read = arrivals(db, tenant, project, last.unwrap_or(i64::MIN), VECTORS_PER_READ).await?;
            let is_last = read.len() < VECTORS_PER_READ;
            if last.is_some() {
                let is_known =
                    self.loaded.blocks.last().zip(read.first()).is_some_and(|(it, row)| it.ends_with(row));
                if !is_known {
                    // The last row was deleted, and its ID may have been reused.
                    self.loaded.blocks.clear();
                    continue;
                }
                read.remove(0);
            }
            self.loaded.add(read).await?;
            self.update_size();
            if self.loaded.bytes() > max_bytes {
                return Ok(false);
            }
            if is_last {
                return Ok(true);
            }
            if loading_permit.is_none() {
                loading_permit = loading.acquire().await.ok();
            }
        }
    }
}

impl LoadedProject {
    fn bytes(&self) -> usize {
        self.blocks.iter().map(|it| it.bytes()).sum()
    }

    fn len(&self) -> usize {
        self.blocks.iter().map(|it| it.len()).sum()
    }

    async fn add(&mut self, arrivals: Vec<Arrival>) -> Result<(), DbError> {
        if arrivals.len() > MAX_INLINE_SORT {
            let blocks = spawn_blocking(move || {
                arrivals.chunks(VECTORS_PER_BLOCK).map(VectorBlock::of).map(Arc::new).collect()
            });
            let mut blocks: Vec<Arc<VectorBlock>> = blocks
                .await
                .map_err(|it| DbError::Custom(format!("reading vectors was interrupted: {it}")))?;
            self.blocks.append(&mut blocks);
            return Ok(());
        }
        for arrival in &arrivals {
            if self.blocks.last().is_none_or(|it| it.is_full()) {
                self.blocks.push(Arc::default());
            }
            if let Some(block) = self.blocks.last_mut() {
                Arc::make_mut(block).push(arrival);
            }
        }
        Ok(())
    }

    /// Drops deleted vectors, if there are fewer in the database than in memory.
    async fn drop_deleted(&mut self, db: &Db, tenant: Uuid, project: Uuid) -> Result<(), DbError> {
        if count(db, tenant, project).await? >= self.len() {
            return Ok(());
        }
        let rows = rows_of(db, tenant, project).await?;
        let is_there = |row: i64| rows.binary_search(&row).is_ok();
        for block in &mut self.blocks {
            let remaining = block.retaining(|it| is_there(it.row));
            if remaining.len() < block.len() {
                *block = Arc::new(remaining);
            }
        }
        self.blocks.retain(|it| it.len() > 0);
        Ok(())
    }
}
