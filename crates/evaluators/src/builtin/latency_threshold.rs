//! Evaluates whether the latency is within a limit.

use serde_json::{Map, Value, json};

use crate::{
    definition::{ConfigProblem, Definition, Method, Rule},
    subject::Subject,
    verdict::{Unjudged, Verdict},
};

/// The definition of the evaluator `latency_threshold`.
pub static DEFINITION: Definition = Definition {
    name: "latency_threshold",
    display_name: "Latency Threshold",
    tags: &["performance", "quality"],
    description: "Whether the wall-clock latency stays within `max_latency_ms`: 1.0 up to the limit, \
                  0.0 beyond. Needs the trace's latency.",
    version: 1,
    config_schema,
    method: Method::Rule(compile),
};

fn config_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "max_latency_ms": {"type": "integer", "minimum": 0, "description": "The limit, inclusive, in milliseconds."}
        },
        "required": ["max_latency_ms"]
    })
}

struct Limit(i64);

fn compile(config: &Map<String, Value>) -> Result<Box<dyn Rule>, Vec<ConfigProblem>> {
    match config.get("max_latency_ms").and_then(Value::as_i64) {
        Some(limit) if limit >= 0 => Ok(Box::new(Limit(limit))),
        _ => Err(vec![ConfigProblem::new(
            "max_latency_ms",
            "is required: the limit in milliseconds, 0 or more",
        )]),
    }
}

impl Rule for Limit {
    fn judge(&self, subject: &Subject) -> Result<Verdict, Unjudged> {
        let latency = known(subject)?;
        Ok(if latency <= self.0 {
            Verdict::good(format!("{latency} ms is within the limit of {} ms", self.0))
        } else {
            Verdict::bad(format!("{latency} ms is over the limit of {} ms", self.0))
        })
    }
}

/// Returns the wall-clock latency of the subject in milliseconds.
///
/// # Errors
/// When the latency is unknown.
pub(crate) fn known(subject: &Subject) -> Result<i64, Unjudged> {
    subject.latency_ms.ok_or_else(|| {
        Unjudged::new(
            "the latency is not known: send `latency_ms`, or the times at which spans start and end",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(limit: i64, latency_ms: Option<i64>) -> Result<Verdict, Unjudged> {
        let config = json!({"max_latency_ms": limit});
        DEFINITION.check(config.as_object().unwrap()).unwrap();
        compile(config.as_object().unwrap()).unwrap().judge(&Subject { latency_ms, ..Subject::default() })
    }

    #[test]
    fn up_to_the_limit_is_good() {
        assert_eq!(
            judge(1_000, Some(1_000)).unwrap(),
            Verdict::good("1000 ms is within the limit of 1000 ms")
        );
        assert_eq!(judge(1_000, Some(1_001)).unwrap(), Verdict::bad("1001 ms is over the limit of 1000 ms"));
        assert_eq!(judge(0, Some(0)).unwrap().score, 1.0);
    }

    #[test]
    fn an_unknown_latency_is_not_judged() {
        assert!(judge(1, None).unwrap_err().0.contains("send `latency_ms`"));
    }

    #[test]
    fn wrong_configs_say_where() {
        for config in [json!({}), json!({"max_latency_ms": -1}), json!({"max_latency_ms": 1.5})] {
            let problems = DEFINITION.check(config.as_object().unwrap()).unwrap_err();
            assert_eq!(problems[0].field, "max_latency_ms", "{problems:?}");
            assert!(compile(config.as_object().unwrap()).is_err());
        }
    }
}
