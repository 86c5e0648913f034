//! What a search asks for, and what it finds.

use std::cmp::Ordering;

use uuid::Uuid;

use crate::text_hash;

/// Which vectors are compared. All conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this project.
    pub project_id: Option<Uuid>,
    /// Of spans that started then or later, microseconds.
    pub from: Option<i64>,
    /// Of spans that started then or earlier, microseconds.
    pub to: Option<i64>,
    /// Of spans of this kind.
    pub kind_hash: Option<i64>,
    /// Of spans of this model.
    pub model_hash: Option<i64>,
    /// Made by this embedding model.
    pub embedding_model: Option<String>,
    /// The hash of that.
    pub embedding_hash: Option<i64>,
}

impl Filter {
    /// Conditions in words; kinds and models are compared by their hashes.
    pub fn of(
        project_id: Option<Uuid>,
        (from, to): (Option<i64>, Option<i64>),
        kind: Option<&str>,
        model: Option<&str>,
        embedding_model: Option<String>,
    ) -> Self {
        Self {
            project_id,
            from,
            to,
            kind_hash: kind.map(text_hash),
            model_hash: model.map(text_hash),
            embedding_hash: embedding_model.as_deref().map(text_hash),
            embedding_model,
        }
    }

    /// Whether a vector passes the filter, without regard to its project and embedding model.
    pub fn lets_through(&self, started_at: i64, kind_hash: i64, model_hash: Option<i64>) -> bool {
        self.from.is_none_or(|it| it <= started_at)
            && self.to.is_none_or(|it| started_at <= it)
            && self.kind_hash.is_none_or(|it| it == kind_hash)
            && (self.model_hash.is_none() || self.model_hash == model_hash)
    }
}

/// A span that was found. They are ordered by distance, then trace and id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Cosine distance, 0 to 2.
    pub distance: f64,
    /// The span's trace.
    pub trace_id: Uuid,
    /// The span.
    pub id: Uuid,
}

impl Eq for Hit {}

impl Ord for Hit {
    fn cmp(&self, other: &Self) -> Ordering {
        let ids = |it: &Self| (it.trace_id, it.id);
        self.distance.total_cmp(&other.distance).then_with(|| ids(self).cmp(&ids(other)))
    }
}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The spans that were found, and among how many.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The nearest, the nearest first.
    pub hits: Vec<Hit>,
    /// Vectors within the filter.
    pub searched: i64,
    /// Vectors that would be, had the other embedding model made them.
    pub not_searched: i64,
}
