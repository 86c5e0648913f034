//! The worker pools, each for jobs that take about as long as one another.

use std::time::Duration;

use queue::WorkerPool;

/// Traces that become ready, with the evaluations that are executed then. Jobs of different tenants run at the same time,
/// so that a tenant with slow evaluations does not delay the others. The batch is one job, because a job merges waiting
/// jobs.
pub const INGEST_POOL: WorkerPool = WorkerPool {
    name: "ingest",
    concurrency: 4,
    concurrency_per_tenant: 1,
    batch: 1,
    wakes_after_commit: false,
    gathering_time: Duration::ZERO,
};
/// Joining of log records with spans. The log records of 200 ms are joined together.
pub const LOGS_POOL: WorkerPool = WorkerPool {
    name: "logs",
    concurrency: 2,
    concurrency_per_tenant: 1,
    batch: 1,
    wakes_after_commit: true,
    gathering_time: Duration::from_millis(200),
};
/// Totals of long traces, which read thousands of rows.
pub const SUMS_POOL: WorkerPool = one_worker("sums");
/// Removal of expired and deleted rows.
pub const HOUSEKEEPING_POOL: WorkerPool = one_worker("housekeeping");
/// Detection of anomalies, which computes for up to a second.
pub const ANOMALIES_POOL: WorkerPool = WorkerPool {
    name: "anomalies",
    concurrency: 2,
    concurrency_per_tenant: 1,
    batch: 1,
    wakes_after_commit: false,
    gathering_time: Duration::ZERO,
};
/// Requests to embedding providers. The batch is one job, because a job merges waiting jobs, and claimed jobs cannot be
/// merged.
pub const EMBEDDING_POOL: WorkerPool = WorkerPool {
    name: "embedding",
    concurrency: 4,
    concurrency_per_tenant: 4,
    batch: 1,
    wakes_after_commit: false,
    gathering_time: Duration::ZERO,
};
/// Code evaluators, and the evaluations of bulk runs. Batches of different tenants run at the same time, so that a
/// tenant with slow evaluations does not delay the others.
pub const EVALUATIONS_POOL: WorkerPool = WorkerPool {
    name: "evaluations",
    concurrency: 4,
    concurrency_per_tenant: 1,
    batch: 4,
    wakes_after_commit: false,
    gathering_time: Duration::ZERO,
};
/// Requests to judge models.
pub const JUDGES_POOL: WorkerPool = WorkerPool {
    name: "judges",
    concurrency: 16,
    concurrency_per_tenant: 8,
    batch: 1,
    wakes_after_commit: false,
    gathering_time: Duration::ZERO,
};
/// Requests to webhooks. Most workers wait for receivers; a tenant whose receivers hang leaves some to others.
pub const WEBHOOKS_POOL: WorkerPool = WorkerPool {
    name: "webhooks",
    concurrency: 64,
    concurrency_per_tenant: 56,
    batch: 1,
    wakes_after_commit: true,
    gathering_time: Duration::ZERO,
};

/// Recording of failures. Every commit of failing spans enqueues a job, and a job merges those that wait: the failures of
/// 200 ms share a transaction, and so do the deliveries to each webhook. Most workers gather or wait for the lock of a
/// project.
pub const FAILURES_POOL: WorkerPool = WorkerPool {
    name: "failures",
    concurrency: 16,
    concurrency_per_tenant: 1,
    batch: 1,
    wakes_after_commit: true,
    gathering_time: Duration::from_millis(200),
};

/// Triggers of policies, and control actions, which wait for a provider.
pub const ACTIONS_POOL: WorkerPool = WorkerPool {
    name: "actions",
    concurrency: 16,
    concurrency_per_tenant: 8,
    batch: 1,
    wakes_after_commit: true,
    gathering_time: Duration::ZERO,
};

/// Counting of scores of prompts. The jobs of a tenant wait for the lock of the same prompt, so one runs at a time and
/// merges those that wait.
pub const PROMPT_SCORES_POOL: WorkerPool = WorkerPool {
    name: "prompt_scores",
    concurrency: 4,
    concurrency_per_tenant: 1,
    batch: 1,
    wakes_after_commit: true,
    gathering_time: Duration::from_millis(100),
};

/// Replay tests, which call a model for about a minute at a time.
pub const REPLAYS_POOL: WorkerPool = WorkerPool {
    name: "replays",
    concurrency: 4,
    concurrency_per_tenant: 2,
    batch: 1,
    wakes_after_commit: false,
    gathering_time: Duration::ZERO,
};

const fn one_worker(name: &'static str) -> WorkerPool {
    WorkerPool {
        name,
        concurrency: 1,
        concurrency_per_tenant: 1,
        batch: 16,
        wakes_after_commit: false,
        gathering_time: Duration::ZERO,
    }
}
