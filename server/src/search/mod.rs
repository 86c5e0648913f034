//! Semantic search over spans.
//!
//! PostgreSQL finds the nearest vectors itself ([`store::vectors`]). For SQLite, the server compares vectors that it
//! holds in memory (`memory_search`).

mod coarse_codes;
pub mod endpoints;
mod memory_search;
mod query_vectors;
mod vector_block;
mod vector_cache;

use store::{
    Db, DbError,
    vectors::{self, Hit, NearestSpans, UnitVector, VectorFilter},
};
use uuid::Uuid;

use self::{memory_search::MemorySearch, query_vectors::QueryVectors};

/// Searches spans by their vectors.
pub struct Search {
    memory_search: MemorySearch,
    /// Maximum number of vectors for which the HNSW index is not used.
    max_exact_vectors: u32,
    /// The cached vectors of text queries.
    pub query_vectors: QueryVectors,
}

impl Search {
    /// Creates a search with a maximum memory for vectors in bytes. If a project has more than `max_exact_vectors`
    /// vectors, the HNSW index of the database is used, if it has one.
    pub fn new(cache_bytes: usize, processors: usize, max_exact_vectors: u32) -> Self {
        Self {
            memory_search: MemorySearch::new(cache_bytes, processors),
            max_exact_vectors,
            query_vectors: QueryVectors::default(),
        }
    }

    /// Returns the maximum number of vectors for which the HNSW index is not used.
    pub fn max_exact_vectors(&self) -> u32 {
        self.max_exact_vectors
    }

    /// Returns the memory of vectors in bytes.
    pub fn bytes(&self) -> u64 {
        self.memory_search.bytes()
    }

    /// Returns up to `limit` vectors nearest to `query_vector`, after the position `after`.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn nearest(
        &self,
        db: &Db,
        tenant: Uuid,
        query_vector: &UnitVector,
        filter: &VectorFilter,
        after: Option<Hit>,
        limit: usize,
    ) -> Result<NearestSpans, DbError> {
        if db.finds_nearest() {
            vectors::nearest(db, tenant, query_vector, filter, after, limit, self.max_exact_vectors).await
        } else {
            self.memory_search.nearest(db, tenant, query_vector, filter, after, limit).await
        }
    }
}
