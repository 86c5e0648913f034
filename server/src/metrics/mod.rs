//! Rolling metrics, which are current when a trace is acknowledged and cost the same to query for any
//! number of traces.
//!
//! **Writing.** A trace counts as a [`store::metrics::fact::Fact`]: its start, model, latency, cost,
//! failure and feedback label. Every change of a trace's row adds a [`store::metrics::delta::Delta`] to
//! the same transaction: the old fact with weight -1, the new one with weight 1. No shared row is
//! updated, so writers of one tenant do not wait for each other.
//!
//! **Folding.** Every second, the deltas of a tenant are folded into its nodes
//! ([`store::metrics::tree`]) and deleted, in one transaction. Nodes form a tree by time, beginning
//! with days: a node with few traces lists them, one with many contains totals by model, and nodes of
//! the next level divide its traces, down to the microsecond. Weights can be added in any order.
//!
//! **Reading.** A period consists of whole days, and at its ends of whole hours, minutes and so on:
//! about two hundred nodes at most ([`store::metrics::range`]). One statement reads them together with
//! the deltas that are not yet folded, and they are added up ([`query_result`]). Latencies are counted in
//! histograms with buckets of 1 % ([`store::metrics::bins`]), which can be added and subtracted;
//! percentiles are within half of that.

pub mod endpoints;
pub mod queries;
pub mod query_result;
pub mod totals;

#[cfg(test)]
mod tests;
