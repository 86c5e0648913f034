//! `--fail-if`: conditions on metrics that make the command fail.

use std::{fmt, str::FromStr};

use api::{
    filter::when::duration_ms,
    metrics::{Metric, MetricValues},
};
use present::format;

use crate::{
    error::{CliError, Result},
    exit::Exit,
};

/// A condition such as `error_rate>0.05`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    metric: Metric,
    comparison: Comparison,
    bound: f64,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// Comparison operators, the longer ones first so that `>=` is not read as `>`.
const COMPARISON_OPERATORS: [(&str, Comparison); 4] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    (">", Comparison::Above),
    ("<", Comparison::Below),
];

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let form = || "a condition looks like error_rate>0.05, latency_p95>=5s or trace_count<1".to_owned();
        let at = text.find(['<', '>']).ok_or_else(form)?;
        let (name, rest) = text.split_at(at);
        let (sign, comparison) =
            COMPARISON_OPERATORS.into_iter().find(|it| rest.starts_with(it.0)).ok_or_else(form)?;
        let metric: Metric = name.trim().parse().map_err(|it: api::enums::UnknownWord| it.to_string())?;
        let bound = bound(metric, rest[sign.len()..].trim())?;
        Ok(Self { metric, comparison, bound, text: text.to_owned() })
    }
}

/// Parses the bound of a condition, in the metric's unit or in a readable one such as `5s` or `2%`.
fn bound(metric: Metric, text: &str) -> std::result::Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|it| it.is_finite());
    let not_a_number = || format!("`{text}` is not a number");
    match metric {
        Metric::ErrorRate | Metric::FeedbackGoodRate => {
            let share = match text.strip_suffix('%') {
                Some(percent) => number(percent).map(|it| it / 100.0),
                None => number(text),
            }
            .ok_or_else(not_a_number)?;
            let is_share = (0.0..=1.0).contains(&share);
            is_share
                .then_some(share)
                .ok_or_else(|| format!("{metric} is between 0 and 1: write 0.05 or 5% instead of `{text}`"))
        }
        Metric::LatencyP50 | Metric::LatencyP95 | Metric::LatencyP99 => match number(text) {
            Some(ms) => Ok(ms),
            None => duration_ms(text).map(|ms| ms as f64),
        },
        Metric::TotalCost => number(text.strip_prefix('$').unwrap_or(text)).ok_or_else(not_a_number),
        Metric::TraceCount => number(text).ok_or_else(not_a_number),
    }
}

impl Condition {
    /// Returns whether a value meets the condition.
    fn is_met(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::Above => value > self.bound,
            Comparison::AtLeast => value >= self.bound,
            Comparison::Below => value < self.bound,
            Comparison::AtMost => value <= self.bound,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Checks metrics against all conditions. Returns a note for each condition whose metric has no value, and
/// an error that names every condition that is met.
pub fn check(conditions: &[Condition], values: &MetricValues) -> (Vec<String>, Result) {
    let untested = conditions.iter().filter(|it| values.get(it.metric).is_none());
    let notes = untested.map(|it| format!("{} has no value, so {it} was not checked", it.metric)).collect();
    let met: Vec<String> = conditions
        .iter()
        .filter_map(|it| Some((it, values.get(it.metric)?)))
        .filter(|(condition, value)| condition.is_met(*value))
        .map(|(condition, value)| format!("{condition} (it is {})", format::metric(condition.metric, value)))
        .collect();
    if met.is_empty() {
        return (notes, Ok(()));
    }
    let message = format!("fails on {} of {} conditions: {}", met.len(), conditions.len(), met.join("; "));
    (notes, Err(CliError::new(Exit::Failed, message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> std::result::Result<Condition, String> {
        text.parse()
    }

    #[test]
    fn condition_bounds_are_parsed_in_several_units() {
        for (text, bound) in [
            ("error_rate>0.05", 0.05),
            (" error_rate >= 5% ", 0.05),
            ("latency_p95>5000", 5_000.0),
            ("latency_p95>5s", 5_000.0),
            ("latency_p50 > 250ms", 250.0),
            ("total_cost<=$12.5", 12.5),
            ("trace_count<1", 1.0),
            ("feedback_good_rate<90%", 0.9),
        ] {
            assert!((read(text).unwrap().bound - bound).abs() < 1e-12, "{text}");
        }
        for text in [
            "",
            "error_rate",
            "error_rate=1",
            "error_rate>",
            "error_rate>5",
            "error_rate>-1%",
            "errors>1",
            ">1",
            "latency_p95>5 parsecs",
            "trace_count>NaN",
            "total_cost>inf",
            "total_cost>€1",
            "trace_count>>1",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn met_conditions_are_named_and_those_without_value_are_not() {
        let values = MetricValues { error_rate: Some(0.07), trace_count: 9, ..MetricValues::default() };
        let read = |all: &[&str]| all.iter().map(|it| it.parse().unwrap()).collect::<Vec<Condition>>();
        let all =
            read(&["error_rate>0.07", "error_rate>=0.07", "trace_count<10", "latency_p95>1", "total_cost<0"]);
        let (notes, result) = check(&all, &values);
        assert_eq!(notes, ["latency_p95 has no value, so latency_p95>1 was not checked"]);
        let error = result.unwrap_err();
        assert_eq!(
            (error.exit, error.message.as_str()),
            (
                Exit::Failed,
                "fails on 2 of 5 conditions: error_rate>=0.07 (it is 7.0 %); trace_count<10 (it is 9)"
            )
        );
        assert!(check(&read(&["trace_count<=8", "total_cost>0"]), &values).1.is_ok());
    }
}
