//! Evaluates whether the cost of an answer is within a limit.

use serde_json::{Map, Value, json};

use crate::{
    definition::{ConfigProblem, Definition, Method, Rule},
    subject::Subject,
    verdict::{Unjudged, Verdict},
};

/// The definition of the evaluator `cost_threshold`.
pub static DEFINITION: Definition = Definition {
    name: "cost_threshold",
    display_name: "Cost Threshold",
    tags: &["cost", "quality"],
    description: "Whether the cost stays within `max_cost_usd`: 1.0 up to the limit, 0.0 beyond. Needs a known \
                  cost: a model with a price, or a cost that was sent.",
    version: 1,
    config_schema,
    method: Method::Rule(compile),
};

fn config_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "max_cost_usd": {"type": "number", "minimum": 0, "description": "The limit, inclusive, in US dollars."}
        },
        "required": ["max_cost_usd"]
    })
}

struct Limit(f64);

fn compile(config: &Map<String, Value>) -> Result<Box<dyn Rule>, Vec<ConfigProblem>> {
    match config.get("max_cost_usd").and_then(Value::as_f64) {
        Some(limit) if limit >= 0.0 => Ok(Box::new(Limit(limit))),
        _ => Err(vec![ConfigProblem::new("max_cost_usd", "is required: the limit in US dollars, 0 or more")]),
    }
}

impl Rule for Limit {
    fn judge(&self, subject: &Subject) -> Result<Verdict, Unjudged> {
        let cost = known(subject)?;
        Ok(if within(cost, self.0) {
            Verdict::good(format!("${cost} is within the limit of ${}", self.0))
        } else {
            Verdict::bad(format!("${cost} is over the limit of ${}", self.0))
        })
    }
}

/// Returns the cost of the subject in US dollars.
///
/// # Errors
/// When the cost is unknown.
pub(crate) fn known(subject: &Subject) -> Result<f64, Unjudged> {
    subject.cost.filter(|it| it.is_finite()).ok_or_else(|| {
        Unjudged::new("the cost is not known: set a price for the model, or send `cost_usd` with the spans")
    })
}

/// Returns whether a cost is within a limit. Costs are stored in pico-dollars, so a difference of less than
/// half a pico-dollar is ignored.
pub(crate) fn within(cost: f64, limit: f64) -> bool {
    cost <= limit + 0.5e-12
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(limit: Value, cost: Option<f64>) -> Result<f64, Unjudged> {
        let config = json!({"max_cost_usd": limit});
        DEFINITION.check(config.as_object().unwrap()).unwrap();
        let rule = compile(config.as_object().unwrap()).unwrap();
        rule.judge(&Subject { cost, ..Subject::default() }).map(|it| it.score)
    }

    #[test]
    fn up_to_the_limit_is_good() {
        assert_eq!(judge(json!(0.01), Some(0.01)), Ok(1.0));
        assert_eq!(judge(json!(0.3), Some(0.1 + 0.2)), Ok(1.0));
        assert_eq!(judge(json!(0.01), Some(0.010_000_000_001)), Ok(0.0));
        assert_eq!(judge(json!(0), Some(0.0)), Ok(1.0));
        assert_eq!(judge(json!(1e300), Some(3.0)), Ok(1.0));
    }

    #[test]
    fn an_unknown_cost_is_not_judged() {
        assert!(judge(json!(1), None).unwrap_err().0.contains("set a price"));
        assert!(judge(json!(1), Some(f64::NAN)).is_err());
    }

    #[test]
    fn wrong_configs_say_where() {
        for config in [json!({}), json!({"max_cost_usd": -1}), json!({"max_cost_usd": "1"})] {
            let problems = DEFINITION.check(config.as_object().unwrap()).unwrap_err();
            assert_eq!(problems[0].field, "max_cost_usd", "{problems:?}");
            assert!(compile(config.as_object().unwrap()).is_err());
        }
    }
}
