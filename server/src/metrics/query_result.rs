//! Adds up nodes and deltas to the response of a metrics query.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use api::metrics::{Interval, MetricGroup, MetricPoint};
use api::{Timestamp, metrics::MetricValues};
use prost::DecodeError;
use store::metrics::{
    fact::Fact,
    level::Level,
    sums::{Latencies, Sums, Totals},
    wire::EncodedNode,
};

use super::totals::{HistogramSum, TraceTotals};

/// Maximum number of groups in a response.
pub const MAX_GROUPS: usize = 100;

/// A metrics query.
#[derive(Clone, Debug)]
pub struct MetricsQuery {
    /// Start of the period, microseconds.
    pub from: i64,
    /// End of the period, microseconds.
    pub to: i64,
    /// Only traces of this model.
    pub model: Option<String>,
    /// Length of the buckets of the series, if any.
    pub interval: Option<Interval>,
    /// Whether to group by model.
    pub by_model: bool,
}

impl MetricsQuery {
    /// Returns the longest nodes that may be used whole.
    pub fn widest(&self) -> Level {
        match self.interval {
            None | Some(Interval::Day) => Level::DAY,
            Some(Interval::Hour) => Level::HOUR,
            Some(Interval::Minute) => Level::MINUTE,
        }
    }

    /// Returns the number of buckets of the series; 0 without a series.
    pub fn points(&self) -> i64 {
        let Some(interval) = self.interval else { return 0 };
        self.to.div_euclid(interval.micros()) - self.from.div_euclid(interval.micros()) + 1
    }

    fn point(&self, at: i64) -> Option<usize> {
        let length = self.interval?.micros();
        usize::try_from(at.div_euclid(length) - self.from.div_euclid(length)).ok()
    }

    fn includes_time(&self, at: i64) -> bool {
        (self.from..=self.to).contains(&at)
    }

    fn includes_model(&self, model: Option<&str>) -> bool {
        self.model.is_none() || self.model.as_deref() == model
    }
}

/// A period for which the totals of one model must be computed from trace rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPeriod {
    /// Microseconds, inclusive.
    pub from: i64,
    /// Microseconds, inclusive.
    pub to: i64,
}

/// The totals of a response under construction.
pub struct MetricsResult {
    query: MetricsQuery,
    all: TraceTotals,
    series: Vec<TraceTotals>,
    groups: HashMap<Option<Arc<str>>, GroupTotals>,
    lists: Vec<Latencies>,
    /// Number of nodes with models that are not listed by name.
    nodes_with_rest: usize,
}

#[derive(Default)]
struct GroupTotals {
    /// Number of such nodes that list the group's model by name: in others, some of its traces may be
    /// unlisted.
    certain: usize,
    all: TraceTotals,
    points: BTreeMap<usize, TraceTotals>,
}

/// The results of a query.
pub struct ComputedMetrics {
    /// Over the whole period.
    pub all: MetricValues,
    /// By bucket.
    pub series: Option<Vec<MetricPoint>>,
    /// By group, the largest first.
    pub groups: Vec<MetricGroup>,
    /// Whether there were more groups.
    pub truncated: bool,
}

impl MetricsResult {
    /// Creates an empty response.
    pub fn new(query: MetricsQuery) -> Self {
        let points = usize::try_from(query.points()).unwrap_or_default();
        Self {
            query,
            all: TraceTotals::default(),
            series: vec![TraceTotals::default(); points],
            groups: HashMap::new(),
            lists: Vec::new(),
            nodes_with_rest: 0,
        }
    }

    /// Adds a fact if it matches the query.
    pub fn add(&mut self, fact: &Fact, weight: i64) {
        if !self.query.includes_time(fact.at) || !self.query.includes_model(fact.model.as_deref()) {
            return;
        }
        let point = self.query.point(fact.at);
        self.all.add(fact, weight);
        if let Some(cell) = point.and_then(|it| self.series.get_mut(it)) {
            cell.add(fact, weight);
        }
        if self.query.by_model {
            self.add_to_group(fact.model.clone(), fact, weight);
        }
    }

    /// Adds a fact to a group, but not to the totals.
    pub fn add_to_group(&mut self, key: Option<Arc<str>>, fact: &Fact, weight: i64) {
        let point = self.query.point(fact.at);
        let group = self.groups.entry(key).or_default();
        group.all.add(fact, weight);
        if let Some(point) = point {
            group.points.entry(point).or_default().add(fact, weight);
        }
    }

