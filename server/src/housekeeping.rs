//! Housekeeping: purges expired rows every few minutes, tenant by tenant.
//!
//! Only tenants with expired rows are processed. Old traces can be many, so deleting them is a job
//! ([`crate::retention`]); other rows are deleted here. Several processes may run it at the same time:
//! each deletes the rows that the others have not.

use std::{sync::Arc, time::Duration};

use store::{DbError, housekeeping::Kept, metrics, vectors};
use uuid::Uuid;

use crate::{
    app::{App, Feature},
    retention,
};

/// Delay between two rounds.
const ROUND_INTERVAL: Duration = Duration::from_secs(300);
/// Retention in seconds of rate limit counters after their minute.
const RATE_WINDOW_TTL_SECONDS: i64 = 3_600;
/// Retention in microseconds of bulk evaluations; their evaluations are kept longer.
const BULK_EVALUATION_TTL_MICROS: i64 = 30 * 86_400_000_000;
/// Approximate number of rows deleted by one statement.
const ROWS_PER_STATEMENT: u64 = 500;

/// Periodic removal of expired rows.
pub const FEATURE: Feature = Feature { start, ..Feature::NONE };

/// Runs housekeeping regularly until the app stops.
pub fn start(app: &Arc<App>) {
    let keeper = Arc::clone(app);
    app.spawn(async move {
        loop {
            let done = keeper.db.health.while_reachable(round(&keeper)).await;
            if let Err(error) = done.unwrap_or_else(|it| Err(it.into())) {
                tracing::warn!(%error, "housekeeping failed and will be retried in some minutes");
            }
            if keeper.pause(ROUND_INTERVAL).await {
                return;
            }
        }
    });
}

/// Processes every tenant once.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn round(app: &App) -> Result<(), DbError> {
    for kept in Kept::ALL {
        let mut tenant = Uuid::nil();
        while let Some(next) = store::housekeeping::next_tenant(&app.db, *kept, tenant).await? {
            if app.is_stopping() {
                return Ok(());
            }
            tend(app, *kept, next).await?;
            tenant = next;
        }
    }
    Ok(())
}

async fn tend(app: &App, kept: Kept, tenant: Uuid) -> Result<(), DbError> {
    let now = app.clock.now();
    match kept {
        Kept::Traces => {
            retention::look(app, tenant).await?;
        }
        Kept::Answers => {
            while store::housekeeping::forget_answers(&app.db, tenant, now, ROWS_PER_STATEMENT).await?
                >= ROWS_PER_STATEMENT
            {}
        }
        Kept::Windows => {
            let before = now.div_euclid(1_000_000) - RATE_WINDOW_TTL_SECONDS;
            while store::housekeeping::forget_windows(&app.db, tenant, before, ROWS_PER_STATEMENT).await?
                >= ROWS_PER_STATEMENT
            {}
        }
        Kept::BulkRuns => {
            while store::housekeeping::forget_bulk_runs(
                &app.db,
                tenant,
                now - BULK_EVALUATION_TTL_MICROS,
                ROWS_PER_STATEMENT,
            )
            .await?
                >= ROWS_PER_STATEMENT
            {}
        }
        Kept::Unmeasured => {
            while !app.is_stopping() && metrics::measure(&app.db, tenant, ROWS_PER_STATEMENT, now).await? > 0
            {
            }
        }
        Kept::Unindexed => {
            let many = vectors::are_more_than(&app.db, tenant, app.search.few()).await?;
            while many
                && !app.is_stopping()
                && vectors::put_into_graph(&app.db, tenant, ROWS_PER_STATEMENT).await? > 0
            {}
        }
    }
    Ok(())
}
