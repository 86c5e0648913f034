//! The detector of one metric of one project: opens, updates and closes anomalies.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::anomaly::{Anomaly, AnomalyChange, CloseReason, Direction, Severity};
use crate::baseline::Baseline;
use crate::calibration::{Calibration, SignedBucket};
use crate::evidence::WindowSums;
use crate::metric::{Directions, Family, MetricKind, MetricSettings};
use crate::point::{HOUR, MINUTE, Point};
use crate::window::{AssessedPoint, MAX_WINDOW_LENGTH, RecentPoints, WINDOW_LENGTHS};

const WINDOW_COUNT: usize = WINDOW_LENGTHS.len();
/// Interval at which the opening score of the settings applies.
const OPEN_SCORE_INTERVAL: i64 = 5 * MINUTE;
/// Difference of scores that divides the number of usual deviations above a score by e, as counted in simulated months
/// without incidents. Longer intervals make fewer decisions, so a lower score gives them the same rate of false alarms.
const SCORE_TAIL: f64 = 0.4;
/// Factors of the score that opens an anomaly, by length of the window.
const OPEN_FACTORS: [f32; WINDOW_COUNT] = [1.2, 1.1, 0.95, 0.85];
/// Share of the opening score and of the smallest effect below which a metric has recovered.
const CLOSE_SHARE: f64 = 0.5;
/// An anomaly is closed when its metric has been within the expected range for this many intervals and this
/// time.
const MIN_CLOSE_INTERVALS: usize = 3;
const MIN_CLOSE_TIME: i64 = 30 * MINUTE;
/// Time after which a new level is the expected one.
const NEW_NORMAL_TIME: i64 = 24 * HOUR;
/// Time after which a lasting anomaly is of medium severity.
const MEDIUM_SEVERITY_TIME: i64 = 3 * HOUR;
/// Time after which the weight of deviations in the calibration is halved.
const CALIBRATION_MEMORY: i64 = 28 * 24 * HOUR;
/// Time after which a deviation is counted as usual, if no anomaly was opened meanwhile.
const CALIBRATION_DELAY: i64 = 24 * HOUR;
/// Maximum number of intervals that are filled in when the caller skips some: four weeks of 5 minutes.
const MAX_FILLED_INTERVALS: i64 = 8064;

/// Time in which a recent anomaly loses most of its influence on the next, and the strength of that influence.
const HABITUATION_HOURS: f32 = 48.0;
const HABITUATION_STRENGTH: f32 = 0.2;

/// An open anomaly and what is needed to close it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OpenAnomaly {
    anomaly: Anomaly,
    /// Length of the window that opened it.
    window: usize,
    /// Start of the last interval with a value.
    last_value: i64,
}

/// Follows one metric of one project.
///
/// A detector is a value: equal detectors return equal changes for equal points. Its serialized form has at most
/// 120 KB as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detector {
    kind: MetricKind,
    settings: MetricSettings,
    interval: i64,
    /// Start of the next interval.
    next: Option<i64>,
    /// Size of one summand or of one unit of deviation, learned from the first value.
    unit: Option<f64>,
    baseline: Option<Baseline>,
    recent: RecentPoints,
    calibrations: [Calibration; WINDOW_COUNT],
    /// Deviations that are not yet counted as usual, oldest first; `None` for windows without values.
    uncounted: VecDeque<[Option<SignedBucket>; WINDOW_COUNT]>,
    /// Number of recent anomalies; each counts less from hour to hour.
    habituation: f32,
    hour_is_anomalous: bool,
    open: Option<OpenAnomaly>,
    /// Score of the newest interval.
    score: f64,
}

/// The strongest deviation of the newest interval.
#[derive(Clone, Copy)]
struct Deviation {
    direction: Direction,
    score: f64,
    /// Index of the window.
    window: usize,
    has_effect: bool,
}

impl Detector {
    /// Creates a detector without history for intervals of this length in microseconds.
    pub fn new(kind: MetricKind, interval: i64) -> Self {
        Self::with_settings(kind, interval, kind.settings())
    }

    /// Creates a detector with other thresholds than the default.
    pub fn with_settings(kind: MetricKind, interval: i64, settings: MetricSettings) -> Self {
        Self {
            kind,
            settings,
            interval: interval.clamp(MINUTE, HOUR),
            next: None,
            unit: None,
            baseline: None,
            recent: RecentPoints::default(),
            calibrations: std::array::from_fn(|_| Calibration::new()),
            uncounted: VecDeque::new(),
            habituation: 0.0,
            hour_is_anomalous: false,
            open: None,
            score: 0.0,
        }
    }

