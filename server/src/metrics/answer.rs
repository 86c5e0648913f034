//! Adding up what was read to the answer of a request.

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
    wire::Stored,
};

use super::cell::{Cell, Counter};

/// Groups that an answer shows.
pub const GROUPS: usize = 100;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Question {
    /// Traces that started then or later, microseconds.
    pub from: i64,
    /// Traces that started then or earlier, microseconds.
    pub to: i64,
    /// Traces of this model only.
    pub model: Option<String>,
    /// Also as a series.
    pub interval: Option<Interval>,
    /// Also by model.
    pub by_model: bool,
}

impl Question {
    /// The longest nodes that may be taken whole.
    pub fn widest(&self) -> Level {
        match self.interval {
            None | Some(Interval::Day) => Level::DAY,
            Some(Interval::Hour) => Level::HOUR,
            Some(Interval::Minute) => Level::MINUTE,
        }
    }

    /// How many points the series has; 0 without one.
    pub fn points(&self) -> i64 {
        let Some(interval) = self.interval else { return 0 };
        self.to.div_euclid(interval.micros()) - self.from.div_euclid(interval.micros()) + 1
    }

    fn point(&self, at: i64) -> Option<usize> {
        let length = self.interval?.micros();
        usize::try_from(at.div_euclid(length) - self.from.div_euclid(length)).ok()
    }

    fn wants(&self, at: i64) -> bool {
        (self.from..=self.to).contains(&at)
    }

    fn wants_model(&self, model: Option<&str>) -> bool {
        self.model.is_none() || self.model.as_deref() == model
    }
}

/// A stretch of time of which only the traces themselves can tell what is of one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclear {
    /// Microseconds, inclusive.
    pub from: i64,
    /// Microseconds, inclusive.
    pub to: i64,
}

/// The sums of an answer while it is made.
pub struct Answer {
    question: Question,
    all: Cell,
    series: Vec<Cell>,
    groups: HashMap<Option<Arc<str>>, Group>,
    lists: Vec<Latencies>,
    /// Nodes that have a rest.
    rests: usize,
}

#[derive(Default)]
struct Group {
    /// Nodes with a rest that name the group's model: in others some of its traces may be in the rest.
    certain: usize,
    all: Cell,
    points: BTreeMap<usize, Cell>,
}

/// What the sums came to.
pub struct Values {
    /// Over everything.
    pub all: MetricValues,
    /// By stretch.
    pub series: Option<Vec<MetricPoint>>,
    /// By group, the largest first.
    pub groups: Vec<MetricGroup>,
    /// There were more groups.
    pub truncated: bool,
}

impl Answer {
    /// Nothing is added yet.
    pub fn to(question: Question) -> Self {
        let points = usize::try_from(question.points()).unwrap_or_default();
        Self {
            question,
            all: Cell::default(),
            series: vec![Cell::default(); points],
            groups: HashMap::new(),
            lists: Vec::new(),
            rests: 0,
        }
    }

    /// Adds a fact if it is asked for.
    pub fn add(&mut self, fact: &Fact, weight: i64) {
        if !self.question.wants(fact.at) || !self.question.wants_model(fact.model.as_deref()) {
            return;
        }
        let point = self.question.point(fact.at);
        self.all.add(fact, weight);
        if let Some(cell) = point.and_then(|it| self.series.get_mut(it)) {
            cell.add(fact, weight);
        }
        if self.question.by_model {
            self.add_to_group(fact.model.clone(), fact, weight);
        }
    }

    /// Adds a fact to a group, and to nothing else.
    pub fn add_to_group(&mut self, key: Option<Arc<str>>, fact: &Fact, weight: i64) {
        let point = self.question.point(fact.at);
        let group = self.groups.entry(key).or_default();
        group.all.add(fact, weight);
        if let Some(point) = point {
            group.points.entry(point).or_default().add(fact, weight);
        }
    }

