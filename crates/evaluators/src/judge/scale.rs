//! The scale of a judge's response and its mapping to scores.

use serde_json::{Map, Value, json};

use crate::config::ConfigProblem;

/// Maximum number of levels; a finer scale should be a range.
const MAX_LEVELS: usize = 20;
/// Maximum length of a level's label in characters.
const MAX_LABEL_CHARS: usize = 50;
/// Maximum length of a level's meaning in characters.
const MAX_MEANING_CHARS: usize = 1_000;
/// Maximum absolute value of the ends of a range; larger numbers lose digits.
const MAX_RANGE_END: f64 = 1e9;

/// The form of the judgement in a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// A number from `min`, the worst, to `max`, the best, both inclusive.
    Range {
        /// The worst value.
        min: f64,
        /// The best value.
        max: f64,
    },
    /// One of several labelled levels.
    Levels(Vec<ScaleLevel>),
}

/// A labelled level of a scale.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleLevel {
    /// The value in the judge's response, and the label of the evaluation.
    pub label: String,
    /// The score, from 0.0 to 1.0; 1.0 is good.
    pub score: f64,
    /// The condition for this level; may be empty.
    pub meaning: String,
}

impl Scale {
    /// The range from 0 to 1.
    pub const ZERO_TO_ONE: Self = Self::Range { min: 0.0, max: 1.0 };

    /// Parses `{"min": 1, "max": 5}` or `{"levels": [{"label", "score", "meaning"?}, …]}`.
    ///
    /// # Errors
    /// Returns the problems, with paths that begin with `scale`.
    pub fn parse(scale: &Value) -> Result<Self, Vec<ConfigProblem>> {
        let problem = |field: &str, message: String| Err(vec![ConfigProblem::new(field, message)]);
        let Some(scale) = scale.as_object() else {
            return problem("scale", format!("is not an object: send {SCALE_EXAMPLES}"));
        };
        if let Some(unknown) = scale.keys().find(|it| !matches!(it.as_str(), "min" | "max" | "levels")) {
            return problem(
                &format!("scale.{unknown}"),
                format!("is not a member of a scale: send {SCALE_EXAMPLES}"),
            );
        }
        match (scale.get("levels"), scale.get("min"), scale.get("max")) {
            (Some(levels), None, None) => parse_levels(levels).map(Self::Levels),
            (None, Some(min), Some(max)) => parse_range(min, max),
            _ => problem("scale", format!("is neither a range nor levels: send {SCALE_EXAMPLES}")),
        }
    }

    /// Returns the JSON Schema of the judge's response. Every member is required and no other is allowed. The
    /// reasoning comes first, so that a model that writes in order reasons before it judges. (Members are
    /// written in alphabetical order, hence `verdict` and not `label`.)
    ///
    /// The schema contains `minimum` and `maximum`. The caller may remove them for a provider that rejects them,
    /// because [`super::parse_response`] always checks the range.
    pub fn schema(&self) -> Value {
        let reasoning =
            json!({"type": "string", "description": "Why, in two to five sentences, before the judgement."});
        let (name, judgement) = match self {
            Self::Range { min, max } => {
                ("score", json!({"type": "number", "minimum": number(*min), "maximum": number(*max)}))
            }
            Self::Levels(levels) => {
                let labels: Vec<&str> = levels.iter().map(|it| it.label.as_str()).collect();
                ("verdict", json!({"type": "string", "enum": labels}))
            }
        };
        let mut properties = Map::new();
        properties.insert("reasoning".to_owned(), reasoning);
        properties.insert(name.to_owned(), judgement);
        json!({
            "type": "object",
            "properties": properties,
            "required": ["reasoning", name],
            "additionalProperties": false,
        })
    }

