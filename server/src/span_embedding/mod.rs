//! Embedding of spans in the background, by jobs.

pub mod backfill;
pub mod spans;
mod text;
mod turn;

use crate::app::Feature;

/// Embedding of spans in the background.
pub const FEATURE: Feature = Feature {
    jobs: |registry| {
        registry.register::<spans::EmbedSpans>();
        registry.register::<backfill::Backfill>();
    },
    ..Feature::NONE
};
