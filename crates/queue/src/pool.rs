//! Worker pools. Jobs of one pool do not wait for jobs of another.

use std::{
    hash::{Hash, Hasher},
    time::Duration,
};

/// The workers of some job kinds.
#[derive(Clone, Copy, Debug)]
pub struct WorkerPool {
    /// The name in the column `lane`. It must not change after a release.
    pub name: &'static str,
    /// Maximum number of jobs that a process runs concurrently.
    pub concurrency: usize,
    /// Maximum number of jobs of one tenant that a process runs concurrently. Less than `concurrency` for
    /// long jobs and jobs that wait for providers, so that workers remain for other tenants.
    pub concurrency_per_tenant: usize,
    /// Maximum number of jobs of one tenant that a worker claims in one statement.
    pub batch: u64,
    /// Whether a commit that enqueues a job wakes the pool. Jobs of other pools gather until the next poll, which costs
    /// fewer transactions.
    pub wakes_after_commit: bool,
    /// Minimum age of a job when it runs, so that a kind that merges waiting jobs has some to merge.
    pub gathering_time: Duration,
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
