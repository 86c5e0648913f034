//! Workers, which claim jobs, run them with a heartbeat, and store the results.

use std::{sync::Arc, time::Duration};

use entities::job;
use futures::FutureExt;
use store::{Db, DbError};
use tokio::sync::{Mutex, Notify};
use uuid::Uuid;

use crate::{
    claim::{LEASE_MICROS, candidates, claim, finish, heartbeat, release_claim, release_expired},
    concurrency::{ConcurrencyLimits, ConcurrencyPermit},
    job::JobResult,
    pool::WorkerPool,
    registry::Registry,
};

/// The interface that workers require from the process in which they run.
pub trait Context: Send + Sync + Sized + 'static {
    /// Returns the database.
    fn db(&self) -> &Db;

    /// Returns the current time in microseconds since the epoch.
    fn now(&self) -> i64;

    /// Returns the job kinds that the process runs.
    fn registry(&self) -> &Registry<Self>;

    /// Returns the concurrency limits, by name of the pool and tenant.
    fn working(&self) -> &ConcurrencyLimits<(&'static str, Uuid)>;

    /// Spawns a task; the process waits for it before it stops.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Waits for `time`, or until the process stops. Returns whether it stops.
    fn pause(&self, time: Duration) -> impl Future<Output = bool> + Send;

    /// Returns whether the process is stopping.
    fn is_stopping(&self) -> bool;

    /// Records the result of an attempt in the process's metrics.
    fn ended(&self, kind: &str, outcome: &JobResult);
}

/// Interval at which an idle pool looks for jobs, unless it is woken.
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Interval at which jobs with expired leases are released.
const RELEASE_INTERVAL: Duration = Duration::from_secs(10);

/// The lock under which a worker of a pool looks for jobs. Only one does at a time, so idle workers send no
/// statements.
struct PollLock {
    lock: Mutex<()>,
    /// Notified when a job was enqueued, or a permit of a tenant was returned, so that the tenant's jobs can be claimed.
    wake_up: Arc<Notify>,
    /// Interval at which an idle pool looks for jobs.
    interval: Duration,
}

/// Starts the workers of every pool and the release of jobs with expired leases. They stop with the process.
pub fn start<C: Context>(context: &Arc<C>) {
    start_polling_every(IDLE_POLL_INTERVAL, context);
}

/// Starts the workers as [`start`] does, with idle pools that look for jobs at this interval unless they are woken.
pub fn start_polling_every<C: Context>(interval: Duration, context: &Arc<C>) {
    for &pool in context.registry().pools() {
        let wake_up = context.registry().wake_ups().of(pool);
        let poll = Arc::new(PollLock { lock: Mutex::default(), wake_up, interval });
        for _ in 0..pool.concurrency {
            let (worker, poll) = (Arc::clone(context), Arc::clone(&poll));
            context.spawn(async move { work(&worker, pool, &poll).await });
        }
    }
    let releaser = Arc::clone(context);
    context.spawn(async move {
        while !releaser.pause(RELEASE_INTERVAL).await {
            let released =
                releaser.db().health.while_reachable(release_expired(releaser.db(), releaser.now()));
            match released.await.unwrap_or_else(|it| Err(it.into())) {
                Ok(0) => {}
                Ok(n) => tracing::warn!(jobs = n, "released {n} jobs with expired leases"),
                Err(error) => tracing::warn!(%error, "could not release jobs with expired leases"),
            }
        }
    });
}

/// Runs all due jobs sequentially. Returns their number.
///
/// # Errors
/// Fails when the database fails.
pub async fn drain<C: Context>(context: &Arc<C>) -> Result<usize, DbError> {
    let mut ran = 0;
    let mut last = Uuid::nil();
    loop {
        let mut any_ran = false;
        for &pool in context.registry().pools() {
            let (jobs, _permit) = claim_due(context, pool, &mut last).await?;
            for job in jobs {
                any_ran = true;
                ran += 1;
                run(context, job).await;
            }
        }
        if !any_ran {
            return Ok(ran);
        }
    }
}