    /// Returns the start of the next interval that the detector needs; `None` before the first.
    pub fn next_start(&self) -> Option<i64> {
        self.next
    }

    /// Returns the open anomaly.
    pub fn open_anomaly(&self) -> Option<&Anomaly> {
        self.open.as_ref().map(|it| &it.anomaly)
    }

    /// Returns the score of the newest interval: its strongest deviation as a multiple of the usual spread.
    pub fn score(&self) -> f64 {
        self.score
    }

    /// Ignores all intervals before `start`, because they have no data; for example, the server was down.
    pub fn skip_until(&mut self, start: i64) {
        if self.next.is_some_and(|it| it < start) {
            self.next = Some(start);
            self.recent.clear();
        }
    }

    /// Adds the interval of a point and returns the changes that the caller stores.
    ///
    /// An interval that was added before is ignored, so that a repeated job does no harm. Intervals between the
    /// newest one and this one had no traces: zero for counts and sums, otherwise without a value.
    pub fn observe(&mut self, point: Point) -> Vec<AnomalyChange> {
        let mut changes = Vec::new();
        let start = point.start - point.start.rem_euclid(self.interval);
        let next = self.next.unwrap_or(start);
        if start < next {
            return changes;
        }
        let first = next.max(start - MAX_FILLED_INTERVALS * self.interval);
        let mut missing = first;
        while missing < start {
            let value = if self.settings.family == Family::Count { 0.0 } else { f64::NAN };
            changes.extend(self.step(Point { start: missing, value, samples: 0 }));
            missing += self.interval;
        }
        changes.extend(self.step(Point { start, ..point }));
        self.next = Some(start + self.interval);
        changes
    }

    fn step(&mut self, point: Point) -> Option<AnomalyChange> {
        self.roll(point.start);
        let has_value = self.assess(point);
        let sums = self.window_sums();
        let deviations = sums.map(|it| {
            it.map_or(0.0, |it| it.deviation(self.settings.family, self.unit.unwrap_or(1.0)) as f32)
        });
        let strongest = self.strongest(&sums, &deviations);
        self.score = strongest.map_or(0.0, |it| it.score);
        if let Some(open) = self.open.take() {
            self.hour_is_anomalous = true;
            let is_reported = self.reports(open.anomaly.direction);
            return self.follow(open, point.start, has_value, &sums, strongest).filter(|_| is_reported);
        }
        if let Some(found) = strongest.filter(|it| it.has_effect && self.opens(it)) {
            if self.returns_to_retired_level(&found, &sums) {
                return None;
            }
            let opened = self.open(found, point.start, &sums, &deviations);
            return Some(opened).filter(|_| self.reports(found.direction));
        }
        if self.age_hours() >= i64::from(self.settings.min_history_days) * 24 {
            self.calibrate(&sums, &deviations);
        }
        None
    }

    /// Ends the hours before an interval.
    fn roll(&mut self, start: i64) {
        let family = self.settings.family;
        let baseline = self.baseline.get_or_insert_with(|| Baseline::new(family, start));
        let before = baseline.age_hours();
        baseline.advance(start, self.hour_is_anomalous);
        if baseline.age_hours() != before {
            self.habituation *= (-1.0 / HABITUATION_HOURS).exp();
            self.hour_is_anomalous = self.open.is_some();
            let floor = self.spread_floor();
            for (calibration, length) in self.calibrations.iter_mut().zip(WINDOW_LENGTHS) {
                calibration.update_spreads(floor, length);
            }
        }
    }

    /// Returns the smallest spread of a family, in units of deviation.
    fn spread_floor(&self) -> f32 {
        match self.settings.family {
            Family::Count | Family::Proportion => 1.0,
            Family::Mean => 0.2,
            Family::LogMean => 2.0,
        }
    }

