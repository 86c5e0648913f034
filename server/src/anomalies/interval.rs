//! The totals of each interval of a project: traces from the roll-up tree, and scores of evaluations.

use std::collections::{BTreeMap, HashMap};

use semantics::money::PICO_PER_USD;
use store::{
    Db, DbError,
    anomalies::{ScoreTotals, scores},
    metrics::{
        self, Reading, bins, delta,
        fact::Fact,
        level::Level,
        range::{Range, ranges},
        sums::{Sums, Totals},
        wire::EncodedNode,
    },
};
use uuid::Uuid;

use super::{DAY, HOUR, floor};
use crate::metrics::totals::percentiles;

/// Maximum number of totals of scores that are read at once.
const MAX_SCORE_TOTALS: u32 = 20_000;

/// Consecutive intervals of the same length; times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Start of the first interval.
    pub from: i64,
    /// End of the last interval.
    pub end: i64,
    /// Length of each interval.
    pub interval: i64,
}

impl Period {
    /// Returns the nodes to read: those that end with the intervals.
    fn ranges(self) -> Vec<Range> {
        let widest = match self.interval {
            DAY.. => Level::DAY,
            HOUR.. => Level::HOUR,
            _ => Level::MINUTE,
        };
        ranges(self.from, self.end - 1, widest)
    }

    /// Returns the start of the interval that contains a time within the period.
    fn start_of(self, at: i64) -> Option<i64> {
        (self.from..self.end).contains(&at).then(|| floor(at, self.interval))
    }
}

/// The totals of a project in one interval.
#[derive(Clone, Debug, Default)]
pub struct IntervalTotals {
    totals: Totals,
    /// Number of latencies by bucket.
    latencies: BTreeMap<u16, i64>,
    /// Number and sum of the scores by metric name.
    pub scores: BTreeMap<String, (u64, f64)>,
}

impl IntervalTotals {
    fn add(&mut self, fact: &Fact, weight: i64) {
        self.totals.add(fact, weight);
        if let Some(latency) = fact.latency_ms {
            *self.latencies.entry(bins::of(latency)).or_default() += weight;
        }
    }

    fn add_sums(&mut self, sums: &Sums) {
        self.totals.merge(&sums.totals);
        for (bin, count) in &sums.latencies.0 {
            *self.latencies.entry(*bin).or_default() += count;
        }
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.traces() == 0 && self.scores.is_empty()
    }

    /// Returns the number of traces.
    pub fn traces(&self) -> u64 {
        u64::try_from(self.totals.traces).unwrap_or_default()
    }

    /// Returns the number of failed traces.
    pub fn errors(&self) -> f64 {
        self.totals.errors.max(0) as f64
    }

    /// Returns the cost in US dollars.
    pub fn cost(&self) -> f64 {
        self.totals.cost.max(0) as f64 / PICO_PER_USD as f64
    }

    /// Returns the number of tokens.
    pub fn tokens(&self) -> f64 {
        self.totals.tokens.max(0) as f64
    }

    /// Returns the 95th percentile of the latencies in milliseconds, and the number of latencies.
    pub fn latency_p95(&self) -> (Option<f64>, u64) {
        let [_, p95, _] = percentiles(self.latencies.iter().map(|(bin, count)| (*bin, *count)));
        let count: i64 = self.latencies.values().map(|it| it.max(&0)).sum();
        (p95, count.unsigned_abs())
    }
}

/// The totals of a project by the start of the interval; intervals in which nothing happened may be missing.
pub type TotalsByInterval = BTreeMap<i64, IntervalTotals>;

/// Reads the totals of projects in a period. `None` while facts of the tenant's traces are not counted
/// yet.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn read(
    db: &Db,
    tenant: Uuid,
    projects: &[Uuid],
    period: Period,
) -> Result<Option<HashMap<Uuid, TotalsByInterval>>, DbError> {
    let reading = metrics::read(db.current(), tenant, Some(projects), &period.ranges()).await?;
    if reading.tokens_unmeasured {
        return Ok(None);
    }
    let ends = (period.from, period.end);
    let scores = scores(db, tenant, projects, ends, period.interval, MAX_SCORE_TOTALS).await?;
    let mut totals = add_traces(&reading, projects, period);
    add_scores(&mut totals, scores);
    Ok(Some(totals))
}

/// Reads the number of traces of each project by day. `None` while facts of the tenant's traces are not counted
/// yet.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn traces_by_day(
    db: &Db,
    tenant: Uuid,
    projects: &[Uuid],
    (from, end): (i64, i64),
) -> Result<Option<HashMap<Uuid, BTreeMap<i64, u64>>>, DbError> {
    let period = Period { from, end, interval: DAY };
    let reading = metrics::read(db.current(), tenant, Some(projects), &period.ranges()).await?;
    if reading.tokens_unmeasured {
        return Ok(None);
    }
    let totals = add_traces(&reading, projects, period);
    let count = |days: TotalsByInterval| days.into_iter().map(|(day, it)| (day, it.traces())).collect();
    Ok(Some(totals.into_iter().map(|(project, days)| (project, count(days))).collect()))
}

/// Adds up the nodes and deltas of a reading. Damaged rows are skipped: `admin check` reports them.
fn add_traces(reading: &Reading, projects: &[Uuid], period: Period) -> HashMap<Uuid, TotalsByInterval> {
    let mut totals: HashMap<Uuid, TotalsByInterval> = HashMap::new();
    for bytes in &reading.deltas {
        let Ok(changes) = delta::decode(bytes) else { continue };
        for (project, facts) in changes.into_iter().filter(|it| projects.contains(&it.0)) {
            add_facts(totals.entry(project).or_default(), facts.into_iter(), period);
        }
    }
    for node in &reading.nodes {
        let Ok(stored) = EncodedNode::open(&node.data) else { continue };
        let intervals = totals.entry(node.project).or_default();
        match (stored.facts(), period.start_of(node.start)) {
            (Some(facts), _) => add_facts(intervals, facts, period),
            (None, Some(start)) => intervals.entry(start).or_default().add_sums(&stored.all()),
            (None, None) => {}
        }
    }
    totals
}

/// Adds the facts within a period, each with its weight.
fn add_facts(intervals: &mut TotalsByInterval, facts: impl Iterator<Item = (Fact, i64)>, period: Period) {
    for (fact, weight) in facts {
        if let Some(start) = period.start_of(fact.at) {
            intervals.entry(start).or_default().add(&fact, weight);
        }
    }
}

fn add_scores(totals: &mut HashMap<Uuid, TotalsByInterval>, scores: Vec<ScoreTotals>) {
    for ScoreTotals { project_id, metric_name, start, count, sum } in scores {
        let interval = totals.entry(project_id).or_default().entry(start).or_default();
        interval.scores.insert(metric_name, (count.unsigned_abs(), sum));
    }
}
