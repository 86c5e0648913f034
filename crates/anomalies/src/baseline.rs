//! The expected value of a metric: a level, and a season by hour of the day or of the week.
//!
//! The history is four weeks of hours. All values are on the scale of the metric's family: logarithms for counts,
//! sums and latencies, otherwise the values themselves.

use serde::{Deserialize, Serialize};

use crate::evidence::LevelShift;
use crate::metric::Family;
use crate::point::HOUR;
use crate::robust::median;
use crate::window::EXPECTATION_COUNT;

/// Hours of a day.
const DAY_HOURS: i64 = 24;
/// Hours of a week, which is also the period of the level.
const WEEK_HOURS: i64 = 7 * DAY_HOURS;
/// Hours of history.
const HISTORY_HOURS: i64 = 4 * WEEK_HOURS;
/// Number of days in the median for the season by hour of the day.
const DAILY_SEASON_DAYS: i64 = 14;
/// Days that must have a value before the season by hour of the day is used.
const MIN_SEASON_DAYS: usize = 2;
/// Hours over which the errors of the predictors are averaged.
const ERROR_MEMORY_HOURS: u16 = 240;
/// Hours for which the error of a predictor must be known before it is used.
const MIN_ERROR_HOURS: u16 = 18;
/// Failures and samples that are assumed before there is history: the prior of the error rate.
const PRIOR_FAILURES: f32 = 0.5;
const PRIOR_SAMPLES: f32 = 50.0;
/// Added to counts before the logarithm is taken.
const COUNT_OFFSET: f32 = 0.5;

/// Share of the deviation that the expectation of an interval of the day adopts each day, and the largest deviation
/// that it takes into account.
const SLOT_RATE: f32 = 0.3;
const MAX_SLOT_STEP: f32 = 1.0;
/// Smallest deviation of an interval of the day that is part of the expectation.
const MIN_SLOT_DIFFERENCE: f32 = 0.4;
/// Hours for which an earlier level is remembered; the period of the level still contains some of its hours.
const MAX_RETIRED_HOURS: i64 = 5 * DAY_HOURS;

/// The level before an anomaly became the new normal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct RetiredLevel {
    level: f32,
    /// The first hour of the level, and the hour after its last.
    level_since: i64,
    until: i64,
}

/// An hour of history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct HourRecord {
    /// The value; the number of failures in the family of proportions.
    value: f32,
    /// Number of samples or of intervals; zero if the hour has no value.
    weight: f32,
    /// The level when the hour ended.
    level: f32,
    /// The season that was expected.
    season: f32,
    /// Whether the hour is part of an anomaly and therefore not part of the expectation.
    is_anomalous: bool,
}

impl HourRecord {
    fn is_usable(&self) -> bool {
        self.weight > 0.0 && !self.is_anomalous
    }
}

/// A prediction of the season and its mean absolute error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct PredictorError {
    mean: f32,
    hours: u16,
}

impl PredictorError {
    fn add(&mut self, error: f32) {
        self.hours = (self.hours + 1).min(ERROR_MEMORY_HOURS);
        self.mean += (error - self.mean) / f32::from(self.hours);
    }
}

/// The seasons that compete: none, by hour of the day, by hour of the week.
const SEASON_COUNT: usize = 3;

/// The season of an hour by each predictor; `None` if there is too little history.
type Seasons = [Option<f32>; SEASON_COUNT];

/// Returns which of `count` equal parts of its day an interval is.
fn slot_index(start: i64, count: usize) -> usize {
    let day = DAY_HOURS * HOUR;
    (start.rem_euclid(day) as i128 * count as i128 / i128::from(day)) as usize
}

/// The expectation of a metric, learned from the hours of the last four weeks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Baseline {
    family: Family,
    /// Hours since 1970 of the first value and of the hour that is being summed.
    first_hour: i64,
    hour: i64,
    /// The first hour that belongs to the current level.
    level_since: i64,
    level: f32,
    retired: Option<RetiredLevel>,
    hours: Vec<HourRecord>,
    errors: [PredictorError; SEASON_COUNT],
    /// Seasons of the two hours before the current one, of the current one and of the two after it.
    seasons: [Seasons; 5],
    /// Logarithm of the ratio of counts to their expectation, for each interval of a day.
    slots: Vec<f32>,
    sum: f32,
    weight: f32,
    covered: f32,
}

impl Baseline {
    /// Creates an expectation without history; `start` is the start of the first interval.
    pub(crate) fn new(family: Family, start: i64) -> Self {
        let hour = start.div_euclid(HOUR);
        Self {
            family,
            first_hour: hour,
            hour,
            level_since: hour,
            level: 0.0,
            retired: None,
            hours: vec![HourRecord::default(); HISTORY_HOURS as usize],
            errors: Default::default(),
            seasons: [[Some(0.0), None, None]; 5],
            slots: Vec::new(),
            sum: 0.0,
            weight: 0.0,
            covered: 0.0,
        }
    }

