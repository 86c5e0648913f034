//! Finding spans by what they mean.
//!
//! PostgreSQL looks for the nearest vectors itself ([`store::vectors`]); in front of SQLite
//! the server does, with the vectors of the projects that are searched in memory (`nearest`).

mod block;
mod codes;
mod index;
mod nearest;
mod questions;

use store::{
    Db, DbError,
    vectors::{self, Filter, Found, Hit, UnitVector},
};
use uuid::Uuid;

use self::{nearest::Searcher, questions::Questions};

/// Finds spans by their vectors.
pub struct Search {
    searcher: Searcher,
    /// Vectors up to which a database that has a graph of them does without.
    few: u32,
    /// The vectors of questions in words.
    pub questions: Questions,
}

impl Search {
    /// A search that may take so many bytes of memory for vectors, and walks a graph, where the
    /// database has one, if there are more than `few`.
    pub fn new(cache_bytes: usize, processors: usize, few: u32) -> Self {
        Self { searcher: Searcher::new(cache_bytes, processors), few, questions: Questions::default() }
    }

    /// Vectors up to which a graph is of no use.
    pub fn few(&self) -> u32 {
        self.few
    }

    /// Bytes of memory that vectors take.
    pub fn bytes(&self) -> u64 {
        self.searcher.bytes()
    }

    /// Up to `limit` vectors nearest to `question`, those behind `after` in their order.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn nearest(
        &self,
        db: &Db,
        tenant: Uuid,
        question: &UnitVector,
        filter: &Filter,
        after: Option<Hit>,
        limit: usize,
    ) -> Result<Found, DbError> {
        if db.finds_nearest() {
            vectors::nearest(db, tenant, question, filter, after, limit, self.few).await
        } else {
            self.searcher.nearest(db, tenant, question, filter, after, limit).await
        }
    }
}