    /// Compares an interval with its expectation and adds it to the history. Returns whether it has a value.
    fn assess(&mut self, point: Point) -> bool {
        let family = self.settings.family;
        let share = self.interval as f32 / HOUR as f32;
        let unit = self.unit_of(&point);
        let Some(baseline) = &mut self.baseline else { return false };
        let samples = point.samples as f32;
        let is_number = point.value.is_finite();
        let (value, weight) = match family {
            Family::Count => ((point.value / unit) as f32, 1.0),
            Family::Proportion => (point.value as f32, samples),
            Family::Mean | Family::LogMean => {
                let value = if family == Family::LogMean { point.value.max(1e-9).ln() } else { point.value };
                let half = self.settings.half_weight_samples;
                let weight = if half > 0.0 { samples / (samples + half) } else { 1.0 };
                (value as f32, weight)
            }
        };
        let has_value = is_number && (weight > 0.0);
        let expected = baseline.expect(point.start, share);
        let assessed = AssessedPoint {
            start: point.start,
            value: if has_value { value } else { expected[1] },
            samples: if has_value { samples } else { 0.0 },
            weight: if has_value { weight } else { 0.0 },
            expected,
        };
        if has_value {
            baseline.add(point.start, value, weight, share);
        }
        self.recent.push(assessed);
        has_value
    }

    /// Returns the size of one unit on the scale of the family; the first value decides it.
    fn unit_of(&mut self, point: &Point) -> f64 {
        if let Some(unit) = self.unit {
            return unit;
        }
        let learned = match self.kind {
            MetricKind::Volume | MetricKind::ErrorRate => Some(1.0),
            MetricKind::LatencyP95 => Some(0.01),
            MetricKind::Score => Some(0.002),
            MetricKind::Cost | MetricKind::Tokens => {
                (point.value > 0.0 && point.samples > 0).then(|| point.value / point.samples as f64)
            }
            MetricKind::Generic => {
                (point.value.is_finite() && point.value != 0.0).then(|| point.value.abs() / 100.0)
            }
        };
        self.unit = learned.filter(|it| it.is_finite() && *it > 0.0);
        self.unit.unwrap_or(1.0)
    }

    /// Returns the sums of each window; `None` for windows that are longer than the recent intervals.
    fn window_sums(&self) -> [Option<WindowSums>; WINDOW_COUNT] {
        let mut windows = [None; WINDOW_COUNT];
        let mut sums = WindowSums::default();
        for (older, point) in self.recent.newest_first().enumerate() {
            sums.add(point, self.settings.family);
            if let Some(index) = WINDOW_LENGTHS.iter().position(|&it| it == older + 1) {
                windows[index] = Some(sums);
            }
        }
        windows
    }

    /// Remembers the deviations of an interval without an anomaly, and counts those of a day ago as usual.
    fn calibrate(&mut self, sums: &[Option<WindowSums>; WINDOW_COUNT], deviations: &[f32; WINDOW_COUNT]) {
        let mut buckets = [None; WINDOW_COUNT];
        for (bucket, (sums, &deviation)) in buckets.iter_mut().zip(sums.iter().zip(deviations)) {
            if sums.is_some_and(|it| it.has_values(self.settings.family)) {
                *bucket = Some(SignedBucket::of(deviation));
            }
        }
        self.uncounted.push_back(buckets);
        let memory = (CALIBRATION_MEMORY / self.interval) as f32;
        while self.uncounted.len() as i64 > CALIBRATION_DELAY / self.interval {
            for (calibration, bucket) in
                self.calibrations.iter_mut().zip(self.uncounted.pop_front().unwrap_or_default())
            {
                if let Some(bucket) = bucket {
                    calibration.add(bucket, memory);
                }
            }
        }
    }

    fn age_hours(&self) -> i64 {
        self.baseline.as_ref().map_or(0, Baseline::age_hours)
    }

    /// Returns the deviation with the highest score, preferring those with an effect.
    fn strongest(
        &self,
        sums: &[Option<WindowSums>; WINDOW_COUNT],
        deviations: &[f32; WINDOW_COUNT],
    ) -> Option<Deviation> {
        // A single interval, for example with one expensive trace, is not evidence for a longer window.
        let settings = self.settings_without_minimum();
        let remains = |sums: &WindowSums, direction| {
            sums.without_peak(self.settings.family).has_effect(&settings, direction, CLOSE_SHARE)
        };
        let mut strongest: Option<Deviation> = None;
        for (window, (sums, &deviation)) in sums.iter().zip(deviations).enumerate() {
            let Some(sums) = sums else { continue };
            let direction = if deviation > 0.0 { Direction::Up } else { Direction::Down };
            let spread = self.calibrations[window].spread(direction);
            if deviation == 0.0 || spread <= 0.0 || !self.calibrations[window].is_mature() {
                continue;
            }
            let found = Deviation {
                direction,
                score: f64::from(deviation.abs() / spread / OPEN_FACTORS[window]) / self.habituation_factor(),
                window,
                has_effect: sums.has_effect(&self.settings, direction, 1.0)
                    && (window == 0 || remains(sums, direction)),
            };
            let is_stronger = |it: &Deviation| (found.has_effect, found.score) > (it.has_effect, it.score);
            if strongest.as_ref().is_none_or(is_stronger) {
                strongest = Some(found);
            }
        }
        strongest
    }

