//! Sums over facts. All of them can be added to and taken back, in any order; a sum may be
//! negative while a fact was taken back that is yet to be added.

use crate::metrics::{
    bins,
    fact::{Fact, is_good},
};

/// What is counted of a set of traces, but for their latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Traces.
    pub traces: i64,
    /// Traces that ended in error.
    pub errors: i64,
    /// Pico-dollars.
    pub cost: i128,
    /// Traces with feedback.
    pub labelled: i64,
    /// Traces whose newest feedback is good.
    pub good: i64,
}

impl Totals {
    /// Adds `weight` traces that are all this fact.
    pub fn add(&mut self, fact: &Fact, weight: i64) {
        let if_so = |it: bool| if it { weight } else { 0 };
        self.traces += weight;
        self.errors += if_so(fact.error);
        self.cost += i128::from(fact.cost) * i128::from(weight);
        self.labelled += if_so(fact.feedback.is_some());
        self.good += if_so(fact.feedback.is_some_and(is_good));
    }

    /// Adds other sums.
    pub fn merge(&mut self, other: &Self) {
        self.traces += other.traces;
        self.errors += other.errors;
        self.cost += other.cost;
        self.labelled += other.labelled;
        self.good += other.good;
    }
}

/// How many latencies there are in each bin: bins ascending, no zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies(pub Vec<(u16, i64)>);

impl Latencies {
    /// Adds `weight` latencies of one length.
    pub fn add(&mut self, latency_ms: i64, weight: i64) {
        let bin = bins::of(latency_ms);
        match self.0.binary_search_by_key(&bin, |it| it.0) {
            Ok(place) => {
                self.0[place].1 += weight;
                if self.0[place].1 == 0 {
                    self.0.remove(place);
                }
            }
            Err(place) => self.0.insert(place, (bin, weight)),
        }
    }
}

/// Sums over a set of traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Counts and money.
    pub totals: Totals,
    /// Their latencies.
    pub latencies: Latencies,
}

impl Sums {
    /// Adds `weight` traces that are all this fact.
    pub fn add(&mut self, fact: &Fact, weight: i64) {
        self.totals.add(fact, weight);
        if let Some(latency) = fact.latency_ms {
            self.latencies.add(latency, weight);
        }
    }

    /// Nothing is in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
