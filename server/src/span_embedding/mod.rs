//! Embedding of spans in the background, by jobs.

pub mod backfill;
mod borrowed_json;
pub mod embed_spans;
mod embedding_run;
mod indexing;
mod text;

use crate::feature::Feature;

/// Embedding of spans in the background.
pub const FEATURE: Feature = Feature {
    jobs: |registry| {
        registry.register::<embed_spans::EmbedSpans>();
        registry.register::<backfill::Backfill>();
    },
    housekeeping: &[&indexing::UnindexedVectors],
    ..Feature::NONE
};
