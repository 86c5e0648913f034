//! Embedding of spans in the background, by jobs.

pub mod backfill;
mod indexing;
pub mod spans;
mod text;
mod turn;

use crate::feature::Feature;

/// Embedding of spans in the background.
pub const FEATURE: Feature = Feature {
    jobs: |registry| {
        registry.register::<spans::EmbedSpans>();
        registry.register::<backfill::Backfill>();
    },
    housekeeping: &[&indexing::UnindexedVectors],
    ..Feature::NONE
};
