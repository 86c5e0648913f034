//! The durable queue of background jobs. It is independent of the kinds of jobs.
//!
//! A job is enqueued in the transaction that makes it necessary. A worker claims jobs in two steps: it selects
//! tenants that have due jobs, without a lock, and then locks a few jobs of one tenant. This treats tenants
//! equally and works on a database distributed by tenant. A claim is a lease with a fencing token: a worker that
//! has lost its lease cannot finish the job. Finished jobs are deleted; jobs that failed too often stay with the
//! status `dead`.
//!
//! **Invariant:** no transaction is open while a job runs.

mod claim;
mod concurrency;
mod depth;
mod job;
mod pool;
mod registry;
mod wake_ups;
pub mod worker;

pub use claim::{
    LEASE_MICROS, candidates, claim, finish, heartbeat, merge_waiting, release_claim, release_expired,
};
pub use concurrency::{ConcurrencyLimits, ConcurrencyPermit};
pub use depth::{Depth, depths};
pub use job::{Job, JobResult, enqueue, enqueue_all, enqueue_by, enqueue_once, new_job};
pub use pool::WorkerPool;
pub use registry::{Registry, RunJob};
pub use wake_ups::WakeUps;
