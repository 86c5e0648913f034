//! The task that folds deltas into nodes, so that there are never many of them to read.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;

use crate::app::{App, Feature};

/// Pause between two rounds.
const PAUSE: Duration = Duration::from_secs(1);
/// Deltas of a tenant that are folded in the next round.
const MANY: i64 = 32;
/// Age at which deltas are folded however few there are, microseconds. A fold writes some nodes
/// anew; a tenant with a trace now and then needs that now and then.
const OLD: i64 = 15_000_000;

/// Folds of one tenant in a round, so that the next one has its turn.
const TURN: usize = 16;

/// Folding of metric deltas.
pub const FEATURE: Feature = Feature { start, ..Feature::NONE };

/// Folds now and then, until the app stops.
pub fn start(app: &Arc<App>) {
    let folder = Arc::clone(app);
    app.spawn(async move {
        while !folder.pause(PAUSE).await {
            if folder.db.health.unavailable().is_some() {
                continue;
            }
            let done = folder.db.health.while_reachable(round(&folder, folder.clock.now() - OLD)).await;
            if let Err(error) = done.unwrap_or_else(|it| Err(it.into())) {
                tracing::warn!(%error, "metrics could not be folded; it is tried again in a second");
            }
        }
    });
}

/// Folds what is many, or older than `old` (microseconds).
///
/// # Errors
/// When the database fails.
pub async fn round(app: &App, old: i64) -> crate::error::Result<()> {
    for (tenant, deltas, oldest) in store::metrics::waiting(&app.db).await? {
        if deltas < MANY && oldest > old {
            continue;
        }
        if let Err(error) = turn(app, tenant).await {
            // The others' are folded all the same.
            tracing::warn!(%tenant, %error, "the metrics of a tenant could not be folded");
        }
    }
    Ok(())
}

async fn turn(app: &App, tenant: Uuid) -> crate::error::Result<()> {
    for _ in 0..TURN {
        if app.is_stopping() || !store::metrics::fold(&app.db, tenant).await?.more {
            break;
        }
    }
    Ok(())
}
