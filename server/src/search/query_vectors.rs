//! Caches the vectors of text queries while users page through the results, as long as the provider is
//! the same.
//!
//! A provider returns slightly different numbers for the same text each time, and costs money and time.
//! The vector is therefore cached for some minutes in each process. If it has expired, the query is
//! embedded again, and a span at the border of two pages may be on both or neither.

use std::{sync::Arc, time::Duration};

use api::Plan;
use moka::sync::Cache;
use store::vectors::UnitVector;
use uuid::Uuid;

use crate::{
    embedding::{Embedder, EmbeddingAccount},
    error::Result,
};

/// How long a vector is cached.
const QUERY_TTL: Duration = Duration::from_secs(600);
/// Maximum number of cached vectors; each takes about 6 KiB.
const MAX_CACHED_QUERIES: u64 = 2_000;

/// The cache, by tenant, account, model and text.
pub struct QueryVectors(Cache<(Uuid, EmbeddingAccount, String, String), Arc<EmbeddedQuery>>);

/// An embedded query.
#[derive(Debug)]
pub struct EmbeddedQuery {
    /// The vector.
    pub vector: UnitVector,
    /// The embedding model.
    pub model: String,
}

impl Default for QueryVectors {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MAX_CACHED_QUERIES).time_to_live(QUERY_TTL).build())
    }
}

impl QueryVectors {
    /// Returns the vector of a query of a tenant on this plan.
    ///
    /// # Errors
    ///
    /// Same as [`Embedder::query`].
    pub async fn embed(
        &self,
        embedder: &Embedder,
        tenant: Uuid,
        plan: Plan,
        words: &str,
    ) -> Result<Arc<EmbeddedQuery>> {
        let selected = embedder.for_queries(tenant, plan).await?;
        let model = selected.model().to_owned();
        let key = (tenant, selected.account(), model.clone(), words.to_owned());
        if let Some(cached) = self.0.get(&key) {
            return Ok(cached);
        }
        let vector = embedder.query(&selected, words).await?;
        let embedded = Arc::new(EmbeddedQuery { vector, model });
        self.0.insert(key, Arc::clone(&embedded));
        Ok(embedded)
    }
}
