//! Housekeeping: runs the tasks that features declare for their rows, every few minutes, tenant by tenant.
//!
//! Only tenants with such rows are processed. Several processes may run it at the same time: each deletes the
//! rows that the others have not.

use std::{sync::Arc, time::Duration};

use store::DbError;
use uuid::Uuid;

use crate::{app::App, feature::Feature};

/// Delay between two rounds.
const ROUND_INTERVAL: Duration = Duration::from_secs(300);

/// Runs the tasks of the features regularly until the app stops.
pub fn start(app: &Arc<App>, features: &'static [Feature]) {
    let keeper = Arc::clone(app);
    app.spawn(async move {
        loop {
            let done = keeper.db.health.while_reachable(run_round(&keeper, features)).await;
            if let Err(error) = done.unwrap_or_else(|it| Err(it.into())) {
                tracing::warn!(%error, "housekeeping failed and will be retried in some minutes");
            }
            if keeper.pause(ROUND_INTERVAL).await {
                return;
            }
        }
    });
}

/// Runs every task once for each tenant.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn run_round(app: &App, features: &[Feature]) -> Result<(), DbError> {
    for task in features.iter().flat_map(|it| it.housekeeping) {
        let mut last = Uuid::nil();
        while let Some(tenant) = task.next_tenant(app, last).await? {
            if app.is_stopping() {
                return Ok(());
            }
            task.run(app, tenant).await?;
            last = tenant;
        }
    }
    Ok(())
}
