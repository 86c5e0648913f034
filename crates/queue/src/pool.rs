//! Worker pools: the workers of one pool never wait for those of another.

use std::hash::{Hash, Hasher};

/// Workers for some kinds of jobs.
#[derive(Clone, Copy, Debug)]
pub struct WorkerPool {
    /// The word in the column `lane`. Never changed once released.
    pub name: &'static str,
    /// Jobs that one process runs at once.
    pub concurrency: usize,
    /// Jobs of one tenant that one process runs at once. Less than `concurrency` where jobs that wait for a
    /// provider or take long would leave no worker to other tenants.
    pub concurrency_per_tenant: usize,
    /// Jobs of one tenant that a worker claims at once.
    pub batch: u64,
}

impl PartialEq for WorkerPool {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for WorkerPool {}

impl Hash for WorkerPool {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
