//! The failure clusters of the projects that this process used last.
//!
//! Clustering compares a failure with all clusters of its project. A process keeps them from job to job, with the
//! version that they had in the database, and reads them again when another process changed them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use clustering::ClusterSet;
use uuid::Uuid;

/// Number of clusters that are kept, which take up to 4 KiB each.
const MAX_CACHED_CLUSTERS: usize = 16_384;
/// Minimum number of clusters that a project counts as, even if it has fewer.
const MIN_WEIGHT: usize = 16;

/// A tenant and a project.
type ProjectKey = (Uuid, Uuid);

/// Cluster sets by project, each with its version.
#[derive(Debug, Default)]
pub struct ClusterCache(Mutex<CachedSets>);

#[derive(Debug, Default)]
struct CachedSets {
    by_project: HashMap<ProjectKey, CachedSet>,
    /// Number of clusters of all sets.
    weight: usize,
    /// Incremented with every use.
    uses: u64,
}

#[derive(Debug)]
struct CachedSet {
    set: ClusterSet<Uuid>,
    version: i64,
    weight: usize,
    last_use: u64,
}

impl ClusterCache {
    /// Removes the clusters of a project and returns them, if they are cached with this version. The caller changes
    /// them, and puts them back when the changes are committed.
    pub fn take(&self, tenant: Uuid, project: Uuid, version: i64) -> Option<ClusterSet<Uuid>> {
        let cached = self.sets().remove(&(tenant, project))?;
        (cached.version == version).then_some(cached.set)
    }

    /// Keeps the clusters of a project. Removes those of the projects that were used least recently if there are too
    /// many clusters.
    pub fn put(&self, tenant: Uuid, project: Uuid, version: i64, set: ClusterSet<Uuid>) {
        let weight = set.ids().count().max(MIN_WEIGHT);
        let mut sets = self.sets();
        sets.remove(&(tenant, project));
        sets.uses += 1;
        let last_use = sets.uses;
        sets.weight += weight;
        sets.by_project.insert((tenant, project), CachedSet { set, version, weight, last_use });
        while sets.weight > MAX_CACHED_CLUSTERS {
            let oldest = sets.by_project.iter().min_by_key(|it| it.1.last_use).map(|it| *it.0);
            let Some(oldest) = oldest else { break };
            sets.remove(&oldest);
        }
    }

    fn sets(&self) -> MutexGuard<'_, CachedSets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedSets {
    fn remove(&mut self, key: &ProjectKey) -> Option<CachedSet> {
        let cached = self.by_project.remove(key)?;
        self.weight -= cached.weight;
        Some(cached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_of_another_version_is_dropped() {
        let (cache, tenant, project) = (ClusterCache::default(), Uuid::from_u128(1), Uuid::from_u128(2));
        cache.put(tenant, project, 3, ClusterSet::default());
        assert!(cache.take(tenant, project, 4).is_none());
        assert!(cache.take(tenant, project, 3).is_none());
        cache.put(tenant, project, 3, ClusterSet::default());
        assert!(cache.take(Uuid::from_u128(9), project, 3).is_none());
        assert!(cache.take(tenant, project, 3).is_some());
    }

    #[test]
    fn least_recently_used_sets_are_removed() {
        let (cache, tenant) = (ClusterCache::default(), Uuid::from_u128(1));
        let many = MAX_CACHED_CLUSTERS / MIN_WEIGHT;
        for project in 0..=many {
            cache.put(tenant, Uuid::from_u128(project as u128), 0, ClusterSet::default());
        }
        assert!(cache.take(tenant, Uuid::from_u128(0), 0).is_none());
        assert!(cache.take(tenant, Uuid::from_u128(1), 0).is_some());
        assert_eq!(cache.sets().weight, (many - 1) * MIN_WEIGHT);
    }
}
