//! Vectors of a project in memory, in blocks.

use std::hash::{DefaultHasher, Hash, Hasher};

use store::vectors::{Arrival, VectorFilter, read_numbers};
use uuid::Uuid;

use super::coarse_codes::{CoarseCode, CodedQuery, CosineBounds};

/// Maximum number of vectors in a block.
pub const VECTORS_PER_BLOCK: usize = 1_024;

/// A vector without its code.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorEntry {
    /// The ID of the vector's row.
    pub row: i64,
    /// The span's trace.
    pub trace_id: Uuid,
    /// The span.
    pub id: Uuid,
    /// A hash of the embedding: spans with the same text have the same hash.
    pub embedding_digest: u64,
    started_at: i64,
    kind_hash: i64,
    model_hash: Option<i64>,
    embedding_hash: i64,
}

/// Vectors and their codes, in the order of their rows.
#[derive(Clone, Debug, Default)]
pub struct VectorBlock {
    rows: Vec<VectorEntry>,
    codes: Vec<CoarseCode>,
}

impl VectorBlock {
    /// Creates a block of these vectors.
    pub fn of(arrivals: &[Arrival]) -> Self {
        let mut block = Self::default();
        arrivals.iter().for_each(|it| block.push(it));
        block.rows.shrink_to_fit();
        block.codes.shrink_to_fit();
        block
    }

    /// Returns the number of vectors.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the block is full.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= VECTORS_PER_BLOCK
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<VectorEntry>() + self.codes.capacity() * size_of::<CoarseCode>()
    }

    /// Returns a vector.
    pub fn row(&self, index: usize) -> Option<&VectorEntry> {
        self.rows.get(index)
    }

    /// Returns the last vector.
    pub fn last(&self) -> Option<&VectorEntry> {
        self.rows.last()
    }

    /// Returns whether the last vector of this block equals this one.
    pub fn ends_with(&self, arrival: &Arrival) -> bool {
        let mut encoded = Self::default();
        encoded.push(arrival);
        self.last() == encoded.last() && self.codes.last() == encoded.codes.last()
    }

    /// Adds a vector.
    pub fn push(&mut self, arrival: &Arrival) {
        let mut numbers = read_numbers(&arrival.vector);
        // Rounding to 16 bits has changed its length.
        let length = numbers.iter().map(|it| it * it).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        numbers.iter_mut().for_each(|it| *it /= length);
        let mut hasher = DefaultHasher::new();
        arrival.vector.hash(&mut hasher);
        self.codes.push(CoarseCode::of(&numbers));
        self.rows.push(VectorEntry {
            row: arrival.row,
            trace_id: arrival.trace_id,
            id: arrival.id,
            embedding_digest: hasher.finish(),
            started_at: arrival.started_at,
            kind_hash: arrival.kind_hash,
            model_hash: arrival.model_hash,
            embedding_hash: arrival.embedding_hash,
        });
    }

    /// Returns a copy with only the vectors for which `keep` is true.
    pub fn retaining(&self, keep: impl Fn(&VectorEntry) -> bool) -> Self {
        let mut retained = Self::default();
        for (row, code) in self.rows.iter().zip(&self.codes).filter(|it| keep(it.0)) {
            retained.rows.push(row.clone());
            retained.codes.push(code.clone());
        }
        retained
    }

    /// Calls `found` with the position of each matching vector and the wide bounds of its cosine with the
    /// query. Returns how many vectors of other embedding models were skipped.
    pub fn scan(
        &self,
        query: &CodedQuery,
        filter: &VectorFilter,
        found: &mut impl FnMut(usize, CosineBounds),
    ) -> i64 {
        let mut others = 0;
        for (index, (row, code)) in self.rows.iter().zip(&self.codes).enumerate() {
            if !filter.accepts(row.started_at, row.kind_hash, row.model_hash) {
                continue;
            }
            if filter.embedding_hash.is_some_and(|it| it != row.embedding_hash) {
                others += 1;
                continue;
            }
            found(index, query.wide_bounds(code));
        }
        others
    }

    /// Returns the narrow bounds of a vector's cosine with the query.
    pub fn narrow_bounds(&self, query: &CodedQuery, index: usize) -> Option<CosineBounds> {
        self.codes.get(index).map(|it| query.narrow_bounds(it))
    }
}
