//! Runs code evaluators: one task per tenant at a time, on few threads, for a bounded processor time.
//!
//! The regular expressions, schemas and documents of a tenant can take arbitrarily long. Three bounds
//! protect other tenants and a graceful shutdown: a task is interrupted after [`MAX_TASK_TIME`], a tenant that
//! has used up its share of the processor waits for its next grant, and all tasks are interrupted when the
//! server stops.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::ErrorCode;
use evaluators::interruption::interruptible;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    clock::{Clock, processor_time},
    error::{Result, problem, stopping},
};

/// Maximum processor time of one task: compiling an evaluator, or one evaluation.
pub const MAX_TASK_TIME: Duration = Duration::from_secs(3);
/// Maximum processor time of a task whose caller must not wait long: see [`TaskPermit::run_within`].
pub const MAX_SHORT_TASK_TIME: Duration = Duration::from_millis(250);
/// Time in microseconds for which a tenant gets no short tasks after one that ran out of time.
const SHORT_TASK_PAUSE_MICROS: i64 = 60_000_000;
/// Maximum unused processor time that a tenant accumulates, in microseconds.
const MAX_BALANCE_MICROS: i64 = 10_000_000;
/// The processor time that a tenant is granted, as a fraction of the time that passes: numerator and
/// denominator.
const GRANTED_SHARE: (i64, i64) = (1, 2);
/// Number of consecutive evaluations without enough time after which the eval rule is paused.
const MAX_CONSECUTIVE_TIMEOUTS: u32 = 5;
/// Maximum time that a request waits for its tenant's other tasks.
const MAX_REQUEST_WAIT: Duration = Duration::from_secs(10);
/// Number of tenants above which those with a full balance are dropped from memory.
const MAX_IDLE_TENANTS: usize = 1_000;

/// The reason why a task has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskFailure {
    /// The task took longer than [`MAX_TASK_TIME`].
    OutOfTime,
    /// The server stops; the task can be repeated by another process.
    Stopping,
    /// The task panicked.
    Panicked,
}

/// Runs code evaluators.
#[derive(Clone)]
pub struct CodeRunner(Arc<RunnerState>);

struct RunnerState {
    tenants: Mutex<HashMap<Uuid, TenantBalance>>,
    /// Consecutive evaluations that ran out of time, by tenant and eval rule.
    timeouts: Mutex<HashMap<(Uuid, Uuid), u32>>,
    threads: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    stopping: CancellationToken,
}

struct TenantBalance {
    /// Holds one permit, so that a tenant's tasks run one after the other.
    semaphore: Arc<Semaphore>,
    /// Unused processor time in microseconds; negative when the tenant used more than it was granted.
    balance: i64,
    /// The time of that balance, in microseconds since the epoch.
    updated_at: i64,
    /// The end of the pause after a short task that ran out of time, in microseconds since the epoch.
    short_tasks_from: i64,
}

/// The permit to run one task of a tenant on a thread.
pub struct TaskPermit {
    tenant: Uuid,
    runner: CodeRunner,
    _permits: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

impl CodeRunner {
    /// Creates a runner that uses half of the processors but at least two threads, so that one tenant
    /// cannot occupy all.
    pub fn new(processors: usize, clock: Arc<dyn Clock>, stopping: CancellationToken) -> Self {
        let threads = Arc::new(Semaphore::new((processors / 2).max(2)));
        Self(Arc::new(RunnerState {
            tenants: Mutex::default(),
            timeouts: Mutex::default(),
            threads,
            clock,
            stopping,
        }))
    }

    /// Returns when the tenant may use the processor again, in microseconds since the epoch; `None` if
    /// it may now.
    pub fn exhausted_until(&self, tenant: Uuid) -> Option<i64> {
        let now = self.0.clock.now();
        let mut tenants = self.0.lock();
        let tenant = RunnerState::tenant(&mut tenants, tenant, now);
        (tenant.balance < 0)
            .then(|| now + tenant.balance.saturating_neg().saturating_mul(GRANTED_SHARE.1) / GRANTED_SHARE.0)
    }

    /// Returns whether the tenant may run short tasks: it has used up no more than half of its processor time, and
    /// none of its short tasks ran out of time recently.
    pub fn allows_short_tasks(&self, tenant: Uuid) -> bool {
        let now = self.0.clock.now();
        let mut tenants = self.0.lock();
        let tenant = RunnerState::tenant(&mut tenants, tenant, now);
        tenant.balance >= MAX_BALANCE_MICROS / 2 && tenant.short_tasks_from <= now
    }

