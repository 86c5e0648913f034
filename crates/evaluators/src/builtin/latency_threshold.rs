//! Evaluates whether the latency is within a limit.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    code::{CodeConfig, CodeEvaluator, EvaluatorCode},
    config::{ConfigProblem, Count},
    definition::{Definition, Method},
    subject::Subject,
    verdict::{Measurement, NotEvaluated},
};

/// The definition of the evaluator `latency_threshold`.
pub static DEFINITION: Definition = Definition {
    name: "latency_threshold",
    display_name: "Latency Threshold",
    tags: &["performance", "quality"],
    description: "Whether the wall-clock latency stays within `max_latency_ms`: 1.0 up to the limit, \
                  0.0 beyond. Needs the trace's latency.",
    version: 1,
    method: Method::Code(EvaluatorCode::of::<LatencyLimit>()),
};

#[derive(Deserialize, JsonSchema)]
struct LatencyLimit {
    /// The limit, inclusive, in milliseconds.
    max_latency_ms: Count,
}

impl CodeConfig for LatencyLimit {
    fn compile(self) -> Result<impl CodeEvaluator + 'static, Vec<ConfigProblem>> {
        Ok(self)
    }
}

impl CodeEvaluator for LatencyLimit {
    fn evaluate(&self, subject: &Subject) -> Result<Measurement, NotEvaluated> {
        let (latency, limit) = (subject.known_latency_ms()?, self.max_latency_ms.to_i64());
        Ok(Measurement::of_limit(latency <= limit, &format!("{latency} ms"), &format!("{limit} ms")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Verdict;

    fn evaluate(limit: Value, latency_ms: Option<i64>) -> Result<Verdict, NotEvaluated> {
        let config = json!({"max_latency_ms": limit});
        let evaluator = DEFINITION.compile(config.as_object().unwrap()).unwrap();
        evaluator.evaluate(&Subject { latency_ms, ..Subject::default() })
    }

    #[test]
    fn latency_up_to_limit_is_good() {
        let verdict = evaluate(json!(1_000), Some(1_000)).unwrap();
        assert_eq!((verdict.score, verdict.label.as_str()), (1.0, "pass"));
        assert_eq!(verdict.reasoning, "1000 ms is within the limit of 1000 ms");
        let verdict = evaluate(json!(1_000.0), Some(1_001)).unwrap();
        assert_eq!((verdict.score, verdict.label.as_str()), (0.0, "fail"));
        assert_eq!(verdict.reasoning, "1001 ms is over the limit of 1000 ms");
        assert_eq!(evaluate(json!(0), Some(0)).unwrap().score, 1.0);
    }

    #[test]
    fn unknown_latency_is_not_evaluated() {
        assert!(evaluate(json!(1), None).unwrap_err().reason.contains("send `latency_ms`"));
    }

    #[test]
    fn invalid_config_problem_names_field() {
        for config in [json!({}), json!({"max_latency_ms": -1}), json!({"max_latency_ms": 1.5})] {
            let problems = DEFINITION.check(config.as_object().unwrap()).unwrap_err();
            assert_eq!(problems[0].field, "max_latency_ms", "{problems:?}");
        }
    }
}
