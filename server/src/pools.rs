//! The worker pools, each for jobs that take about as long as one another.

use queue::WorkerPool;

/// Bookkeeping after ingest: short, without requests to other services.
pub const INGEST: WorkerPool = one_worker("ingest");
/// Totals of long traces, which read thousands of rows.
pub const SUMS: WorkerPool = one_worker("sums");
/// Removal of expired and deleted rows.
pub const HOUSEKEEPING: WorkerPool = one_worker("housekeeping");
/// Requests to embedding providers. A job takes in jobs that wait, and can take in none that is claimed.
pub const EMBEDDING: WorkerPool =
    WorkerPool { name: "embedding", concurrency: 4, concurrency_per_tenant: 4, batch: 1 };
/// Code evaluators, and the evaluations of bulk runs. Batches of different tenants run at the same time, so that a
/// tenant with slow evaluations does not delay the others.
pub const EVALUATIONS: WorkerPool =
    WorkerPool { name: "evaluations", concurrency: 4, concurrency_per_tenant: 1, batch: 4 };
/// Requests to judge models.
pub const JUDGES: WorkerPool =
    WorkerPool { name: "judges", concurrency: 16, concurrency_per_tenant: 8, batch: 1 };

const fn one_worker(name: &'static str) -> WorkerPool {
    WorkerPool { name, concurrency: 1, concurrency_per_tenant: 1, batch: 16 }
}