    /// Pauses the short tasks of the tenant.
    pub fn pause_short_tasks(&self, tenant: Uuid) {
        let now = self.0.clock.now();
        RunnerState::tenant(&mut self.0.lock(), tenant, now).short_tasks_from = now + SHORT_TASK_PAUSE_MICROS;
    }

    /// Counts an evaluation of an eval rule. Returns true when so many in a row ran out of time that the
    /// rule is to be paused.
    pub fn is_too_slow(&self, tenant: Uuid, rule: Uuid, timed_out: bool) -> bool {
        let mut timeouts = self.0.timeouts.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (tenant, rule);
        let count = if timed_out { timeouts.get(&key).map_or(1, |it| it + 1) } else { 0 };
        if timed_out && count < MAX_CONSECUTIVE_TIMEOUTS {
            timeouts.insert(key, count);
        } else {
            timeouts.remove(&key);
        }
        count >= MAX_CONSECUTIVE_TIMEOUTS
    }

    /// Waits for a permit to run one task of the tenant. Returns `None` when the server stops.
    pub async fn permit(&self, tenant: Uuid) -> Option<TaskPermit> {
        let semaphore = {
            let mut tenants = self.0.lock();
            Arc::clone(&RunnerState::tenant(&mut tenants, tenant, self.0.clock.now()).semaphore)
        };
        let permits = async {
            let tenant_permit = semaphore.acquire_owned().await.ok()?;
            Some((tenant_permit, Arc::clone(&self.0.threads).acquire_owned().await.ok()?))
        };
        let permits = tokio::select! {
            biased;
            () = self.0.stopping.cancelled() => return None,
            permits = permits => permits?,
        };
        Some(TaskPermit { tenant, runner: self.clone(), _permits: permits })
    }

    /// Waits for a permit on behalf of a request.
    ///
    /// # Errors
    ///
    /// Fails with `rate_limited` when the tenant's evaluators have used up their processor time, and
    /// with `overloaded` when the server stops.
    pub async fn request_permit(&self, tenant: Uuid) -> Result<TaskPermit> {
        let busy = || {
            problem(
                ErrorCode::RateLimited,
                "this tenant's evaluators use all of the processor time that they are granted; try again in a \
                 few seconds, or simplify their patterns and schemas",
            )
        };
        if self.exhausted_until(tenant).is_some() {
            return Err(busy());
        }
        match timeout(MAX_REQUEST_WAIT, self.permit(tenant)).await {
            Ok(Some(permit)) => Ok(permit),
            Ok(None) => Err(stopping()),
            Err(_) => Err(busy()),
        }
    }
}

impl TaskPermit {
    /// Runs a task.
    ///
    /// # Errors
    ///
    /// Fails with [`TaskFailure`] when the task has no result.
    pub async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, TaskFailure> {
        self.run_within(MAX_TASK_TIME, work).await
    }

    /// Runs a task with another limit of processor time.
    ///
    /// # Errors
    ///
    /// Fails with [`TaskFailure`] when the task has no result.
    pub async fn run_within<T: Send + 'static>(
        self,
        max_time: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, TaskFailure> {
        // The task owns the permits, because it can outlive the future that waits for it.
        let done = spawn_blocking(move || {
            let began = processor_time();
            let stopping = self.runner.0.stopping.clone();
            let must_end =
                move || stopping.is_cancelled() || processor_time().saturating_sub(began) >= max_time;
            let usage = UsageCharge { permit: &self, began };
            let done = interruptible(must_end, work);
            drop(usage);
            done.map_err(|_| match self.runner.0.stopping.is_cancelled() {
                true => TaskFailure::Stopping,
                false => TaskFailure::OutOfTime,
            })
        });
        done.await.unwrap_or(Err(TaskFailure::Panicked))
    }
}

/// Charges the tenant for the processor time when the task ends, even by a panic.
struct UsageCharge<'a> {
    permit: &'a TaskPermit,
    began: Duration,
}

impl Drop for UsageCharge<'_> {
    fn drop(&mut self) {
        let used = processor_time().saturating_sub(self.began);
        let used = i64::try_from(used.as_micros()).unwrap_or(i64::MAX);
        let shared = &self.permit.runner.0;
        let mut tenants = shared.lock();
        let tenant = RunnerState::tenant(&mut tenants, self.permit.tenant, shared.clock.now());
        tenant.balance = tenant.balance.saturating_sub(used);
    }
}

