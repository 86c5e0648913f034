//! The task that folds deltas into the roll-up tree, so that queries read few of them.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use store::{DbError, metrics};
use uuid::Uuid;

use crate::{
    app::App,
    feature::{Feature, HousekeepingTask, ROWS_PER_STATEMENT},
};

/// Delay between two rounds.
const FOLD_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum number of deltas of a tenant that are folded in the next round.
const MIN_DELTAS: i64 = 32;
/// Age in microseconds at which deltas are folded, even if there are few. Folding rewrites nodes, so few
/// deltas are not folded every second.
const MAX_DELTA_AGE_MICROS: i64 = 15_000_000;

/// Maximum number of folds of one tenant in a round, so that other tenants are served.
const MAX_FOLDS_PER_ROUND: usize = 16;

/// Folding of metric deltas.
pub const FEATURE: Feature = Feature { start, housekeeping: &[&UncountedTraces], ..Feature::NONE };

/// Traces stored by a version without metrics, which are counted later.
struct UncountedTraces;

impl HousekeepingTask for UncountedTraces {
    fn next_tenant<'a>(&'a self, app: &'a App, last: Uuid) -> BoxFuture<'a, Result<Option<Uuid>, DbError>> {
        Box::pin(metrics::next_tenant_to_measure(&app.db, last))
    }

    fn run<'a>(&'a self, app: &'a App, tenant: Uuid) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(async move {
            while !app.is_stopping()
                && metrics::measure(&app.db, tenant, ROWS_PER_STATEMENT, app.clock.now()).await? > 0
            {
            }
            Ok(())
        })
    }
}

/// Folds deltas regularly, until the app stops.
pub fn start(app: &Arc<App>) {
    let folder = Arc::clone(app);
    app.spawn(async move {
        while !folder.pause(FOLD_INTERVAL).await {
            if folder.db.health.unavailable().is_some() {
                continue;
            }
            let done = folder
                .db
                .health
                .while_reachable(run_round(&folder, folder.clock.now() - MAX_DELTA_AGE_MICROS))
                .await;
            if let Err(error) = done.unwrap_or_else(|it| Err(it.into())) {
                tracing::warn!(%error, "folding of metrics failed and will be retried in a second");
            }
        }
    });
}

/// Folds the deltas of tenants with many, or with some older than `old` (microseconds).
///
/// # Errors
///
/// Fails when the database fails.
pub async fn run_round(app: &App, old: i64) -> crate::error::Result<()> {
    for (tenant, deltas, oldest) in metrics::waiting(&app.db).await? {
        if deltas < MIN_DELTAS && oldest > old {
            continue;
        }
        if let Err(error) = fold_tenant(app, tenant).await {
            // The deltas of other tenants are folded nevertheless.
            tracing::warn!(%tenant, %error, "folding of a tenant's metrics failed");
        }
    }
    Ok(())
}

async fn fold_tenant(app: &App, tenant: Uuid) -> crate::error::Result<()> {
    for _ in 0..MAX_FOLDS_PER_ROUND {
        if app.is_stopping() || !metrics::fold(&app.db, tenant).await?.more {
            break;
        }
    }
    Ok(())
}
