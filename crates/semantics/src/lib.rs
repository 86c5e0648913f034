//! The meaning of traces: maps exported spans to drafts, and computes usage, prices, costs and
//! roll-ups.
//!
//! Pure functions over plain values.
//!
//! **Invariant:** no I/O, no clock, no randomness.

pub mod cost;
pub mod draft;
pub mod failure;
pub mod money;
pub mod otlp;
pub mod prices;
pub mod record;
pub mod rollup;
pub mod usage;