    /// Adds the matching contents of a node. A node with totals that is only partly within the period
    /// adds nothing: its child nodes are read instead. Returns the period for which the totals of the
    /// model are not known.
    ///
    /// # Errors
    ///
    /// Fails when the node is damaged.
    pub fn add_node(
        &mut self,
        level: Level,
        start: i64,
        node: &EncodedNode,
    ) -> Result<Option<UnknownPeriod>, DecodeError> {
        if let Some(facts) = node.facts() {
            for (fact, weight) in facts {
                self.add(&fact, weight);
            }
            return Ok(None);
        }
        let (from, to) = (start, level.last(start));
        if level < self.query.widest() || from < self.query.from || to > self.query.to {
            return Ok(None);
        }
        let rest = node.rest()?.filter(|it| !it.is_empty());
        if let Some(model) = self.query.model.clone() {
            let Some(sums) = node.of_model(&model)? else {
                return Ok(rest.map(|_| UnknownPeriod { from, to }));
            };
            let (totals, list) = self.add_shared_latencies(sums);
            self.add_sums(start, &totals, list);
            if self.query.by_model {
                self.add_to_groups(start, Some(model.into()), &totals, list);
            }
            return Ok(None);
        }
        let (totals, list) = self.add_shared_latencies(node.all());
        self.add_sums(start, &totals, list);
        if self.query.by_model {
            self.nodes_with_rest += usize::from(rest.is_some());
            for (model, sums) in node.named()? {
                let (totals, list) = self.add_shared_latencies(sums);
                let group = self.add_to_groups(start, model, &totals, list);
                group.certain += usize::from(rest.is_some());
            }
        }
        Ok(None)
    }

    /// Moves latencies to the list that all totals share.
    fn add_shared_latencies(&mut self, Sums { totals, latencies }: Sums) -> (Totals, u32) {
        let list = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        self.lists.push(latencies);
        (totals, list)
    }

    /// Adds totals of traces that started at or shortly after `at`.
    fn add_sums(&mut self, at: i64, totals: &Totals, list: u32) {
        self.all.add_sums(totals, list);
        if let Some(cell) = self.query.point(at).and_then(|it| self.series.get_mut(it)) {
            cell.add_sums(totals, list);
        }
    }

    fn add_to_groups(
        &mut self,
        at: i64,
        key: Option<Arc<str>>,
        totals: &Totals,
        list: u32,
    ) -> &mut GroupTotals {
        let point = self.query.point(at);
        let group = self.groups.entry(key).or_default();
        group.all.add_sums(totals, list);
        if let Some(point) = point {
            group.points.entry(point).or_default().add_sums(totals, list);
        }
        group
    }

    /// Returns the metrics.
    pub fn values(self) -> ComputedMetrics {
        let Self { query, all, series, groups, lists, nodes_with_rest } = self;
        let mut counter = HistogramSum::default();
        // Only models are shown whose traces are all known by name.
        let shown =
            |it: &GroupTotals| it.all.traces() > 0 && (!query.by_model || it.certain == nodes_with_rest);
        let mut groups: Vec<_> = groups.into_iter().filter(|it| shown(&it.1)).collect();
        groups.sort_unstable_by(|a, b| (b.1.all.traces(), &a.0).cmp(&(a.1.all.traces(), &b.0)));
        let truncated = (query.by_model && nodes_with_rest > 0) || groups.len() > MAX_GROUPS;
        groups.truncate(MAX_GROUPS);
        let length = query.interval.map_or(1, Interval::micros);
        let first = query.from.div_euclid(length);
        let start = |point: usize| {
            let points = i64::try_from(point).unwrap_or(i64::MAX);
            Timestamp::from_micros(first.saturating_add(points).saturating_mul(length))
        };
        let mut point = |at: usize, cell: &TraceTotals| MetricPoint {
            start: start(at),
            values: cell.values(&lists, &mut counter),
        };
        let series =
            query.interval.map(|_| series.iter().enumerate().map(|(at, cell)| point(at, cell)).collect());
        let by_group: Vec<Vec<MetricPoint>> = groups
            .iter()
            .map(|(_, group)| {
                let points = group.points.iter().filter(|it| it.1.traces() > 0);
                points.map(|(at, cell)| point(*at, cell)).collect()
            })
            .collect();
        let groups = groups.into_iter().zip(by_group).map(|((key, group), points)| MetricGroup {
            key: key.map(|it| it.to_string()),
            metrics: group.all.values(&lists, &mut counter),
            series: query.interval.map(|_| points),
        });
        let groups = groups.collect();
        ComputedMetrics { all: all.values(&lists, &mut counter), series, groups, truncated }
    }
}
