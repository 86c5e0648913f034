//! Wake-ups of idle worker pools within a process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use entities::job;
use tokio::sync::Notify;

use crate::pool::WorkerPool;

/// Wakes idle worker pools of this process after a commit, so that new jobs do not wait for the next poll. Jobs that
/// another process enqueued are found by polling.
#[derive(Debug, Default)]
pub struct WakeUps(Mutex<HashMap<&'static str, PoolWakeUp>>);

#[derive(Debug)]
struct PoolWakeUp {
    after_commit: bool,
    notify: Arc<Notify>,
}

impl WakeUps {
    /// Wakes the pools of the jobs that are due at once, except pools that only poll. The caller has committed the
    /// transaction that enqueued the jobs: a pool that looks for them earlier does not find them.
    pub fn wake_for(&self, jobs: &[job::Model]) {
        if jobs.is_empty() {
            return;
        }
        let pools = self.pools();
        for it in jobs.iter().filter(|it| it.run_at <= it.created_at) {
            if let Some(pool) = pools.get(it.lane.as_str()).filter(|it| it.after_commit) {
                // The notification is stored while no worker waits, so a poll that has just found nothing is repeated.
                pool.notify.notify_one();
            }
        }
    }

    /// Returns the notification on which an idle worker of a pool looks for jobs.
    pub(crate) fn of(&self, pool: &WorkerPool) -> Arc<Notify> {
        let new = || PoolWakeUp { after_commit: pool.wakes_after_commit, notify: Arc::default() };
        Arc::clone(&self.pools().entry(pool.name).or_insert_with(new).notify)
    }

    fn pools(&self) -> MutexGuard<'_, HashMap<&'static str, PoolWakeUp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
