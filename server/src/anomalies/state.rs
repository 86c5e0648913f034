//! The detectors of a project: advances them by the intervals that have ended.
//!
//! The state is stored in binary form and compressed. It can be rebuilt from the roll-up tree, so a state of an
//! unknown format is discarded.

use std::collections::{BTreeMap, VecDeque};

use anomalies::{Anomaly, AnomalyChange, Detector, Direction, Directions, MetricKind, Point, interval_for};
use anyhow::Context;
use entities::anomaly_detector;
use serde::{Deserialize, Serialize};

use super::{
    DAY, HISTORY_DAYS, MINUTE, floor,
    interval::{IntervalTotals, TotalsByInterval},
};

/// The first byte of a stored state. Another number means another version of the detectors.
const STATE_FORMAT: u8 = 1;
/// Compression level of the state.
const COMPRESSION_LEVEL: i32 = 1;
/// Maximum size of a decompressed state in bytes.
const MAX_STATE_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of metric names with a detector of their scores.
const MAX_SCORE_METRICS: usize = 20;
/// Time in microseconds after which the detector of scores without values is removed.
const MAX_SCORE_SILENCE: i64 = 7 * DAY;
/// Days without traces after which the detectors of a project are removed.
const MAX_SILENT_DAYS: usize = 7;
/// Time in microseconds after the end of an interval without traces at which the interval counts as missing:
/// the server was probably down.
const MAX_DELAY: i64 = 3 * MINUTE;
/// Time in microseconds after its end until which an interval is processed if the server was not down.
const USUAL_DELAY: i64 = MINUTE;
/// Factor by which the traffic must exceed the limit between two lengths of the interval.
const INTERVAL_HYSTERESIS: f64 = 1.5;

/// The metrics of every project.
const TRACE_METRICS: [(&str, MetricKind); 5] = [
    ("volume", MetricKind::Volume),
    ("error_rate", MetricKind::ErrorRate),
    ("latency_p95", MetricKind::LatencyP95),
    ("cost", MetricKind::Cost),
    ("tokens", MetricKind::Tokens),
];
/// The beginning of the names of metrics that are mean scores.
const SCORE_PREFIX: &str = "score:";

/// A change of an anomaly of this metric.
pub type MetricChange = (String, AnomalyChange);

/// What to store after some intervals.
#[derive(Debug, PartialEq)]
pub struct DetectionProgress {
    /// The changes, in the order of time.
    pub changes: Vec<MetricChange>,
    /// The row that replaces the stored one; `None` removes it, because the project no longer receives
    /// traces.
    pub row: Option<anomaly_detector::Model>,
}

/// The detectors of a project.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ProjectDetectors {
    metrics: BTreeMap<String, MetricDetector>,
    /// Number of traces of the current day.
    traces_today: u64,
    /// Number of traces of the last complete days, oldest first.
    traces_of_days: VecDeque<u64>,
    /// Whether the server was probably down during the last interval.
    was_down: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct MetricDetector {
    kind: MetricKind,
    detector: Detector,
    /// Start of the last interval with a value.
    last_value: i64,
}

/// Processes the intervals of a project from the next one to before `end`. `now` is the current time.
///
/// # Errors
///
/// Fails when the state cannot be encoded.
pub fn advance(
    row: &anomaly_detector::Model,
    totals: &TotalsByInterval,
    end: i64,
    now: i64,
) -> anyhow::Result<DetectionProgress> {
    let interval = row.interval_micros;
    let mut changes = Vec::new();
    // Without its history, a state learns from the past again.
    let Some(mut detectors) = ProjectDetectors::decode(&row.state) else {
        return Ok(DetectionProgress {
            changes,
            row: Some(learning_row(row, interval, row.next_start, now)),
        });
    };
    let nothing = IntervalTotals::default();
    let mut start = row.next_start;
    while start < end {
        let is_live = start >= row.live_from;
        if floor(start, DAY) == start {
            detectors.end_day();
            if is_live && !detectors.has_open_anomaly() {
                if detectors.is_silent() {
                    return Ok(DetectionProgress { changes, row: None });
                }
                let suitable = detectors.suitable_interval(interval);
                if suitable != interval {
                    return Ok(DetectionProgress {
                        changes,
                        row: Some(learning_row(row, suitable, start, now)),
                    });
                }
            }
        }
        let of_interval = totals.get(&start).unwrap_or(&nothing);
        let is_missing = |start: i64| {
            let delay = if detectors.was_down { USUAL_DELAY } else { MAX_DELAY };
            now - (start + interval) > delay && totals.get(&start).is_none_or(IntervalTotals::is_empty)
        };
        let is_down = is_live && is_missing(start);
        // The server was stopped and started within an interval: their traces are incomplete.
        let is_stopping = is_live && start + interval < end && is_missing(start + interval);
        let is_incomplete = is_down || detectors.was_down || is_stopping;
        detectors.was_down = is_down;
        if is_incomplete || detectors.metrics.is_empty() && of_interval.is_empty() {
            detectors.skip(start + interval);
        } else {
            let observed = detectors.observe(start, interval, of_interval);
            changes.extend(observed.into_iter().filter(|_| is_live));
        }
        start += interval;
        if start == row.live_from {
            changes.extend(
                detectors
                    .open_anomalies()
                    .map(|(it, anomaly)| (it.to_owned(), AnomalyChange::Opened(*anomaly))),
            );
        }
    }
    let row = anomaly_detector::Model {
        next_start: start,
        due_at: start + interval,
        state: detectors.encode()?,
        updated_at: now,
        ..row.clone()
    };
    Ok(DetectionProgress { changes, row: Some(row) })
}

