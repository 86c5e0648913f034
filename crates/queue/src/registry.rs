//! The job kinds that a process runs.

use std::{collections::BTreeMap, sync::Arc};

use entities::job;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::{
    job::{Job, JobResult},
    pool::WorkerPool,
    wake_ups::WakeUps,
};

/// A job kind that a context `C` can run.
pub trait RunJob<C>: Job + DeserializeOwned + Send + 'static {
    /// Runs the job. `row` is the claimed job with this payload.
    fn run(self, context: &Arc<C>, row: &job::Model) -> impl Future<Output = JobResult> + Send;
}

type Handler<C> = for<'a> fn(&'a Arc<C>, &'a job::Model) -> BoxFuture<'a, JobResult>;

/// The job kinds that a context `C` runs, and their worker pools.
#[derive(Debug)]
pub struct Registry<C> {
    handlers: BTreeMap<&'static str, Handler<C>>,
    pools: Vec<&'static WorkerPool>,
    wake_ups: Arc<WakeUps>,
}

impl<C> Default for Registry<C> {
    fn default() -> Self {
        Self { handlers: BTreeMap::new(), pools: Vec::new(), wake_ups: Arc::default() }
    }
}

impl<C: Send + Sync + 'static> Registry<C> {
    /// Registers a job kind and its pool.
    pub fn register<J: RunJob<C>>(&mut self) {
        self.handlers.insert(J::KIND, |context, row| {
            // Boxed: otherwise every future would be as large as that of the largest kind.
            Box::pin(async move {
                match serde_json::from_str::<J>(&row.payload) {
                    Ok(payload) => payload.run(context, row).await,
                    Err(error) => JobResult::Discard { why: format!("unreadable payload: {error}") },
                }
            })
        });
        if !self.pools.contains(&J::POOL) {
            self.pools.push(J::POOL);
        }
    }

    /// Returns the pools of all registered kinds, in the order of their registration.
    pub fn pools(&self) -> &[&'static WorkerPool] {
        &self.pools
    }

    /// Returns the wake-ups of the pools.
    pub fn wake_ups(&self) -> &Arc<WakeUps> {
        &self.wake_ups
    }

    /// Runs a claimed job. A job of an unknown kind is postponed by a minute: a newer version that shares the
    /// database enqueued it.
    pub(crate) async fn run(&self, context: &Arc<C>, row: &job::Model, now: i64) -> JobResult {
        match self.handlers.get(row.kind.as_str()) {
            Some(handler) => handler(context, row).await,
            None => {
                tracing::warn!(
                    kind = row.kind,
                    "postponed a job of an unknown kind; a newer version may run it"
                );
                JobResult::Snooze { until: now + 60_000_000 }
            }
        }
    }
}