    /// Returns the score that opens an anomaly at the length of the intervals.
    fn open_score(&self) -> f64 {
        let ratio = self.interval as f64 / OPEN_SCORE_INTERVAL as f64;
        f64::from(self.settings.open_score) - SCORE_TAIL * ratio.ln()
    }

    /// Returns the settings without a minimum of samples.
    fn settings_without_minimum(&self) -> MetricSettings {
        MetricSettings { min_samples: 0.0, min_failures: 0.0, ..self.settings }
    }

    /// Returns by how much less surprising a deviation is after recent anomalies.
    fn habituation_factor(&self) -> f64 {
        let recent = if self.open.is_some() { self.habituation - 1.0 } else { self.habituation };
        f64::from(1.0 + HABITUATION_STRENGTH * recent.max(0.0))
    }

    fn opens(&self, found: &Deviation) -> bool {
        found.score >= self.open_score()
    }

    /// Returns whether anomalies in a direction are reported. The others are only kept out of the expectation.
    fn reports(&self, direction: Direction) -> bool {
        match self.settings.directions {
            Directions::Both => true,
            Directions::Up => direction == Direction::Up,
            Directions::Down => direction == Direction::Down,
        }
    }

    /// Recognizes a metric that returns to the level before the last new normal, which is not an anomaly.
    fn returns_to_retired_level(
        &mut self,
        found: &Deviation,
        sums: &[Option<WindowSums>; WINDOW_COUNT],
    ) -> bool {
        let start = self.change_start(*found);
        let settings = self.settings_without_minimum();
        let Some((baseline, sums)) = self.baseline.as_mut().zip(sums[found.window]) else { return false };
        let Some(shift) = baseline.shift_to_retired_level() else { return false };
        let sums = sums.at_level(shift);
        let deviates = |direction| sums.has_effect(&settings, direction, CLOSE_SHARE);
        if deviates(Direction::Up) || deviates(Direction::Down) {
            return false;
        }
        baseline.return_to_retired_level(start);
        self.recent.clear();
        true
    }

    fn open(
        &mut self,
        found: Deviation,
        start: i64,
        sums: &[Option<WindowSums>; WINDOW_COUNT],
        deviations: &[f32; WINDOW_COUNT],
    ) -> AnomalyChange {
        let window_start = self.change_start(found);
        if let Some(baseline) = &mut self.baseline {
            baseline.exclude(window_start);
        }
        let anomalous = ((start - window_start) / self.interval) as usize;
        self.uncounted.truncate(self.uncounted.len().saturating_sub(anomalous));
        self.habituation += 1.0;
        // One deviation of each anomaly counts as usual: where anomalies are frequent, they become less surprising.
        self.calibrate(sums, deviations);
        self.hour_is_anomalous = true;
        let mut anomaly = Anomaly {
            direction: found.direction,
            severity: Severity::Low,
            observed: 0.0,
            expected: 0.0,
            expected_low: 0.0,
            expected_high: 0.0,
            score: 0.0,
            window_start,
            window_end: start + self.interval,
        };
        self.raise(&mut anomaly, found, sums);
        self.open = Some(OpenAnomaly { anomaly, window: WINDOW_LENGTHS[found.window], last_value: start });
        AnomalyChange::Opened(anomaly)
    }

    /// Returns the start of the newest intervals that deviate most, within the window that was found.
    fn change_start(&self, found: Deviation) -> i64 {
        let mut sums = WindowSums::default();
        let mut best = (0.0, 0);
        for point in self.recent.newest_first().take(WINDOW_LENGTHS[found.window]) {
            sums.add(point, self.settings.family);
            let deviation = sums.deviation(self.settings.family, self.unit.unwrap_or(1.0)).abs();
            if deviation >= best.0 {
                best = (deviation, point.start);
            }
        }
        best.1
    }