async fn work<C: Context>(context: &Arc<C>, pool: &'static WorkerPool, poll: &PollLock) {
    let mut last = Uuid::nil();
    // No job is claimed while the server stops: released jobs are due immediately.
    while let Some((jobs, permit)) = next_jobs(context, pool, poll, &mut last).await {
        let wait = jobs.first().map_or(Duration::ZERO, |it| gathering_wait(pool, it, context.now()));
        if !wait.is_zero() {
            context.pause(wait).await;
        }
        for job in jobs {
            if context.is_stopping() {
                if let Err(error) = release_claim(context.db(), &job, context.now()).await {
                    tracing::warn!(%error, "could not release a job; its lease will expire");
                }
                continue;
            }
            if context.db().health.while_reachable(Box::pin(run(context, job))).await.is_err() {
                tracing::warn!(
                    "a job was interrupted because the database is unreachable; it will be retried"
                );
            }
        }
        drop(permit);
        if pool.concurrency_per_tenant < pool.concurrency {
            poll.wake_up.notify_one();
        }
    }
}

/// Returns how long a claimed job waits until it runs. A job that has waited in the queue does not wait again: otherwise
/// the time would limit the number of jobs per second when many wait.
fn gathering_wait(pool: &WorkerPool, job: &job::Model, now: i64) -> Duration {
    let age = u64::try_from(now - job.created_at).unwrap_or(0);
    pool.gathering_time.saturating_sub(Duration::from_micros(age))
}

/// Waits for due jobs of a pool and claims them. Returns `None` when the server stops.
async fn next_jobs<'a, C: Context>(
    context: &'a Arc<C>,
    pool: &'static WorkerPool,
    poll: &PollLock,
    last: &mut Uuid,
) -> Option<ClaimedJobs<'a>> {
    let _polling = poll.lock.lock().await;
    while !context.is_stopping() {
        // The health check has logged the reason already.
        let health = &context.db().health;
        if health.unavailable().is_some() {
            context.pause(IDLE_POLL_INTERVAL).await;
            continue;
        }
        match health.while_reachable(claim_due(context, pool, last)).await.unwrap_or_else(|it| Err(it.into()))
        {
            Ok(claimed) if !claimed.0.is_empty() => return Some(claimed),
            Ok(_) => {}
            Err(error) => tracing::warn!(pool = pool.name, %error, "could not claim jobs"),
        }
        tokio::select! {
            _ = context.pause(poll.interval) => {}
            () = poll.wake_up.notified() => {}
        }
    }
    None
}

/// A permit of a pool to run jobs of a tenant.
type TenantPermit<'a> = ConcurrencyPermit<'a, (&'static str, Uuid)>;

/// Claimed jobs, and the permit for their tenant.
type ClaimedJobs<'a> = (Vec<job::Model>, Option<TenantPermit<'a>>);

/// Claims due jobs of the next tenant after `last` that has a free permit, and stores the tenant in `last`.
async fn claim_due<'a, C: Context>(
    context: &'a Arc<C>,
    pool: &'static WorkerPool,
    last: &mut Uuid,
) -> Result<ClaimedJobs<'a>, DbError> {
    let (now, limit) = (context.now(), pool.concurrency_per_tenant);
    let busy: Vec<Uuid> = context
        .working()
        .all()
        .into_iter()
        .filter(|((its, _), taken)| *its == pool.name && *taken >= limit)
        .map(|((_, tenant), _)| tenant)
        .collect();
    for tenant in candidates(context.db(), pool, now, *last, &busy, 8).await? {
        let Some(permit) = context.working().take(&(pool.name, tenant), limit) else { continue };
        let jobs = claim(context.db(), tenant, pool, now, pool.batch).await?;
        if !jobs.is_empty() {
            *last = tenant;
            return Ok((jobs, Some(permit)));
        }
    }
    Ok((Vec::new(), None))
}

async fn run<C: Context>(context: &Arc<C>, job: job::Model) {
    if !still_claimed(context, &job).await {
        tracing::warn!(job.id = %job.id, "the lease expired before the job ran; another worker has the job");
        return;
    }
    let outcome = run_with_heartbeat(context, &job).await;
    if let JobResult::Retry { why } | JobResult::Discard { why } = &outcome {
        tracing::warn!(job.kind = job.kind, job.id = %job.id, job.attempts, why, "job {} failed", job.kind);
    }
    context.ended(&job.kind, &outcome);
    match finish(context.db(), &job, &outcome, context.now()).await {
        Ok(true) => {}
        Ok(false) => tracing::warn!(job.id = %job.id, "the lease was lost; another worker has the job"),
        Err(error) => {
            tracing::warn!(job.id = %job.id, %error, "could not store the result of a job; it will be retried")
        }
    }
}