    /// Adds what a node holds and is asked for. A node of which only a part is asked for adds
    /// nothing if it holds sums: nodes below it are read in its place. Answers the stretch for
    /// which the sums can't tell.
    ///
    /// # Errors
    /// When the node is damaged.
    pub fn add_node(
        &mut self,
        level: Level,
        start: i64,
        node: &Stored,
    ) -> Result<Option<Unclear>, DecodeError> {
        if let Some(facts) = node.facts() {
            for (fact, weight) in facts {
                self.add(&fact, weight);
            }
            return Ok(None);
        }
        let (from, to) = (start, level.last(start));
        if level < self.question.widest() || from < self.question.from || to > self.question.to {
            return Ok(None);
        }
        let rest = node.rest()?.filter(|it| !it.is_empty());
        if let Some(model) = self.question.model.clone() {
            let Some(sums) = node.of_model(&model)? else { return Ok(rest.map(|_| Unclear { from, to })) };
            let (totals, list) = self.share(sums);
            self.add_sums(start, &totals, list);
            if self.question.by_model {
                self.add_to_groups(start, Some(model.into()), &totals, list);
            }
            return Ok(None);
        }
        let (totals, list) = self.share(node.all());
        self.add_sums(start, &totals, list);
        if self.question.by_model {
            self.rests += usize::from(rest.is_some());
            for (model, sums) in node.named()? {
                let (totals, list) = self.share(sums);
                let group = self.add_to_groups(start, model, &totals, list);
                group.certain += usize::from(rest.is_some());
            }
        }
        Ok(None)
    }

    /// Puts latencies where all cells find them.
    fn share(&mut self, Sums { totals, latencies }: Sums) -> (Totals, u32) {
        let list = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        self.lists.push(latencies);
        (totals, list)
    }

    /// Adds sums of traces that started at `at` or somewhat later.
    fn add_sums(&mut self, at: i64, totals: &Totals, list: u32) {
        self.all.add_sums(totals, list);
        if let Some(cell) = self.question.point(at).and_then(|it| self.series.get_mut(it)) {
            cell.add_sums(totals, list);
        }
    }

    fn add_to_groups(&mut self, at: i64, key: Option<Arc<str>>, totals: &Totals, list: u32) -> &mut Group {
        let point = self.question.point(at);
        let group = self.groups.entry(key).or_default();
        group.all.add_sums(totals, list);
        if let Some(point) = point {
            group.points.entry(point).or_default().add_sums(totals, list);
        }
        group
    }

    /// The metrics.
    pub fn values(self) -> Values {
        let Self { question, all, series, groups, lists, rests } = self;
        let mut counter = Counter::default();
        // By model and with rests, only models of which every trace is known are shown.
        let shown = |it: &Group| it.all.traces() > 0 && (!question.by_model || it.certain == rests);
        let mut groups: Vec<_> = groups.into_iter().filter(|it| shown(&it.1)).collect();
        groups.sort_unstable_by(|a, b| (b.1.all.traces(), &a.0).cmp(&(a.1.all.traces(), &b.0)));
        let truncated = (question.by_model && rests > 0) || groups.len() > GROUPS;
        groups.truncate(GROUPS);
        let length = question.interval.map_or(1, Interval::micros);
        let first = question.from.div_euclid(length);
        let start = |point: usize| {
            let points = i64::try_from(point).unwrap_or(i64::MAX);
            Timestamp::from_micros(first.saturating_add(points).saturating_mul(length))
        };
        let mut point = |at: usize, cell: &Cell| MetricPoint {
            start: start(at),
            values: cell.values(&lists, &mut counter),
        };
        let series =
            question.interval.map(|_| series.iter().enumerate().map(|(at, cell)| point(at, cell)).collect());
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
            series: question.interval.map(|_| points),
        });
        let groups = groups.collect();
        Values { all: all.values(&lists, &mut counter), series, groups, truncated }
    }
}
