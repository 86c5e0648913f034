//! Vectors of a project in memory, in blocks.

use std::hash::{DefaultHasher, Hash, Hasher};

use store::vectors::{Arrival, VectorFilter, read_numbers};
use uuid::Uuid;

use super::coarse_codes::{CodedQuery, Coding, Cosine};

/// Maximum number of vectors in a block.
pub const VECTORS_PER_BLOCK: usize = 1_024;

/// A vector without its codes.
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
    coding: Coding,
    /// The end of its codes.
    end: usize,
}

/// Vectors and their codes, in the order of their rows.
#[derive(Clone, Debug, Default)]
pub struct VectorBlock {
    rows: Vec<VectorEntry>,
    codes: Vec<i8>,
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
        self.rows.capacity() * size_of::<VectorEntry>() + self.codes.capacity()
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
        let from = self.codes.len().checked_sub(encoded.codes.len());
        match (self.rows.last(), encoded.rows.first(), from) {
            (Some(last), Some(row), Some(from)) => {
                VectorEntry { end: row.end, ..last.clone() } == *row && self.codes[from..] == encoded.codes
            }
            _ => false,
        }
    }

    /// Adds a vector.
    pub fn push(&mut self, arrival: &Arrival) {
        let mut numbers = read_numbers(&arrival.vector);
        // Rounding to 16 bits has changed its length.
        let length = numbers.iter().map(|it| it * it).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        numbers.iter_mut().for_each(|it| *it /= length);
        let mut hasher = DefaultHasher::new();
        arrival.vector.hash(&mut hasher);
        let coding = Coding::of(&numbers, &mut self.codes);
        self.rows.push(VectorEntry {
            row: arrival.row,
            trace_id: arrival.trace_id,
            id: arrival.id,
            embedding_digest: hasher.finish(),
            started_at: arrival.started_at,
            kind_hash: arrival.kind_hash,
            model_hash: arrival.model_hash,
            embedding_hash: arrival.embedding_hash,
            coding,
            end: self.codes.len(),
        });
    }

    /// Returns a copy with only the vectors for which `keep` is true.
    pub fn retaining(&self, keep: impl Fn(&VectorEntry) -> bool) -> Self {
        let mut retained = Self::default();
        for (index, row) in self.rows.iter().enumerate().filter(|it| keep(it.1)) {
            retained.codes.extend(self.codes(index));
            retained.rows.push(VectorEntry { end: retained.codes.len(), ..row.clone() });
        }
        retained
    }

    /// Calls `found` with the position of each matching vector and the bounds of its cosine with the
    /// query. Returns how many vectors of other embedding models were skipped.
    pub fn scan(
        &self,
        query: &CodedQuery,
        filter: &VectorFilter,
        found: &mut impl FnMut(usize, Cosine),
    ) -> i64 {
        let mut others = 0;
        for (index, row) in self.rows.iter().enumerate() {
            if !filter.accepts(row.started_at, row.kind_hash, row.model_hash) {
                continue;
            }
            if filter.embedding_hash.is_some_and(|it| it != row.embedding_hash) {
                others += 1;
                continue;
            }
            found(index, query.cosine(self.codes(index), row.coding));
        }
        others
    }

    fn codes(&self, index: usize) -> &[i8] {
        let start = index.checked_sub(1).map_or(0, |it| self.rows[it].end);
        &self.codes[start..self.rows[index].end]
    }
}
