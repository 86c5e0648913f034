//! `--scale`: the scale of a custom LLM evaluator.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    commands::flag_value,
    error::{CliError, Result},
};

/// Description of the accepted forms, for error messages.
const SCALE_FORMS: &str =
    "1..5, or good=1,fair=0.5,bad=0 with scores from 0 to 1, or JSON: inline, a file, or - for stdin";

/// Parses a scale: JSON, `1..5`, levels such as `good=1,fair=0.5,bad=0`, or a file with JSON. File names
/// come last, because a file name can look like any other form.
pub fn read(given: &str) -> Result<Value> {
    if given.trim_start().starts_with(['{', '[']) {
        return document(given);
    }
    let range = given.split_once("..").and_then(|(min, max)| numbers(min, max));
    if let Some((min, max)) = range {
        return Ok(json!({ "min": min, "max": max }));
    }
    if let Some(levels) = given.split(',').map(level).collect::<Option<Vec<Value>>>() {
        return Ok(json!({ "levels": levels }));
    }
    if given == "-" || Path::new(given).exists() {
        return document(given);
    }
    Err(CliError::usage(format!("--scale: `{given}` is not a scale, nor the name of a file"))
        .hint(SCALE_FORMS))
}

fn document(given: &str) -> Result<Value> {
    flag_value::object("--scale", given).map(Value::Object).map_err(|error| error.hint(SCALE_FORMS))
}

fn numbers(min: &str, max: &str) -> Option<(Value, Value)> {
    let (min, max) = (number(min)?, number(max)?);
    (min.as_f64()? < max.as_f64()?).then_some((min, max))
}

/// Parses a number as JSON; `1` stays an integer.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_is_parsed_from_every_form() {
        for (given, scale) in [
            ("1..5", json!({"min": 1, "max": 5})),
            ("0..0.5", json!({"min": 0, "max": 0.5})),
            (
                "good=1, bad=0",
                json!({"levels": [{"label": "good", "score": 1}, {"label": "bad", "score": 0}]}),
            ),
            ("{\"min\": 0, \"max\": 10}", json!({"min": 0, "max": 10})),
            (
                "{\"levels\": [{\"label\": \"yes\", \"score\": 1, \"meaning\": \"1..5=all\"}]}",
                json!({"levels": [{"label": "yes", "score": 1, "meaning": "1..5=all"}]}),
            ),
        ] {
            assert_eq!(read(given).unwrap(), scale, "{given}");
        }
        for given in ["5..1", "a..b", "1..", "good=2", "=1", "good=1,bad", "/no/such/file"] {
            assert!(read(given).is_err(), "{given}");
        }
    }

    #[test]
    fn scale_file_name_may_look_like_a_scale() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a..b.json", "good=1.json", "1,2.json"] {
            std::fs::write(dir.path().join(name), "{\"min\": 0, \"max\": 10}").unwrap();
            let path = dir.path().join("..").join(dir.path().file_name().unwrap()).join(name);
            assert_eq!(read(path.to_str().unwrap()).unwrap(), json!({"min": 0, "max": 10}), "{name}");
        }
    }

    #[test]
    fn invalid_scale_error_names_every_form() {
        for given in ["5..1", "/no/such/../file", "[1, 5]", "{"] {
            let error = read(given).unwrap_err();
            assert_eq!(error.hint.as_deref(), Some(SCALE_FORMS), "{given}: {}", error.message);
        }
        assert!(read("5..1").unwrap_err().message.contains("`5..1` is not a scale"));
    }
}