    /// Returns the number of complete hours of history, with and without values.
    pub(crate) fn age_hours(&self) -> i64 {
        self.hour - self.first_hour
    }

    /// Ends hours until the one that contains `start`. Hours of an anomaly are remembered and not learned.
    pub(crate) fn advance(&mut self, start: i64, is_anomalous: bool) {
        let target = start.div_euclid(HOUR);
        if target - self.hour > HISTORY_HOURS {
            *self = Self::new(self.family, start);
        }
        while self.hour < target {
            self.end_hour(is_anomalous);
        }
    }

    /// Adds an interval to the current hour. `share` is the length of the interval in hours.
    pub(crate) fn add(&mut self, start: i64, value: f32, weight: f32, share: f32) {
        if self.family == Family::Count && share < 1.0 && self.age_hours() >= DAY_HOURS {
            let usual = self.interpolate(start, share)[1];
            let slot = self.slot_of(start, share);
            let difference = ((value + COUNT_OFFSET) / (usual + COUNT_OFFSET)).ln();
            let step = (difference - self.slots[slot]).clamp(-MAX_SLOT_STEP, MAX_SLOT_STEP);
            self.slots[slot] += SLOT_RATE * step;
        }
        match self.family {
            Family::Count => self.sum += value,
            Family::Proportion => {
                self.sum += value;
                self.weight += weight;
            }
            Family::Mean | Family::LogMean => {
                self.sum += value * weight;
                self.weight += weight;
            }
        }
        self.covered += share;
    }

    /// Returns the index of the interval within its day. There is one slot for each interval of a day.
    fn slot_of(&mut self, start: i64, share: f32) -> usize {
        let count = (DAY_HOURS as f32 / share).round() as usize;
        if self.slots.len() != count {
            self.slots = vec![0.0; count];
        }
        slot_index(start, count)
    }

    /// Returns the expectations of an interval: those of an hour earlier, of its own time, of an hour later, and
    /// those of the slots before and after its own.
    ///
    /// With the expectations of its neighbours, an interval that is shifted by daylight saving time or by a
    /// varying schedule is not an anomaly.
    pub(crate) fn expect(&self, start: i64, share: f32) -> [f32; EXPECTATION_COUNT] {
        let [earlier, usual, later] = self.interpolate(start, share);
        let count = self.slots.len();
        if count == 0 {
            return [earlier, usual, later, usual, usual];
        }
        let own = slot_index(start, count);
        let [before, own, after] = [own + count - 1, own, own + 1].map(|slot| {
            let difference = self.slots[slot % count];
            if difference.abs() < MIN_SLOT_DIFFERENCE { usual } else { usual * difference.exp() }
        });
        [earlier, own, later, before, after]
    }

    /// Returns the expectation by level and season of an interval one hour earlier, at its time, and one hour later.
    fn interpolate(&self, start: i64, share: f32) -> [f32; 3] {
        let position = (start.rem_euclid(HOUR) as f32 / HOUR as f32) + share / 2.0 - 0.5;
        let best = self.best_season();
        let season = |at: usize| self.seasons[at][best].unwrap_or(0.0);
        let mut expected = [0.0; 3];
        for (index, expected) in expected.iter_mut().enumerate() {
            let here = season(index + 1);
            let there = if position < 0.0 { season(index) } else { season(index + 2) };
            let value = self.level + here + (there - here) * position.abs();
            *expected = match self.family {
                Family::Count => (value.exp() - COUNT_OFFSET).max(0.02) * share,
                _ => value,
            };
        }
        expected
    }

    /// Makes the values since `start` the new level, and remembers the earlier one for a week.
    pub(crate) fn adopt_level(&mut self, start: i64) {
        let since = start.div_euclid(HOUR);
        self.retired = Some(RetiredLevel { level: self.level, level_since: self.level_since, until: since });
        for hour in since.max(self.hour - HISTORY_HOURS)..self.hour {
            self.record_mut(hour).is_anomalous = false;
        }
        self.level_since = since;
        self.update_level();
    }

    /// Returns the change from the current level to the earlier one.
    pub(crate) fn shift_to_retired_level(&self) -> Option<LevelShift> {
        let retired = self.retired.filter(|it| self.hour - it.until < MAX_RETIRED_HOURS)?;
        let difference = f64::from(retired.level - self.level);
        Some(match self.family {
            Family::Count => LevelShift::Factor(difference.exp()),
            Family::Proportion => LevelShift::Factor(f64::from(retired.level / self.level)),
            Family::Mean | Family::LogMean => LevelShift::Difference(difference),
        })
    }

    /// Returns to the level before the last new one; `start` is the first interval at that level.
    pub(crate) fn return_to_retired_level(&mut self, start: i64) {
        let Some(retired) = self.retired.take() else { return };
        let end = start.div_euclid(HOUR);
        for hour in retired.until.max(self.hour - HISTORY_HOURS)..self.hour.min(end + 1) {
            self.record_mut(hour).is_anomalous = true;
        }
        self.level_since = retired.level_since;
        self.level = retired.level;
        self.update_level();
    }

