//! The task that turns new traces into runs of the trace index and merges runs, so that lists read few rows and runs.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use store::{DbError, housekeeping, trace_ids, trace_index};
use uuid::Uuid;

use crate::{
    app::App,
    feature::{Feature, HousekeepingTask},
};

/// Delay between two rounds.
const INDEX_INTERVAL: Duration = Duration::from_secs(1);
/// Number of rounds after which the tails of all tenants are examined: other processes may have left long ones.
const ROUNDS_PER_SEARCH: u32 = 600;
/// Maximum number of runs that one round makes from a tenant's tail, so that other tenants are served.
const MAX_RUNS_PER_ROUND: usize = 4;

/// Indexing of traces.
pub const FEATURE: Feature = Feature { start, housekeeping: &[&RetiredRuns], ..Feature::NONE };

/// Runs whose traces were removed, and runs that were merged, whose blocks are removed later.
struct RetiredRuns;

impl HousekeepingTask for RetiredRuns {
    fn next_tenant<'a>(&'a self, app: &'a App, last: Uuid) -> BoxFuture<'a, Result<Option<Uuid>, DbError>> {
        Box::pin(housekeeping::next_tenant(&app.db, "trace_run", "", "TRUE", last))
    }

    fn run<'a>(&'a self, app: &'a App, tenant: Uuid) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(async move {
            trace_index::retire_expired(&app.db, tenant, app.clock.now()).await?;
            trace_index::remove_retired(&app.db, tenant, app.clock.now()).await?;
            trace_index::rewrite_sparse(&app.db, tenant, app.clock.now()).await
        })
    }
}

/// Indexes new traces regularly, until the app stops.
pub fn start(app: &Arc<App>) {
    let app = Arc::clone(app);
    app.clone().spawn(async move {
        let mut active = BTreeSet::new();
        for round in (0..ROUNDS_PER_SEARCH).cycle() {
            if app.pause(INDEX_INTERVAL).await {
                break;
            }
            if app.db.health.unavailable().is_some() {
                continue;
            }
            let done = app.db.health.while_reachable(run_round(&app, &mut active, round == 0)).await;
            if let Err(error) = done.unwrap_or_else(|it| Err(it.into())) {
                tracing::warn!(%error, "indexing of traces failed and will be retried in a second");
            }
        }
    });
}

/// Indexes the traces of tenants whose tails have grown and of those that are active, and merges their runs. A tenant is
/// active until nothing is left to do. `search` examines the tails of all tenants.
async fn run_round(app: &App, active: &mut BTreeSet<Uuid>, search: bool) -> crate::error::Result<()> {
    active.extend(app.db.tail_growth.take());
    if search {
        active.extend(trace_index::tenants_with_long_tails(&app.db).await?);
    }
    let is_active = !active.is_empty();
    for tenant in active.clone() {
        match index_tenant(app, tenant).await {
            Ok(true) => {}
            Ok(false) => _ = active.remove(&tenant),
            // The traces of other tenants are indexed nevertheless.
            Err(error) => {
                tracing::warn!(%tenant, %error, "indexing the traces of a tenant failed and will be retried in a second")
            }
        }
    }
    if is_active {
        trace_ids::move_many(&app.db).await?;
    }
    Ok(())
}

/// Returns whether there may be more to do.
async fn index_tenant(app: &App, tenant: Uuid) -> Result<bool, DbError> {
    let mut runs = 0;
    while runs < MAX_RUNS_PER_ROUND
        && !app.is_stopping()
        && trace_index::index_long_tail(&app.db, tenant, app.clock.now()).await?
    {
        runs += 1;
    }
    Ok(trace_index::merge(&app.db, tenant, app.clock.now()).await? || runs > 0)
}