    /// Adopts the values of a deviation that is stronger than the earlier ones.
    fn raise(&self, anomaly: &mut Anomaly, found: Deviation, sums: &[Option<WindowSums>; WINDOW_COUNT]) {
        let Some(sums) = &sums[found.window] else { return };
        if found.score <= anomaly.score {
            return;
        }
        anomaly.score = found.score;
        let calibration = &self.calibrations[found.window];
        let opening = self.open_score() * f64::from(OPEN_FACTORS[found.window]);
        let up = opening * f64::from(calibration.spread(Direction::Up));
        let down = opening * f64::from(calibration.spread(Direction::Down));
        let range = sums.range(self.settings.family, self.unit.unwrap_or(1.0), up, down);
        (anomaly.observed, anomaly.expected) = (range.observed, range.expected);
        (anomaly.expected_low, anomaly.expected_high) = (range.low, range.high);
        let ratio = found.score / self.open_score();
        let is_outage = self.kind == MetricKind::Volume && anomaly.observed == 0.0;
        anomaly.severity = anomaly.severity.max(match ratio {
            it if it >= 4.0 || is_outage => Severity::High,
            it if it >= 2.0 => Severity::Medium,
            _ => Severity::Low,
        });
    }

    /// Updates or closes the open anomaly.
    fn follow(
        &mut self,
        mut open: OpenAnomaly,
        start: i64,
        has_value: bool,
        sums: &[Option<WindowSums>; WINDOW_COUNT],
        strongest: Option<Deviation>,
    ) -> Option<AnomalyChange> {
        let end = start + self.interval;
        if has_value {
            open.last_value = start;
        }
        if end - open.last_value >= NEW_NORMAL_TIME {
            return Some(self.close(open.anomaly, CloseReason::NoData));
        }
        if has_value && self.is_deviating(&open, 1) {
            open.anomaly.window_end = end;
        }
        let has_recovered = self.has_recovered(&open, end);
        if has_value && end - open.anomaly.window_start >= NEW_NORMAL_TIME && !has_recovered {
            if let Some(baseline) = &mut self.baseline {
                baseline.adopt_level(open.anomaly.window_start);
            }
            self.hour_is_anomalous = false;
            open.anomaly.window_end = end;
            return Some(self.close(open.anomaly, CloseReason::NewNormal));
        }
        if has_recovered {
            return Some(self.close(open.anomaly, CloseReason::Recovered));
        }
        let before = open.anomaly.severity;
        if let Some(found) = strongest.filter(|it| it.direction == open.anomaly.direction && it.has_effect) {
            self.raise(&mut open.anomaly, found, sums);
        }
        if end - open.anomaly.window_start >= MEDIUM_SEVERITY_TIME {
            open.anomaly.severity = open.anomaly.severity.max(Severity::Medium);
        }
        let anomaly = open.anomaly;
        self.open = Some(open);
        (anomaly.severity > before).then_some(AnomalyChange::Updated(anomaly))
    }

    fn close(&mut self, anomaly: Anomaly, reason: CloseReason) -> AnomalyChange {
        // The windows that follow must not contain the intervals of this anomaly.
        self.recent.clear();
        AnomalyChange::Closed(anomaly, reason)
    }

    /// Returns whether the metric has been within its expected range long enough.
    fn has_recovered(&self, open: &OpenAnomaly, end: i64) -> bool {
        let by_time = (MIN_CLOSE_TIME / self.interval) as usize;
        let long = if open.window == MAX_WINDOW_LENGTH { 2 } else { 1 };
        let length = MIN_CLOSE_INTERVALS.max(by_time) * long;
        end - open.anomaly.window_end >= length as i64 * self.interval && !self.is_deviating(open, length)
    }

    /// Returns whether the newest intervals still deviate in the direction of the anomaly.
    fn is_deviating(&self, open: &OpenAnomaly, length: usize) -> bool {
        let mut sums = WindowSums::default();
        for point in self.recent.newest_first().take(length) {
            sums.add(point, self.settings.family);
        }
        if !sums.has_values(self.settings.family) {
            return true;
        }
        let window = WINDOW_LENGTHS.iter().rposition(|&it| it <= length).unwrap_or(0);
        let direction = open.anomaly.direction;
        let deviation = sums.deviation(self.settings.family, self.unit.unwrap_or(1.0));
        let is_same_side = (deviation > 0.0) == (direction == Direction::Up);
        let score = deviation.abs() / f64::from(self.calibrations[window].spread(direction)).max(1e-9);
        let limit = self.open_score() * CLOSE_SHARE;
        // A lack of samples does not prove recovery, therefore the effect is assessed without the minimum
        // of samples.
        let settings = self.settings_without_minimum();
        is_same_side
            && deviation != 0.0
            && (score >= limit || length > 1 && open.window > WINDOW_LENGTHS[1])
            && sums.has_effect(&settings, direction, CLOSE_SHARE)
    }
}

#[cfg(test)]
mod tests;
