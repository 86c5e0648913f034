//! `--scale`: what a judge of a tenant's own answers with.

use serde_json::{Value, json};

use crate::{
    commands::document,
    error::{CliError, Result},
};

/// Reads a scale: `1..5`, levels such as `good=1,fair=0.5,bad=0`, JSON, or a file with JSON.
pub fn read(given: &str) -> Result<Value> {
    if let Some((min, max)) = given.split_once("..") {
        return numbers(min, max)
            .map(|(min, max)| json!({ "min": min, "max": max }))
            .ok_or_else(|| wrong(given));
    }
    if !given.trim_start().starts_with('{') && given.contains('=') {
        let levels: Option<Vec<Value>> = given.split(',').map(level).collect();
        return levels.map(|levels| json!({ "levels": levels })).ok_or_else(|| wrong(given));
    }
    document::object("--scale", given).map(Value::Object)
}

fn numbers(min: &str, max: &str) -> Option<(Value, Value)> {
    let (min, max) = (number(min)?, number(max)?);
    (min.as_f64()? < max.as_f64()?).then_some((min, max))
}

/// A number as it was written: 1 stays 1.
fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    let whole = text.parse::<i64>().map(Value::from);
    whole.ok().or_else(|| text.parse::<f64>().ok().filter(|it| it.is_finite()).map(Value::from))
}

fn level(text: &str) -> Option<Value> {
    let (label, score) = text.split_once('=')?;
    let label = label.trim();
    let score = number(score).filter(|it| it.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it)))?;
    (!label.is_empty()).then(|| json!({ "label": label, "score": score }))
}

fn wrong(given: &str) -> CliError {
    CliError::usage(format!("--scale: `{given}` is not a scale"))
        .hint("1..5, or good=1,fair=0.5,bad=0 with scores from 0 to 1, or JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_written_in_three_ways() {
        for (given, scale) in [
            ("1..5", json!({"min": 1, "max": 5})),
            ("0..0.5", json!({"min": 0, "max": 0.5})),
            (
                "good=1, bad=0",
                json!({"levels": [{"label": "good", "score": 1}, {"label": "bad", "score": 0}]}),
            ),
            ("{\"min\": 0, \"max\": 10}", json!({"min": 0, "max": 10})),
        ] {
            assert_eq!(read(given).unwrap(), scale, "{given}");
        }
        for given in ["5..1", "a..b", "1..", "good=2", "=1", "good=1,bad", "/no/such/file"] {
            assert!(read(given).is_err(), "{given}");
        }
    }
}
