//! The filter and the results of a vector search.

use std::cmp::Ordering;

use uuid::Uuid;

use crate::ids::text_hash;

/// Selects the vectors that are compared. All conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorFilter {
    /// Only vectors of this project.
    pub project_id: Option<Uuid>,
    /// Only spans that started at or after this time, in microseconds.
    pub from: Option<i64>,
    /// Only spans that started at or before this time, in microseconds.
    pub to: Option<i64>,
    /// The hash of the span type.
    pub kind_hash: Option<i64>,
    /// The hash of the span's model.
    pub model_hash: Option<i64>,
    /// The embedding model that computed the vector.
    pub embedding_model: Option<String>,
    /// The hash of `embedding_model`.
    pub embedding_hash: Option<i64>,
}

impl VectorFilter {
    /// Creates a filter from names; span types and models are compared by their hashes.
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

    /// Returns whether a vector passes the filter, regardless of its project and embedding model.
    pub fn accepts(&self, started_at: i64, kind_hash: i64, model_hash: Option<i64>) -> bool {
        self.from.is_none_or(|it| it <= started_at)
            && self.to.is_none_or(|it| started_at <= it)
            && self.kind_hash.is_none_or(|it| it == kind_hash)
            && (self.model_hash.is_none() || self.model_hash == model_hash)
    }
}

/// A span that a search found. Hits are ordered by distance, then by trace and id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Cosine distance, 0 to 2.
    pub distance: f64,
    /// The trace of the span.
    pub trace_id: Uuid,
    /// The ID of the span.
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

/// The result of a search, with the number of vectors that were searched.
#[derive(Clone, Debug, Default)]
pub struct NearestSpans {
    /// The nearest spans, in the order of their distance.
    pub hits: Vec<Hit>,
    /// Number of vectors that match the filter.
    pub searched: i64,
    /// Number of vectors that match the filter but belong to another embedding model.
    pub not_searched: i64,
}
