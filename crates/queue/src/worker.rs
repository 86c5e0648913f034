//! Workers: claim, run with a heartbeat, finish.

use std::{sync::Arc, time::Duration};

use entities::job;
use futures::FutureExt;
use store::{Db, DbError};
use tokio::sync::{Mutex, Notify};
use uuid::Uuid;

use super::{
    ConcurrencyLimits, ConcurrencyPermit, LEASE, Outcome, Registry, WorkerPool, candidates, claim, finish,
    give_back, heartbeat, rescue,
};

/// What workers need of the process that runs them.
pub trait Context: Send + Sync + Sized + 'static {
    /// Returns the database.
    fn db(&self) -> &Db;

    /// Returns the present, microseconds since the epoch.
    fn now(&self) -> i64;

    /// Returns the kinds of jobs that the process runs.
    fn registry(&self) -> &Registry<Self>;

    /// Returns the permits of tenants in pools, by the name of the pool.
    fn working(&self) -> &ConcurrencyLimits<(&'static str, Uuid)>;

    /// Runs a task that a stop of the process waits for.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Waits, but no longer than until the process stops. Returns whether it stops.
    fn pause(&self, time: Duration) -> impl Future<Output = bool> + Send;

    /// Returns whether the process is stopping.
    fn is_stopping(&self) -> bool;

    /// Notes the end of an attempt.
    fn ended(&self, kind: &str, outcome: &Outcome);
}

/// How long a pool with nothing to do waits before it looks again, unless woken.
const IDLE: Duration = Duration::from_millis(500);
/// Pause between searches for jobs whose worker is gone.
const RESCUE: Duration = Duration::from_secs(10);

/// Looking for work, which one worker of a pool does at a time: when there is none the others wait
/// for it, and cost nothing.
#[derive(Default)]
struct Look {
    turn: Mutex<()>,
    /// Somebody has let go of a tenant's turn, so that its work may be taken up.
    freed: Notify,
}

/// Starts the workers of every pool and the search for lost jobs; they stop with the context.
pub fn start<C: Context>(context: &Arc<C>) {
    for &pool in context.registry().pools() {
        let look = Arc::new(Look::default());
        for _ in 0..pool.concurrency {
            let (worker, look) = (Arc::clone(context), Arc::clone(&look));
            context.spawn(async move { work(&worker, pool, &look).await });
        }
    }
    let rescuer = Arc::clone(context);
    context.spawn(async move {
        while !rescuer.pause(RESCUE).await {
            let rescued = rescuer.db().health.while_reachable(rescue(rescuer.db(), rescuer.now()));
            match rescued.await.unwrap_or_else(|it| Err(it.into())) {
                Ok(0) => {}
                Ok(n) => tracing::warn!(jobs = n, "{n} jobs whose worker did not come back are ready again"),
                Err(error) => tracing::warn!(%error, "could not look for lost jobs"),
            }
        }
    });
}

/// Runs everything that is due now, one after the other; answers how many jobs ran.
///
/// # Errors
/// When the database fails.
pub async fn drain<C: Context>(context: &Arc<C>) -> Result<usize, DbError> {
    let mut ran = 0;
    let mut last = Uuid::nil();
    loop {
        let mut found = false;
        for &pool in context.registry().pools() {
            let (jobs, _turn) = due(context, pool, &mut last).await?;
            for job in jobs {
                found = true;
                ran += 1;
                run(context, job).await;
            }
        }
        if !found {
            return Ok(ran);
        }
    }
}

async fn work<C: Context>(context: &Arc<C>, pool: &'static WorkerPool, look: &Look) {
    let mut last = Uuid::nil();
    // Nothing more is claimed once the server stops: what was given back is due at once.
    while let Some((jobs, turn)) = found(context, pool, look, &mut last).await {
        for job in jobs {
            if context.is_stopping() {
                if let Err(error) = give_back(context.db(), &job, context.now()).await {
                    tracing::warn!(%error, "a job could not be given back; its lease will end by itself");
                }
                continue;
            }
            if context.db().health.while_reachable(Box::pin(run(context, job))).await.is_err() {
                tracing::warn!("a job was given up because the database can't be reached; it will run again");
            }
        }
        drop(turn);
        if pool.concurrency_per_tenant < pool.concurrency {
            look.freed.notify_one();
        }
    }
}