    /// Marks the complete hours since `start` as part of an anomaly.
    pub(crate) fn exclude(&mut self, start: i64) {
        for hour in start.div_euclid(HOUR).max(self.first_hour)..self.hour {
            self.record_mut(hour).is_anomalous = true;
        }
    }

    fn end_hour(&mut self, is_anomalous: bool) {
        let ended = self.hour;
        let season = self.seasons[2];
        let best = season[self.best_season()].unwrap_or(0.0);
        let (value, weight) = self.hour_value();
        *self.record_mut(ended) = HourRecord { value, weight, level: self.level, season: best, is_anomalous };
        if weight > 0.0 && !is_anomalous {
            if self.family != Family::Proportion && self.age_hours() >= DAY_HOURS {
                for (error, season) in self.errors.iter_mut().zip(season) {
                    if let Some(season) = season {
                        error.add((value - self.level - season).abs());
                    }
                }
            }
            self.hour += 1;
            self.update_level();
        } else {
            self.hour += 1;
        }
        (self.sum, self.weight, self.covered) = (0.0, 0.0, 0.0);
        self.update_seasons();
    }

    /// Returns the value and the weight of the current hour.
    fn hour_value(&self) -> (f32, f32) {
        match self.family {
            Family::Count if self.covered < 0.5 => (0.0, 0.0),
            Family::Count => ((self.sum / self.covered + COUNT_OFFSET).ln(), 1.0),
            Family::Proportion => (self.sum, self.weight),
            _ if self.weight <= 0.0 => (0.0, 0.0),
            _ => (self.sum / self.weight, self.weight),
        }
    }

    fn update_level(&mut self) {
        let from = self.level_since.max(self.hour - WEEK_HOURS).max(self.first_hour);
        if self.family == Family::Proportion {
            self.level = self.pooled_rate(from);
            return;
        }
        let mut values: Vec<f32> = (from..self.hour)
            .map(|it| self.record(it))
            .filter(|it| it.is_usable())
            .map(|it| it.value - it.season)
            .collect();
        if let Some(level) = median(&mut values) {
            self.level = level;
        }
        // The level of the first week is known only at its end.
        if self.hour - self.level_since < WEEK_HOURS {
            for hour in from..self.hour {
                self.record_mut(hour).level = self.level;
            }
        }
    }

    /// Returns the error rate since an hour. The failures of each hour are limited, so that a few bad hours do not count more.
    fn pooled_rate(&self, from: i64) -> f32 {
        let (mut failures, mut samples) = (PRIOR_FAILURES, PRIOR_SAMPLES);
        for record in (from..self.hour).map(|it| self.record(it)).filter(|it| it.is_usable()) {
            let usual = record.weight * self.level;
            failures += record.value.min(usual + 3.0 * usual.sqrt() + 1.0);
            samples += record.weight;
        }
        failures / samples
    }

    fn update_seasons(&mut self) {
        if self.family == Family::Proportion {
            return;
        }
        for (index, offset) in (-2..=2).enumerate() {
            let hour = self.hour + offset;
            self.seasons[index] = [
                Some(0.0),
                self.season(hour, DAY_HOURS, DAILY_SEASON_DAYS, MIN_SEASON_DAYS),
                self.season(hour, WEEK_HOURS, HISTORY_HOURS / WEEK_HOURS, 1),
            ];
        }
    }

    /// Returns the median deviation from the level at an hour of the previous periods.
    fn season(&self, hour: i64, period: i64, count: i64, min_values: usize) -> Option<f32> {
        let mut values = [0.0; DAILY_SEASON_DAYS as usize];
        let mut found = 0;
        for past in (1..=count).map(|it| hour - it * period) {
            if past < self.first_hour || past <= self.hour - HISTORY_HOURS || past >= self.hour {
                continue;
            }
            let record = self.record(past);
            if record.is_usable() {
                values[found] = record.value - record.level;
                found += 1;
            }
        }
        if found < min_values { None } else { median(&mut values[..found]) }
    }

    /// Returns the index of the predictor with the smallest error.
    fn best_season(&self) -> usize {
        let mut best = 0;
        for index in 1..SEASON_COUNT {
            let error = self.errors[index];
            if error.hours >= MIN_ERROR_HOURS && error.mean < self.errors[best].mean {
                best = index;
            }
        }
        best
    }

    fn record(&self, hour: i64) -> &HourRecord {
        &self.hours[hour.rem_euclid(HISTORY_HOURS) as usize]
    }

    fn record_mut(&mut self, hour: i64) -> &mut HourRecord {
        &mut self.hours[hour.rem_euclid(HISTORY_HOURS) as usize]
    }
}