    /// Returns the name of the member that contains the judgement.
    pub(super) fn member(&self) -> &'static str {
        match self {
            Self::Range { .. } => "score",
            Self::Levels(_) => "verdict",
        }
    }

    /// Returns the instructions for the form of the response.
    pub(super) fn instructions(&self) -> String {
        match self {
            Self::Range { min, max } => format!(
                "Answer with one JSON object and nothing else: {{\"reasoning\": \"…\", \"score\": …}}. \
                 First \"reasoning\": two to five sentences that name what decides. Then \"score\": a \
                 number from {min} (worst) to {max} (best).",
            ),
            Self::Levels(levels) => {
                let labels: Vec<String> =
                    levels.iter().map(|it| Value::from(it.label.as_str()).to_string()).collect();
                let mut text = format!(
                    "Answer with one JSON object and nothing else: {{\"reasoning\": \"…\", \"verdict\": \
                     \"…\"}}. First \"reasoning\": two to five sentences that name what decides. Then \
                     \"verdict\": one of {}.",
                    labels.join(", ")
                );
                for level in levels.iter().filter(|it| !it.meaning.is_empty()) {
                    text.push_str(&format!("\n- {}: {}", level.label, level.meaning));
                }
                text
            }
        }
    }
}

const SCALE_EXAMPLES: &str = "{\"min\": 1, \"max\": 5}, or {\"levels\": [{\"label\": \"good\", \"score\": 1.0, \
                      \"meaning\": \"…\"}, …]}";

fn parse_range(min: &Value, max: &Value) -> Result<Scale, Vec<ConfigProblem>> {
    let end = |value: &Value, field: &str| match value.as_f64() {
        Some(number) if number.abs() <= MAX_RANGE_END => Ok(number),
        _ => Err(ConfigProblem::new(
            field,
            format!("must be a number from -{MAX_RANGE_END} to {MAX_RANGE_END}"),
        )),
    };
    match (end(min, "scale.min"), end(max, "scale.max")) {
        (Ok(min), Ok(max)) if min < max => Ok(Scale::Range { min, max }),
        (Ok(_), Ok(_)) => Err(vec![ConfigProblem::new(
            "scale.max",
            "must be above min: min is the worst value, max the best",
        )]),
        (min, max) => Err([min, max].into_iter().filter_map(Result::err).collect()),
    }
}

fn parse_levels(levels: &Value) -> Result<Vec<ScaleLevel>, Vec<ConfigProblem>> {
    let levels = match levels.as_array() {
        Some(levels) if (2..=MAX_LEVELS).contains(&levels.len()) => levels,
        _ => {
            let message = format!("must be a list of 2 to {MAX_LEVELS} levels");
            return Err(vec![ConfigProblem::new("scale.levels", message)]);
        }
    };
    let mut problems = Vec::new();
    let mut read: Vec<ScaleLevel> = Vec::new();
    for (at, level) in levels.iter().enumerate() {
        match parse_level(level, &format!("scale.levels.{at}")) {
            Ok(level) if read.iter().any(|it| it.label.eq_ignore_ascii_case(&level.label)) => {
                problems.push(ConfigProblem::new(
                    format!("scale.levels.{at}.label"),
                    "occurs twice: give each level its own label",
                ));
            }
            Ok(level) => read.push(level),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(read) } else { Err(problems) }
}

fn parse_level(level: &Value, path: &str) -> Result<ScaleLevel, Vec<ConfigProblem>> {
    let Some(level) = level.as_object() else {
        return Err(vec![ConfigProblem::new(
            path,
            "is not an object: send {\"label\", \"score\", \"meaning\"}",
        )]);
    };
    let mut problems = Vec::new();
    let mut wrong = |member: &str, message: String| {
        problems.push(ConfigProblem::new(format!("{path}.{member}"), message));
    };
    let label = match level.get("label").and_then(Value::as_str).map(str::trim) {
        Some(label)
            if !label.is_empty()
                && label.chars().count() <= MAX_LABEL_CHARS
                && !label.chars().any(char::is_control) =>
        {
            label.to_owned()
        }
        _ => {
            wrong("label", format!("is required: a text of 1 to {MAX_LABEL_CHARS} characters on one line"));
            String::new()
        }
    };
    let score = match level.get("score").and_then(Value::as_f64) {
        Some(score) if (0.0..=1.0).contains(&score) => score,
        _ => {
            wrong("score", "is required: a number from 0 to 1, where 1 is good".to_owned());
            0.0
        }
    };
    let meaning = match level.get("meaning") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) if text.chars().count() <= MAX_MEANING_CHARS => text.clone(),
        Some(_) => {
            wrong("meaning", format!("must be a text of at most {MAX_MEANING_CHARS} characters"));
            String::new()
        }
    };
    for unknown in level.keys().filter(|it| !matches!(it.as_str(), "label" | "score" | "meaning")) {
        wrong(unknown, "is not a member of a level; the members are label, score and meaning".to_owned());
    }
    if problems.is_empty() { Ok(ScaleLevel { label, score, meaning }) } else { Err(problems) }
}

