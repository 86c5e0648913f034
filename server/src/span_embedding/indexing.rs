//! Adds vectors to the graph of the vector index, for tenants with too many of them to scan.

use futures::future::BoxFuture;
use store::{DbError, vectors};
use uuid::Uuid;

use crate::{
    app::App,
    feature::{HousekeepingTask, ROWS_PER_STATEMENT},
};

/// Vectors outside of the graph.
pub(super) struct UnindexedVectors;

impl HousekeepingTask for UnindexedVectors {
    fn next_tenant<'a>(&'a self, app: &'a App, last: Uuid) -> BoxFuture<'a, Result<Option<Uuid>, DbError>> {
        Box::pin(vectors::next_tenant_to_index(&app.db, last))
    }

    fn run<'a>(&'a self, app: &'a App, tenant: Uuid) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(async move {
            let many = vectors::are_more_than(&app.db, tenant, app.search.max_exact_vectors()).await?;
            while many
                && !app.is_stopping()
                && vectors::put_into_graph(&app.db, tenant, ROWS_PER_STATEMENT).await? > 0
            {}
            Ok(())
        })
    }
}
