//! Semantic search over spans.
//!
//! PostgreSQL looks for the nearest vectors itself ([`store::vectors`]); in front of SQLite
//! the server does, with the vectors of the projects that are searched in memory (`nearest`).

mod block;
mod codes;
pub mod endpoints;
mod index;
mod nearest;
mod questions;

use store::{
    Db, DbError,
    vectors::{self, Hit, NearestSpans, UnitVector, VectorFilter},
};
use uuid::Uuid;

use self::{nearest::Searcher, questions::QueryVectors};

/// Searches spans by their vectors.
pub struct Search {
    searcher: Searcher,
    /// Number of vectors up to which the HNSW index is not used.
    few: u32,
    /// The cached vectors of text queries.
    pub questions: QueryVectors,
}

impl Search {
    /// Creates a search with a maximum memory for vectors in bytes. If a project has more than `few`
    /// vectors, the HNSW index of the database is used, if it has one.
    pub fn new(cache_bytes: usize, processors: usize, few: u32) -> Self {
        Self { searcher: Searcher::new(cache_bytes, processors), few, questions: QueryVectors::default() }
    }

    /// Returns the number of vectors up to which the HNSW index is not used.
    pub fn few(&self) -> u32 {
        self.few
    }

    /// Returns the memory of vectors in bytes.
    pub fn bytes(&self) -> u64 {
        self.searcher.bytes()
    }

    /// Returns up to `limit` vectors nearest to `question`, after the position `after`.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn nearest(
        &self,
        db: &Db,
        tenant: Uuid,
        question: &UnitVector,
        filter: &VectorFilter,
        after: Option<Hit>,
        limit: usize,
    ) -> Result<NearestSpans, DbError> {
        if db.finds_nearest() {
            vectors::nearest(db, tenant, question, filter, after, limit, self.few).await
        } else {
            self.searcher.nearest(db, tenant, question, filter, after, limit).await
        }
    }
}
