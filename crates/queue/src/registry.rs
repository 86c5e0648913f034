//! The kinds of jobs that a process runs.

use std::{collections::BTreeMap, sync::Arc};

use entities::job;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::{Job, Outcome, WorkerPool};

/// A kind of job that a context `C` can run.
pub trait RunJob<C>: Job + DeserializeOwned + Send + 'static {
    /// Does the work. `row` is the claimed job that carried this payload.
    fn run(self, context: &Arc<C>, row: &job::Model) -> impl Future<Output = Outcome> + Send;
}

type Handler<C> = for<'a> fn(&'a Arc<C>, &'a job::Model) -> BoxFuture<'a, Outcome>;

/// The kinds of jobs that a context `C` runs, and the pools whose workers run them.
#[derive(Debug)]
pub struct Registry<C> {
    handlers: BTreeMap<&'static str, Handler<C>>,
    pools: Vec<&'static WorkerPool>,
}

impl<C> Default for Registry<C> {
    fn default() -> Self {
        Self { handlers: BTreeMap::new(), pools: Vec::new() }
    }
}

impl<C: Send + Sync + 'static> Registry<C> {
    /// Adds a kind of job and, unless it is there already, its pool.
    pub fn register<J: RunJob<C>>(&mut self) {
        self.handlers.insert(J::KIND, |context, row| {
            // Boxed, because the future of one kind would enlarge the futures of all.
            Box::pin(async move {
                match serde_json::from_str::<J>(&row.payload) {
                    Ok(payload) => payload.run(context, row).await,
                    Err(error) => Outcome::Discard { why: format!("unreadable payload: {error}") },
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

    /// Runs a claimed job. A job of an unknown kind is put off by a minute: it belongs to a newer version that
    /// shares the database.
    pub(crate) async fn run(&self, context: &Arc<C>, row: &job::Model, now: i64) -> Outcome {
        match self.handlers.get(row.kind.as_str()) {
            Some(handler) => handler(context, row).await,
            None => {
                tracing::warn!(kind = row.kind, "a job of an unknown kind is left for a newer version");
                Outcome::Snooze { until: now + 60_000_000 }
            }
        }
    }
}
