//! What a trace means: from what senders export to spans, usage, prices, cost and roll-ups.
//!
//! Pure functions over plain values, for the server and for tests.
//!
//! **Invariant:** no I/O, no clock, no randomness.

pub mod cost;
pub mod draft;
pub mod failure;
pub mod money;
pub mod otlp;
pub mod prices;
pub mod rollup;
pub mod usage;
