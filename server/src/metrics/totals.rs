//! The totals of one set of traces of a response: all traces, a bucket, a group.

use api::metrics::MetricValues;
use semantics::money;
use store::metrics::{
    bins,
    fact::Fact,
    sums::{Latencies, Totals},
};

/// The totals of the set. Long lists of latencies are referenced instead of copied, and added up once
/// at the end.
#[derive(Clone, Debug, Default)]
pub struct TraceTotals {
    totals: Totals,
    /// Indexes into the list of latencies that all totals of a response share.
    lists: Vec<u32>,
    /// Single latencies, by bucket.
    single: Vec<(u16, i64)>,
}

impl TraceTotals {
    /// Adds a fact.
    pub fn add(&mut self, fact: &Fact, weight: i64) {
        self.totals.add(fact, weight);
        if let Some(latency) = fact.latency_ms {
            self.single.push((bins::of(latency), weight));
        }
    }

    /// Adds totals whose latencies are at an index of the shared list.
    pub fn add_sums(&mut self, totals: &Totals, list: u32) {
        self.totals.merge(totals);
        self.lists.push(list);
    }

    /// Returns the number of traces.
    pub fn traces(&self) -> i64 {
        self.totals.traces
    }

    /// Returns the metrics.
    #[expect(clippy::cast_precision_loss, reason = "rates and dollars are shown, not counted with")]
    pub fn values(&self, shared: &[Latencies], counter: &mut HistogramSum) -> MetricValues {
        let Totals { traces, errors, cost, tokens: _, labelled, good } = self.totals;
        let rate = |part: i64, of: i64| (of > 0).then(|| part as f64 / of as f64);
        let [p50, p95, p99] = self.percentiles(shared, counter);
        MetricValues {
            error_rate: rate(errors, traces),
            latency_p50: p50,
            latency_p95: p95,
            latency_p99: p99,
            total_cost: cost as f64 / money::PICO_PER_USD as f64,
            trace_count: traces.max(0),
            feedback_good_rate: rate(good, labelled),
        }
    }

    fn percentiles(&self, shared: &[Latencies], counter: &mut HistogramSum) -> [Option<f64>; 3] {
        let lists = self.lists.iter().filter_map(|it| shared.get(*it as usize));
        if let ([list], []) = (self.lists.as_slice(), self.single.as_slice()) {
            let counts = shared.get(*list as usize).map_or(&[][..], |it| &it.0);
            return percentiles(counts.iter().copied());
        }
        for (bucket, count) in lists.flat_map(|it| &it.0).chain(&self.single) {
            counter.add(*bucket, *count);
        }
        let result = percentiles(counter.counts());
        counter.clear();
        result
    }
}

/// A buffer for adding up histograms, reused for each set of traces.
#[derive(Debug)]
pub struct HistogramSum {
    counts: Vec<i64>,
    low: usize,
    high: usize,
}

impl Default for HistogramSum {
    fn default() -> Self {
        Self { counts: vec![0; bins::count()], low: usize::MAX, high: 0 }
    }
}

impl HistogramSum {
    fn add(&mut self, bucket: u16, count: i64) {
        let number = usize::from(bucket);
        if let Some(it) = self.counts.get_mut(number) {
            *it += count;
            self.low = self.low.min(number);
            self.high = self.high.max(number);
        }
    }

    fn counts(&self) -> impl Iterator<Item = (u16, i64)> + Clone {
        (self.low..=self.high).map(|it| (u16::try_from(it).unwrap_or(u16::MAX), self.counts[it]))
    }

    fn clear(&mut self) {
        if self.low <= self.high {
            self.counts[self.low..=self.high].fill(0);
        }
        (self.low, self.high) = (usize::MAX, 0);
    }
}

/// Returns the 50th, 95th and 99th percentile of a histogram, buckets ascending. Interpolates between
/// ranks, like spreadsheets and statistics libraries.
pub fn percentiles(counts: impl Iterator<Item = (u16, i64)> + Clone) -> [Option<f64>; 3] {
    let total: i64 = counts.clone().map(|it| it.1.max(0)).sum();
    if total == 0 {
        return [None; 3];
    }
    let mut wanted = [50, 95, 99].map(|percent| {
        // In hundredths of a rank, to avoid rounding errors.
        let rank = i128::from(total - 1) * percent;
        Rank { low: (rank / 100) as i64, part: (rank % 100) as f64 / 100.0, at_low: None, at_high: None }
    });
    let mut before = 0;
    for (bucket, count) in counts.filter(|it| it.1 > 0) {
        let after = before + count;
        for rank in &mut wanted {
            rank.record_bucket(before, after, bucket);
        }
        before = after;
    }
    wanted.map(|it| it.value())
}

/// A position between two ranks.
struct Rank {
    low: i64,
    part: f64,
    at_low: Option<u16>,
    at_high: Option<u16>,
}

impl Rank {
    /// Records that the ranks from `before` to below `after` are in this bucket.
    fn record_bucket(&mut self, before: i64, after: i64, bucket: u16) {
        let within = before..after;
        if within.contains(&self.low) {
            self.at_low = Some(bucket);
        }
        if within.contains(&(self.low + 1)) {
            self.at_high = Some(bucket);
        }
    }

    fn value(&self) -> Option<f64> {
        let low = bins::middle(self.at_low?);
        let high = self.at_high.map_or(low, bins::middle);
        Some(low + (high - low) * self.part)
    }
}
