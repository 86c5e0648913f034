//! The state of a test and of a watch, as the row of a deployment stores it. Pure.

use api::deployment::ArmStatistics;
use entities::prompt_deployment;
use experiments::{Comparison, Requirements, Sample};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The settings of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestSettings {
    /// The metric whose scores are compared.
    pub metric_name: String,
    /// The share of the traffic that gets the candidate.
    pub traffic_share: f64,
    /// Number of scores of each arm at which the test is decided.
    pub min_samples: u32,
    /// The probability with which a candidate passes whose true effect is `-max_regression`.
    pub alpha: f64,
    /// By how much the candidate's mean may be lower than the baseline's.
    pub max_regression: f64,
    /// Hours after which an undecided test fails.
    pub max_duration_hours: u32,
}

/// Maximum number of pairs with scores that a replay test requires.
const MAX_REQUIRED_PAIRS: u32 = 30;

impl TestSettings {
    /// Returns the number of pairs with scores that a replay test requires: a fifth of `min_samples`, because traces may be
    /// missing or calls fail, but not so few that equal scores by chance count as certainty.
    pub fn min_pairs(&self) -> u64 {
        self.min_samples.div_ceil(5).clamp(2, MAX_REQUIRED_PAIRS).into()
    }

    /// Returns the settings of a deployment's test; `None` without a baseline.
    ///
    /// # Errors
    ///
    /// Fails when the row is invalid.
    pub fn of(row: &prompt_deployment::Model) -> anyhow::Result<Option<Self>> {
        parse(row.test.as_deref())
    }

    /// Returns what the statistics require of a candidate that is tested with this number of scores.
    pub fn requirements(&self, min_samples: u64) -> Requirements {
        Requirements { min_samples, alpha: self.alpha, max_regression: self.max_regression }
    }
}

/// The sums of the scores of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestScores {
    /// The scores of the baseline.
    pub baseline: Sample,
    /// The scores of the candidate.
    pub candidate: Sample,
    /// The candidate's score minus the baseline's of each pair; empty in a live test.
    pub differences: Sample,
}

impl TestScores {
    /// Returns the sums of a deployment's test.
    ///
    /// # Errors
    ///
    /// Fails when the row is invalid.
    pub fn of(row: &prompt_deployment::Model) -> anyhow::Result<Self> {
        Ok(parse(row.scores.as_deref())?.unwrap_or_default())
    }
}

/// The figures of an ended test. They are null if it ended without a decision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// The probability of the effect, or a greater one, if the true effect is `-max_regression`.
    pub p_value: Option<f64>,
    /// The mean of the candidate minus the mean of the baseline.
    pub effect: Option<f64>,
    /// The one-sided lower bound of the effect at `alpha`.
    pub lower_bound: Option<f64>,
    /// Microseconds.
    pub completed_at: i64,
}

impl TestResult {
    /// Returns the figures of a decision.
    pub fn decided(settings: &TestSettings, comparison: &Comparison, now: i64) -> Self {
        let finite = |it: f64| Some(it).filter(|it| it.is_finite());
        Self {
            p_value: finite(comparison.p_value_above(-settings.max_regression)),
            effect: finite(comparison.effect),
            lower_bound: finite(comparison.lower_bound(settings.alpha)),
            completed_at: now,
        }
    }

    /// Returns the result of a test that ended without a decision.
    pub fn undecided(now: i64) -> Self {
        Self { p_value: None, effect: None, lower_bound: None, completed_at: now }
    }

    /// Returns the figures of a deployment's test; `None` while it runs.
    ///
    /// # Errors
    ///
    /// Fails when the row is invalid.
    pub fn of(row: &prompt_deployment::Model) -> anyhow::Result<Option<Self>> {
        parse(row.result.as_deref())
    }
}

/// The watch over a shipped version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchState {
    /// The number of complete windows.
    pub windows: u32,
    /// The scores of the current window.
    pub current: Sample,
    /// The mean of the last complete window minus the baseline's.
    pub effect: Option<f64>,
}

impl WatchState {
    /// Returns the watch over a deployment; `None` before the first score.
    ///
    /// # Errors
    ///
    /// Fails when the row is invalid.
    pub fn of(row: &prompt_deployment::Model) -> anyhow::Result<Option<Self>> {
        parse(row.watch.as_deref())
    }
}

/// Returns a value as the text of its column.
///
/// # Errors
///
/// Never fails, because all keys are texts.
pub fn to_text(value: &impl Serialize) -> anyhow::Result<Option<String>> {
    Ok(Some(serde_json::to_string(value)?))
}

/// Returns the statistics of an arm.
pub fn statistics(sample: &Sample) -> ArmStatistics {
    ArmStatistics {
        n: i64::try_from(sample.len()).unwrap_or(i64::MAX),
        mean: sample.mean(),
        stddev: sample.variance().map(f64::sqrt),
    }
}

fn parse<T: DeserializeOwned>(text: Option<&str>) -> anyhow::Result<Option<T>> {
    Ok(text.map(serde_json::from_str).transpose()?)
}