/// Returns whether the job is still claimed. Jobs before it in the batch may have taken longer than the lease.
async fn still_claimed<C: Context>(context: &Arc<C>, job: &job::Model) -> bool {
    let now = context.now();
    if job.lease_until.is_some_and(|until| until - now > LEASE_MICROS / 2) {
        return true;
    }
    match heartbeat(context.db(), job, now).await {
        Ok(held) => held,
        Err(error) => {
            tracing::warn!(%error, "could not send the heartbeat of a job");
            false
        }
    }
}

async fn run_with_heartbeat<C: Context>(context: &Arc<C>, job: &job::Model) -> JobResult {
    let work =
        std::panic::AssertUnwindSafe(context.registry().run(context, job, context.now())).catch_unwind();
    let beat = Duration::from_micros(LEASE_MICROS.unsigned_abs() / 3);
    match while_held(work, beat, || heartbeat(context.db(), job, context.now())).await {
        Some(Ok(outcome)) => outcome,
        Some(Err(_)) => JobResult::Retry { why: "the job panicked".to_owned() },
        // Another worker has claimed the job.
        None => JobResult::Retry { why: "the lease was lost".to_owned() },
    }
}

/// Waits for the work and calls `heartbeat` regularly. Returns `None` once that returns that the claim is lost.
async fn while_held<T, H: Future<Output = Result<bool, DbError>>>(
    work: impl Future<Output = T>,
    interval: Duration,
    heartbeat: impl Fn() -> H,
) -> Option<T> {
    tokio::pin!(work);
    loop {
        // The work goes on while a heartbeat waits for a connection, because the work itself may be next to get one.
        let held = tokio::select! {
            outcome = &mut work => return Some(outcome),
            held = async {
                tokio::time::sleep(interval).await;
                heartbeat().await
            } => held,
        };
        match held {
            Ok(false) => return None,
            Ok(true) => {}
            Err(error) => tracing::warn!(%error, "could not send the heartbeat of a job"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT_INTERVAL: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn work_gets_the_connection_that_its_heartbeat_waits_for() {
        let connection = tokio::sync::Semaphore::new(1);
        let other = async {
            let _taken = connection.acquire().await.unwrap();
            tokio::time::sleep(3 * BEAT_INTERVAL / 2).await;
        };
        let work = async {
            let _taken = connection.acquire().await.unwrap();
            tokio::time::sleep(3 * BEAT_INTERVAL).await;
        };
        let heartbeat = || async {
            let _taken = connection.acquire().await.unwrap();
            Ok(true)
        };
        let both = async { tokio::join!(other, while_held(work, BEAT_INTERVAL, heartbeat)) };
        let done = tokio::time::timeout(Duration::from_secs(10), both).await;
        assert_eq!(done.expect("the work waits for its heartbeat").1, Some(()));
    }

    #[tokio::test]
    async fn work_ends_when_its_claim_is_lost() {
        let beats = std::cell::Cell::new(0);
        let heartbeat = || async {
            beats.set(beats.get() + 1);
            Ok(beats.get() < 3)
        };
        assert_eq!(while_held(std::future::pending::<()>(), BEAT_INTERVAL, heartbeat).await, None);
        assert_eq!(beats.get(), 3);
    }

    #[test]
    fn jobs_wait_until_they_have_the_gathering_time_as_age() {
        let pool = WorkerPool {
            name: "gathering",
            concurrency: 1,
            concurrency_per_tenant: 1,
            batch: 1,
            wakes_after_commit: true,
            gathering_time: Duration::from_millis(200),
        };
        let job = job::Model {
            tenant_id: Uuid::nil(),
            id: Uuid::nil(),
            lane: pool.name.to_owned(),
            kind: "example".to_owned(),
            payload: String::new(),
            status: "running".to_owned(),
            run_at: 1_000_000,
            attempts: 1,
            max_attempts: 1,
            lease_until: None,
            fence: 1,
            last_error: None,
            created_at: 1_000_000,
        };
        // A clock of another process may be behind.
        for (age, wait) in [(-50_000, 200), (0, 200), (150_000, 50), (200_000, 0), (9_000_000, 0)] {
            let expected = Duration::from_millis(wait);
            assert_eq!(gathering_wait(&pool, &job, job.created_at + age), expected, "{age} µs");
        }
        let other = WorkerPool { gathering_time: Duration::ZERO, ..pool };
        assert_eq!(gathering_wait(&other, &job, job.created_at), Duration::ZERO);
    }
}