/// Returns a number as JSON; whole numbers have no fraction, so that a schema contains 1 and not 1.0.
fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "whole and within FARTHEST")]
    if value.fract() == 0.0 { json!(value as i64) } else { json!(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(scale: Value) -> Vec<String> {
        Scale::parse(&scale)
            .unwrap_err()
            .into_iter()
            .map(|it| {
                assert!(!it.message.is_empty());
                it.field
            })
            .collect()
    }

    #[test]
    fn both_forms_of_a_scale_are_parsed() {
        assert_eq!(Scale::parse(&json!({"min": 1, "max": 5})), Ok(Scale::Range { min: 1.0, max: 5.0 }));
        let levels = Scale::parse(&json!({"levels": [
            {"label": "good", "score": 1.0, "meaning": "It is complete."}, {"label": " bad ", "score": 0},
        ]}));
        let Ok(Scale::Levels(levels)) = levels else { panic!("{levels:?}") };
        assert_eq!(levels[1], ScaleLevel { label: "bad".to_owned(), score: 0.0, meaning: String::new() });
    }

    #[test]
    fn invalid_scale_problem_names_field() {
        let level = json!({"label": "a", "score": 1});
        for (scale, fields) in [
            (json!(5), vec!["scale"]),
            (json!({}), vec!["scale"]),
            (json!({"min": 1}), vec!["scale"]),
            (json!({"min": 1, "max": 5, "levels": []}), vec!["scale"]),
            (json!({"min": 1, "maximum": 5}), vec!["scale.maximum"]),
            (json!({"min": 5, "max": 5}), vec!["scale.max"]),
            (json!({"min": "1", "max": 1e30}), vec!["scale.min", "scale.max"]),
            (json!({"levels": [level]}), vec!["scale.levels"]),
            (json!({"levels": {}}), vec!["scale.levels"]),
            (
                json!({"levels": [level, {"label": "A", "score": 0.5}, {"label": "", "score": 2, "text": 1}, 3]}),
                vec![
                    "scale.levels.1.label",
                    "scale.levels.2.label",
                    "scale.levels.2.score",
                    "scale.levels.2.text",
                    "scale.levels.3",
                ],
            ),
        ] {
            assert_eq!(problems(scale.clone()), fields, "{scale}");
        }
    }

    #[test]
    fn response_schema_puts_reasoning_first() {
        let levels = json!({"levels": [{"label": "a", "score": 1}, {"label": "b", "score": 0}]});
        let levels = Scale::parse(&levels).unwrap().schema().to_string();
        assert!(levels.find("\"reasoning\"") < levels.find("\"verdict\""), "{levels}");
        let schema = Scale::ZERO_TO_ONE.schema().to_string();
        assert!(schema.find("\"reasoning\"") < schema.find("\"score\""), "{schema}");
        assert!(schema.contains(r#""maximum":1,"minimum":0"#), "{schema}");
        assert!(schema.contains(r#""additionalProperties":false"#), "{schema}");
    }
}
