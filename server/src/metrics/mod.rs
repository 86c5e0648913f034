//! Rolling metrics: numbers that are right when a trace is acknowledged and cost the same to ask
//! for however many traces there are.
//!
//! **Writing.** A trace counts as a [`store::metrics::fact::Fact`]: when it started, its model, latency, cost,
//! whether it failed, the label of its newest feedback. Whoever changes a trace's row adds to the
//! same transaction a [`store::metrics::delta::Delta`]: the fact that is no longer so with weight -1, the one
//! that is with weight 1. Nothing shared is touched, so writers of one tenant don't wait for one
//! another.
//!
//! **Folding.** Every second the deltas of a tenant are taken together and put into its nodes
//! ([`store::metrics::tree`]), and removed, in one transaction. Nodes form a tree by time, days first: one with
//! few traces lists them, one with many holds their sums by model, and its traces are shared by
//! nodes of the next level, down to the microsecond. Weights add up whatever their order.
//!
//! **Reading.** A stretch of time is made of whole days, and at its ends of whole hours, minutes
//! and so on: some two hundred nodes at most ([`store::metrics::range`]). They are read together with the deltas
//! that no node holds yet, in one statement, and added up ([`answer`]). Latencies are counted in
//! bins that are 1 % wide ([`store::metrics::bins`]), which can be added and taken back; percentiles are within
//! half of that.

pub mod answer;
pub mod ask;
pub mod cell;

#[cfg(test)]
mod tests;
