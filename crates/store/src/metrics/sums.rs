//! Totals over facts. They can be added and subtracted in any order; a total may be negative while a
//! subtraction precedes its addition.

use super::{
    bins,
    fact::{Fact, is_good},
};

/// Totals of a set of traces, except their latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of traces.
    pub traces: i64,
    /// Number of traces that ended in error.
    pub errors: i64,
    /// Cost in pico-dollars.
    pub cost: i128,
    /// Number of tokens.
    pub tokens: i128,
    /// Number of traces with feedback.
    pub labelled: i64,
    /// Number of traces whose newest feedback is good.
    pub good: i64,
}

impl Totals {
    /// Adds `weight` traces with this fact.
    pub fn add(&mut self, fact: &Fact, weight: i64) {
        let if_so = |it: bool| if it { weight } else { 0 };
        self.traces += weight;
        self.errors += if_so(fact.error);
        self.cost += i128::from(fact.cost) * i128::from(weight);
        self.tokens += i128::from(fact.tokens) * i128::from(weight);
        self.labelled += if_so(fact.feedback.is_some());
        self.good += if_so(fact.feedback.is_some_and(is_good));
    }

    /// Adds other totals.
    pub fn merge(&mut self, other: &Self) {
        self.traces += other.traces;
        self.errors += other.errors;
        self.cost += other.cost;
        self.tokens += other.tokens;
        self.labelled += other.labelled;
        self.good += other.good;
    }
}

/// A histogram of latencies: buckets ascending, without zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies(pub Vec<(u16, i64)>);

impl Latencies {
    /// Adds `weight` latencies.
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

/// All totals of a set of traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Counts and cost.
    pub totals: Totals,
    /// The latencies.
    pub latencies: Latencies,
}

impl Sums {
    /// Adds `weight` traces with this fact.
    pub fn add(&mut self, fact: &Fact, weight: i64) {
        self.totals.add(fact, weight);
        if let Some(latency) = fact.latency_ms {
            self.latencies.add(latency, weight);
        }
    }

    /// Whether the totals are empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
