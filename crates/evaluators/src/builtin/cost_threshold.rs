//! Evaluates whether the cost of an answer is within a limit.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    code::{CodeConfig, CodeEvaluator, EvaluatorCode},
    config::ConfigProblem,
    definition::{Definition, Method},
    subject::{Subject, is_cost_within},
    verdict::{Measurement, NotEvaluated},
};

/// The definition of the evaluator `cost_threshold`.
pub static DEFINITION: Definition = Definition {
    name: "cost_threshold",
    display_name: "Cost Threshold",
    tags: &["cost", "quality"],
    description: "Whether the cost stays within `max_cost_usd`: 1.0 up to the limit, 0.0 beyond. Needs a known \
                  cost: a model with a price, or a cost that was sent.",
    version: 1,
    method: Method::Code(EvaluatorCode::of::<CostLimit>()),
};

#[derive(Deserialize, JsonSchema)]
struct CostLimit {
    /// The limit, inclusive, in US dollars.
    #[schemars(range(min = 0))]
    max_cost_usd: f64,
}

impl CodeConfig for CostLimit {
    fn compile(self) -> Result<impl CodeEvaluator + 'static, Vec<ConfigProblem>> {
        Ok(self)
    }
}

impl CodeEvaluator for CostLimit {
    fn evaluate(&self, subject: &Subject) -> Result<Measurement, NotEvaluated> {
        let (cost, limit) = (subject.known_cost()?, self.max_cost_usd);
        Ok(Measurement::of_limit(is_cost_within(cost, limit), &format!("${cost}"), &format!("${limit}")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn score(limit: Value, cost: Option<f64>) -> Result<f64, NotEvaluated> {
        let config = json!({"max_cost_usd": limit});
        let evaluator = DEFINITION.compile(config.as_object().unwrap()).unwrap();
        evaluator.evaluate(&Subject { cost, ..Subject::default() }).map(|it| it.score)
    }

    #[test]
    fn cost_up_to_limit_is_good() {
        assert_eq!(score(json!(0.01), Some(0.01)), Ok(1.0));
        assert_eq!(score(json!(0.3), Some(0.1 + 0.2)), Ok(1.0));
        assert_eq!(score(json!(0.01), Some(0.010_000_000_001)), Ok(0.0));
        assert_eq!(score(json!(0), Some(0.0)), Ok(1.0));
        assert_eq!(score(json!(1e300), Some(3.0)), Ok(1.0));
    }

    #[test]
    fn unknown_cost_is_not_evaluated() {
        assert!(score(json!(1), None).unwrap_err().reason.contains("set a price"));
        assert!(score(json!(1), Some(f64::NAN)).is_err());
    }

    #[test]
    fn invalid_config_problem_names_field() {
        for config in [json!({}), json!({"max_cost_usd": -1}), json!({"max_cost_usd": "1"})] {
            let problems = DEFINITION.check(config.as_object().unwrap()).unwrap_err();
            assert_eq!(problems[0].field, "max_cost_usd", "{problems:?}");
        }
    }
}
