//! Deletion of expired failure clusters.

use futures::future::BoxFuture;
use store::{DbError, failure_clusters};
use uuid::Uuid;

use crate::{
    app::App,
    feature::{HousekeepingTask, RowExpiry},
};

/// Deletes expired clusters. All processes then read the clusters of the tenant again: a failure type that had reached
/// its maximum number of clusters may get new ones.
pub struct ClusterExpiry(pub RowExpiry);

impl HousekeepingTask for ClusterExpiry {
    fn next_tenant<'a>(&'a self, app: &'a App, last: Uuid) -> BoxFuture<'a, Result<Option<Uuid>, DbError>> {
        self.0.next_tenant(app, last)
    }

    fn run<'a>(&'a self, app: &'a App, tenant: Uuid) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(async move {
            if self.0.delete_expired(app, tenant).await? > 0 {
                failure_clusters::raise_versions(&app.db.write, tenant).await?;
            }
            Ok(())
        })
    }
}
