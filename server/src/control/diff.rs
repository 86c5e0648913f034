//! The comparison of scores before and after an action. Pure.

use api::control::EvalDelta;
use uuid::Uuid;

use crate::failures::regressions::is_regression;

/// The evaluation of an action's output by an eval rule, with its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluatedRule {
    /// The rule.
    pub rule_id: Uuid,
    /// The metric.
    pub metric_name: String,
    /// The score of the baseline; `None` without one.
    pub original_score: Option<f64>,
    /// The score of the output; `None` if the evaluation failed.
    pub remediated_score: Option<f64>,
    /// The smallest drop that counts as a regression.
    pub min_score_drop: Option<f64>,
}

/// Returns the difference of the scores.
pub fn eval_delta(rule: &EvaluatedRule) -> EvalDelta {
    let EvaluatedRule { rule_id, ref metric_name, original_score, remediated_score, min_score_drop } = *rule;
    let scores = original_score.zip(remediated_score);
    EvalDelta {
        rule_id,
        metric_name: metric_name.clone(),
        original_score,
        remediated_score,
        delta: scores.map(|(original, remediated)| remediated - original),
        regressed: scores
            .is_some_and(|(original, remediated)| is_regression(original, remediated, min_score_drop)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(
        original: Option<f64>,
        remediated: Option<f64>,
        min_score_drop: Option<f64>,
    ) -> (Option<f64>, bool) {
        let metric_name = "faithfulness".to_owned();
        let (original_score, remediated_score) = (original, remediated);
        let rule = EvaluatedRule {
            rule_id: Uuid::nil(),
            metric_name,
            original_score,
            remediated_score,
            min_score_drop,
        };
        let EvalDelta { delta, regressed, .. } = eval_delta(&rule);
        (delta, regressed)
    }

    #[test]
    fn lower_score_is_a_regression_from_the_minimum_drop_on() {
        assert_eq!(delta(Some(0.75), Some(0.5), None), (Some(-0.25), true));
        assert_eq!(delta(Some(0.75), Some(0.5), Some(0.25)), (Some(-0.25), true));
        assert_eq!(delta(Some(0.75), Some(0.5), Some(0.3)), (Some(-0.25), false));
        assert_eq!(delta(Some(0.5), Some(0.75), None), (Some(0.25), false));
    }

    #[test]
    fn missing_score_has_no_delta() {
        assert_eq!(delta(None, Some(0.5), None), (None, false));
        assert_eq!(delta(Some(0.5), None, None), (None, false));
    }
}
