//! Whether an answer came in time.

use serde_json::{Map, Value, json};

use crate::{
    definition::{ConfigProblem, Definition, Method, Rule},
    subject::Subject,
    verdict::{Unjudged, Verdict},
};

/// The evaluator.
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
        let Some(latency) = subject.latency_ms else {
            return Err(Unjudged::new(
                "the trace has no latency: send latency_ms, or the times of its spans",
            ));
        };
        Ok(if latency <= self.0 {
            Verdict::good(format!("{latency} ms is within the limit of {} ms", self.0))
        } else {
            Verdict::bad(format!("{latency} ms is over the limit of {} ms", self.0))
        })
    }
}
