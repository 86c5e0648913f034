//! Declares a feature: its routes, jobs, background tasks and housekeeping, beside its code.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use queue::Registry;
use store::{DbError, housekeeping::ExpiringRows};
use uuid::Uuid;

use crate::{app::App, http::route::Route};

/// The declaration of a feature: a constant of this type, which [`crate::features`] lists.
#[derive(Clone, Copy)]
pub struct Feature {
    /// Returns the routes.
    pub routes: fn() -> Vec<Route>,
    /// Registers the kinds of jobs.
    pub jobs: fn(&mut Registry<App>),
    /// Starts the background tasks of a process that runs jobs.
    pub start: fn(&Arc<App>),
    /// The regular work on its rows.
    pub housekeeping: &'static [&'static dyn HousekeepingTask],
}

impl Feature {
    /// A feature that adds nothing.
    pub const NONE: Self = Self { routes: Vec::new, jobs: |_| {}, start: |_| {}, housekeeping: &[] };
}

/// Regular work on the rows of one tenant at a time: most tasks are a [`RowExpiry`].
pub trait HousekeepingTask: Send + Sync {
    /// Returns the next tenant after `last` that may have such rows, by one index look-up.
    fn next_tenant<'a>(&'a self, app: &'a App, last: Uuid) -> BoxFuture<'a, Result<Option<Uuid>, DbError>>;

    /// Does the work of a tenant.
    fn run<'a>(&'a self, app: &'a App, tenant: Uuid) -> BoxFuture<'a, Result<(), DbError>>;
}

/// Approximate number of rows that one statement of housekeeping changes.
pub const ROWS_PER_STATEMENT: u64 = 500;

/// Deletes rows a certain time after the time in their column.
pub struct RowExpiry {
    /// The rows.
    pub rows: ExpiringRows,
    /// How long a row is kept after the time in its column.
    pub after: Duration,
}

impl RowExpiry {
    /// Deletes the expired rows of a tenant. Returns their number.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn delete_expired(&self, app: &App, tenant: Uuid) -> Result<u64, DbError> {
        let kept = i64::try_from(self.after.as_micros()).unwrap_or(i64::MAX);
        let (before, mut deleted) = (app.clock.now().saturating_sub(kept), 0);
        while !app.is_stopping() {
            let rows = self.rows.delete_before(&app.db, tenant, before, ROWS_PER_STATEMENT).await?;
            deleted += rows;
            if rows < ROWS_PER_STATEMENT {
                break;
            }
        }
        Ok(deleted)
    }
}

impl HousekeepingTask for RowExpiry {
    fn next_tenant<'a>(&'a self, app: &'a App, last: Uuid) -> BoxFuture<'a, Result<Option<Uuid>, DbError>> {
        Box::pin(self.rows.next_tenant(&app.db, last))
    }

    fn run<'a>(&'a self, app: &'a App, tenant: Uuid) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(async move { self.delete_expired(app, tenant).await.map(drop) })
    }
}