impl RunnerState {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, TenantBalance>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tenant with its balance brought up to `now`.
    fn tenant(tenants: &mut HashMap<Uuid, TenantBalance>, id: Uuid, now: i64) -> &mut TenantBalance {
        if tenants.len() > MAX_IDLE_TENANTS && !tenants.contains_key(&id) {
            tenants.retain(|_, it| {
                it.accrue(now);
                it.balance < MAX_BALANCE_MICROS
                    || it.short_tasks_from > now
                    || Arc::strong_count(&it.semaphore) > 1
                    || it.semaphore.available_permits() == 0
            });
        }
        let new = || TenantBalance {
            semaphore: Arc::new(Semaphore::new(1)),
            balance: MAX_BALANCE_MICROS,
            updated_at: now,
            short_tasks_from: i64::MIN,
        };
        let tenant = tenants.entry(id).or_insert_with(new);
        tenant.accrue(now);
        tenant
    }
}

impl TenantBalance {
    fn accrue(&mut self, now: i64) {
        let granted =
            now.saturating_sub(self.updated_at).max(0).saturating_mul(GRANTED_SHARE.0) / GRANTED_SHARE.1;
        self.balance = self.balance.saturating_add(granted).min(MAX_BALANCE_MICROS);
        self.updated_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;

    fn runner() -> (CodeRunner, Arc<FakeClock>, CancellationToken) {
        let (clock, stopping) = (Arc::new(FakeClock::at(1_000_000)), CancellationToken::new());
        (CodeRunner::new(1, Arc::clone(&clock) as Arc<dyn Clock>, stopping.clone()), clock, stopping)
    }

    #[test]
    fn only_consecutive_timeouts_make_a_rule_too_slow() {
        let (runner, ..) = runner();
        let (tenant, rule, other) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        let timeout = |rule| runner.is_too_slow(tenant, rule, true);
        for _ in 1..MAX_CONSECUTIVE_TIMEOUTS {
            assert!(!timeout(rule));
        }
        assert!(!timeout(other), "each rule is counted alone");
        assert!(!runner.is_too_slow(tenant, rule, false), "a verdict begins the count again");
        for _ in 1..MAX_CONSECUTIVE_TIMEOUTS {
            assert!(!timeout(rule));
        }
        assert!(timeout(rule) && !timeout(rule));
    }

    #[tokio::test]
    async fn tenant_runs_one_code_task_at_a_time() {
        let (runner, ..) = runner();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let held = runner.permit(one).await.unwrap();
        assert!(timeout(Duration::from_millis(20), runner.permit(one)).await.is_err());
        let done =
            timeout(Duration::from_secs(60), runner.permit(other)).await.unwrap().unwrap().run(|| 7).await;
        assert_eq!(done, Ok(7));
        drop(held);
        assert!(timeout(Duration::from_secs(60), runner.permit(one)).await.is_ok());
    }

    #[tokio::test]
    async fn panic_of_code_task_does_not_affect_others() {
        let (runner, ..) = runner();
        let permit = runner.permit(Uuid::nil()).await.unwrap();
        assert_eq!(permit.run(|| -> u8 { panic!("a fault") }).await, Err(TaskFailure::Panicked));
        assert_eq!(runner.permit(Uuid::nil()).await.unwrap().run(|| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn code_task_does_not_start_after_stop() {
        let (runner, _, stopping) = runner();
        stopping.cancel();
        assert!(runner.permit(Uuid::nil()).await.is_none());
        assert!(runner.request_permit(Uuid::nil()).await.is_err());
    }

    #[tokio::test]
    async fn tenant_with_exhausted_processor_time_waits() {
        let (runner, clock, _) = runner();
        let tenant = Uuid::from_u128(1);
        assert_eq!(runner.exhausted_until(tenant), None);
        RunnerState::tenant(&mut runner.0.lock(), tenant, clock.now()).balance = -1_000_000;
        assert_eq!(runner.exhausted_until(tenant), Some(clock.now() + 2_000_000));
        assert!(runner.request_permit(tenant).await.is_err());
        assert_eq!(runner.exhausted_until(Uuid::from_u128(2)), None);
        clock.advance(2_000_000);
        assert_eq!(runner.exhausted_until(tenant), None);
    }

    #[test]
    fn short_tasks_pause_after_one_out_of_time_and_below_half_of_the_balance() {
        let (runner, clock, _) = runner();
        let (tenant, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert!(runner.allows_short_tasks(tenant));
        runner.pause_short_tasks(tenant);
        assert!(!runner.allows_short_tasks(tenant) && runner.allows_short_tasks(other));
        clock.advance(SHORT_TASK_PAUSE_MICROS);
        assert!(runner.allows_short_tasks(tenant));
        RunnerState::tenant(&mut runner.0.lock(), tenant, clock.now()).balance = MAX_BALANCE_MICROS / 2 - 1;
        assert!(!runner.allows_short_tasks(tenant));
    }
}