/// Returns a row whose detectors learn from four weeks of intervals of this length and report anomalies from the
/// interval at `live_from` on.
pub fn learning_row(
    row: &anomaly_detector::Model,
    interval: i64,
    live_from: i64,
    now: i64,
) -> anomaly_detector::Model {
    let live_from = floor(live_from, interval);
    let next_start = floor(live_from - HISTORY_DAYS * DAY, DAY);
    anomaly_detector::Model {
        interval_micros: interval,
        next_start,
        due_at: next_start + interval,
        live_from,
        state: Vec::new(),
        updated_at: now,
        ..row.clone()
    }
}

impl ProjectDetectors {
    /// Decodes a state; an empty one has no detectors yet. `None` if its format is unknown.
    fn decode(state: &[u8]) -> Option<Self> {
        let Some((&format, compressed)) = state.split_first() else { return Some(Self::default()) };
        if format != STATE_FORMAT {
            return None;
        }
        let bytes = zstd::bulk::decompress(compressed, MAX_STATE_BYTES).ok()?;
        postcard::from_bytes(&bytes).ok()
    }

    fn encode(&self) -> anyhow::Result<Vec<u8>> {
        let bytes = postcard::to_allocvec(self).context("the state of detectors can't be encoded")?;
        let compressed = zstd::bulk::compress(&bytes, COMPRESSION_LEVEL)?;
        Ok([&[STATE_FORMAT][..], &compressed].concat())
    }

    /// Adds an interval to every detector.
    fn observe(&mut self, start: i64, interval: i64, totals: &IntervalTotals) -> Vec<MetricChange> {
        self.traces_today += totals.traces();
        for (name, kind) in TRACE_METRICS {
            self.add_metric(name.to_owned(), kind, start, interval);
        }
        for name in totals.scores.keys() {
            let name = format!("{SCORE_PREFIX}{name}");
            let is_full = self.metrics.len() >= TRACE_METRICS.len() + MAX_SCORE_METRICS;
            if !is_full || self.metrics.contains_key(&name) {
                self.add_metric(name, MetricKind::Score, start, interval);
            }
        }
        let mut changes = Vec::new();
        for (name, metric) in &mut self.metrics {
            let point = point(name, metric.kind, start, totals);
            if point.value.is_finite() {
                metric.last_value = start;
            }
            let observed = metric.detector.observe(point);
            changes.extend(observed.into_iter().map(|it| (name.clone(), it)));
        }
        self.metrics.retain(|_, it| {
            it.kind != MetricKind::Score
                || it.detector.open_anomaly().is_some()
                || start - it.last_value < MAX_SCORE_SILENCE
        });
        changes
    }

    fn add_metric(&mut self, name: String, kind: MetricKind, start: i64, interval: i64) {
        self.metrics.entry(name).or_insert_with(|| MetricDetector {
            kind,
            detector: Detector::new(kind, interval),
            last_value: start,
        });
    }

    /// Ignores the intervals before `next`, because they have no data.
    fn skip(&mut self, next: i64) {
        for metric in self.metrics.values_mut() {
            metric.detector.skip_until(next);
        }
    }

    /// Returns the open anomalies that are reported, with their metrics.
    fn open_anomalies(&self) -> impl Iterator<Item = (&str, &Anomaly)> {
        self.metrics.iter().filter_map(|(name, metric)| {
            let anomaly = metric.detector.open_anomaly()?;
            let is_reported = match metric.kind.settings().directions {
                Directions::Both => true,
                Directions::Up => anomaly.direction == Direction::Up,
                Directions::Down => anomaly.direction == Direction::Down,
            };
            is_reported.then_some((name.as_str(), anomaly))
        })
    }

    fn has_open_anomaly(&self) -> bool {
        self.open_anomalies().next().is_some()
    }

    /// Ends a day.
    fn end_day(&mut self) {
        if self.metrics.is_empty() {
            return;
        }
        self.traces_of_days.push_back(std::mem::take(&mut self.traces_today));
        if self.traces_of_days.len() > MAX_SILENT_DAYS {
            self.traces_of_days.pop_front();
        }
    }

    /// Returns whether the project has had no traces for some days.
    fn is_silent(&self) -> bool {
        self.traces_of_days.len() == MAX_SILENT_DAYS && self.traces_of_days.iter().all(|it| *it == 0)
    }

    /// Returns the length of interval that suits the traffic of the last days: the current one unless another one
    /// clearly suits better.
    fn suitable_interval(&self, current: i64) -> i64 {
        if self.traces_of_days.is_empty() {
            return current;
        }
        let mean = self.traces_of_days.iter().sum::<u64>() as f64 / self.traces_of_days.len() as f64;
        let (low, high) =
            (interval_for(mean / INTERVAL_HYSTERESIS), interval_for(mean * INTERVAL_HYSTERESIS));
        if low == high { low } else { current }
    }
}

/// Returns the value of a metric in an interval.
fn point(name: &str, kind: MetricKind, start: i64, totals: &IntervalTotals) -> Point {
    let traces = totals.traces();
    let (value, samples) = match kind {
        MetricKind::Volume => (traces as f64, traces),
        MetricKind::ErrorRate => (totals.errors(), traces),
        MetricKind::LatencyP95 => match totals.latency_p95() {
            (Some(p95), count) => (p95, count),
            (None, _) => (f64::NAN, 0),
        },
        MetricKind::Cost => (totals.cost(), traces),
        MetricKind::Tokens => (totals.tokens(), traces),
        MetricKind::Score | MetricKind::Generic => {
            match name.strip_prefix(SCORE_PREFIX).and_then(|it| totals.scores.get(it)) {
                Some((count, sum)) if *count > 0 => (sum / *count as f64, *count),
                _ => (f64::NAN, 0),
            }
        }
    };
    Point { start, value, samples }
}