/// The next jobs of a pool, when there are some; nothing when the server stops.
async fn found<'a, C: Context>(
    context: &'a Arc<C>,
    pool: &'static WorkerPool,
    look: &Look,
    last: &mut Uuid,
) -> Option<Due<'a>> {
    let _looking = look.turn.lock().await;
    while !context.is_stopping() {
        // The health check has logged the reason already.
        let health = &context.db().health;
        if health.unavailable().is_some() {
            context.pause(IDLE).await;
            continue;
        }
        match health.while_reachable(due(context, pool, last)).await.unwrap_or_else(|it| Err(it.into())) {
            Ok(due) if !due.0.is_empty() => return Some(due),
            Ok(_) => {}
            Err(error) => tracing::warn!(pool = pool.name, %error, "could not claim jobs"),
        }
        tokio::select! {
            _ = context.pause(IDLE) => {}
            () = look.freed.notified() => {}
        }
    }
    None
}

/// A worker's place among those of its pool that work for a tenant.
type Turn<'a> = ConcurrencyPermit<'a, (&'static str, Uuid)>;

/// Jobs that are claimed, and the turn of their tenant.
type Due<'a> = (Vec<job::Model>, Option<Turn<'a>>);

/// Claims jobs of the next tenant after `last` that has some and has a turn, and remembers it there.
async fn due<'a, C: Context>(
    context: &'a Arc<C>,
    pool: &'static WorkerPool,
    last: &mut Uuid,
) -> Result<Due<'a>, DbError> {
    let (now, limit) = (context.now(), pool.concurrency_per_tenant);
    let busy: Vec<Uuid> = context
        .working()
        .all()
        .into_iter()
        .filter(|((its, _), taken)| *its == pool.name && *taken >= limit)
        .map(|((_, tenant), _)| tenant)
        .collect();
    for tenant in candidates(context.db(), pool, now, *last, &busy, 8).await? {
        let Some(turn) = context.working().take(&(pool.name, tenant), limit) else { continue };
        let jobs = claim(context.db(), tenant, pool, now, pool.batch).await?;
        if !jobs.is_empty() {
            *last = tenant;
            return Ok((jobs, Some(turn)));
        }
    }
    Ok((Vec::new(), None))
}

async fn run<C: Context>(context: &Arc<C>, job: job::Model) {
    if !still_held(context, &job).await {
        tracing::warn!(job.id = %job.id, "the lease ended before its turn came; another worker has the job");
        return;
    }
    let outcome = with_heartbeat(context, &job).await;
    if let Outcome::Retry { why } | Outcome::Discard { why } = &outcome {
        tracing::warn!(job.kind = job.kind, job.id = %job.id, job.attempts, why, "job {} did not succeed", job.kind);
    }
    context.ended(&job.kind, &outcome);
    match finish(context.db(), &job, &outcome, context.now()).await {
        Ok(true) => {}
        Ok(false) => tracing::warn!(job.id = %job.id, "the lease was lost; another worker has the job"),
        Err(error) => {
            tracing::warn!(job.id = %job.id, %error, "a job's end could not be stored; it will run again")
        }
    }
}

/// Whether the claim holds: those before it in its batch may have taken long.
async fn still_held<C: Context>(context: &Arc<C>, job: &job::Model) -> bool {
    let now = context.now();
    if job.lease_until.is_some_and(|until| until - now > LEASE / 2) {
        return true;
    }
    match heartbeat(context.db(), job, now).await {
        Ok(held) => held,
        Err(error) => {
            tracing::warn!(%error, "no heartbeat");
            false
        }
    }
}

async fn with_heartbeat<C: Context>(context: &Arc<C>, job: &job::Model) -> Outcome {
    let work =
        std::panic::AssertUnwindSafe(context.registry().run(context, job, context.now())).catch_unwind();
    tokio::pin!(work);
    let beat = Duration::from_micros(LEASE.unsigned_abs() / 3);
    loop {
        match tokio::time::timeout(beat, &mut work).await {
            Ok(Ok(outcome)) => return outcome,
            Ok(Err(_)) => return Outcome::Retry { why: "the job panicked".to_owned() },
            Err(_) => match heartbeat(context.db(), job, context.now()).await {
                // Whoever has it now will finish it.
                Ok(false) => return Outcome::Retry { why: "the lease was lost".to_owned() },
                Ok(true) => {}
                Err(error) => tracing::warn!(%error, "no heartbeat"),
            },
        }
    }
}
