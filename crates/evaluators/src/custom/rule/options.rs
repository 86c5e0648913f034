//! The options of checks: the schema of each kind, and the parser.

use serde_json::{Map, Value, json};

use super::check::{Bounds, Check, Test, Tokens};
use crate::{
    definition::ConfigProblem,
    form::length::Lengths,
    pattern::{Pattern, PatternOptions},
    schema::{self, Schema},
    target::Target,
};

/// The kinds of checks.
const KINDS: [&str; 9] = [
    "regex",
    "contains",
    "json_schema",
    "json_valid",
    "length",
    "latency_ms",
    "cost_usd",
    "token_count",
    "tool_called",
];

/// Parses a check.
pub(super) fn read(check: &Value) -> Result<Check, Vec<ConfigProblem>> {
    let one = |field: &str, message: String| vec![ConfigProblem::new(field, message)];
    let Value::Object(options) = check else {
        return Err(one("", "must be an object with a kind".into()));
    };
    let named = options.get("kind").and_then(Value::as_str);
    let Some(kind) = KINDS.into_iter().find(|it| Some(*it) == named) else {
        return Err(one("kind", format!("must be one of {}", KINDS.join(", "))));
    };
    schema::check_config(&allowed(kind), options)?;
    let target = Target::of(options).map_err(|it| vec![it])?;
    Ok(Check { kind, test: test(kind, options)?, target, negate: flag(options, "negate") })
}

fn flag(options: &Map<String, Value>, name: &str) -> bool {
    options.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn text<'a>(options: &'a Map<String, Value>, name: &str) -> &'a str {
    options.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn test(kind: &str, options: &Map<String, Value>) -> Result<Test, Vec<ConfigProblem>> {
    let case_insensitive = flag(options, "case_insensitive");
    let extract = flag(options, "extract");
    Ok(match kind {
        "regex" => {
            let pattern = text(options, "pattern");
            let how = PatternOptions { case_insensitive, full_match: flag(options, "full_match") };
            let compiled =
                Pattern::compile(pattern, how).map_err(|it| vec![ConfigProblem::new("pattern", it)])?;
            Test::Regex(Box::new(compiled), pattern.to_owned())
        }
        "contains" => {
            let part = text(options, "text");
            Test::Contains(
                if case_insensitive { part.to_lowercase() } else { part.to_owned() },
                case_insensitive,
            )
        }
        "json_schema" => {
            let wanted = options.get("schema").unwrap_or(&Value::Null);
            let draft = schema::draft(text(options, "draft")).filter(|_| wanted.get("$schema").is_none());
            let schema = Schema::compile(wanted, draft, flag(options, "formats"), "schema")?;
            Test::Schema(Box::new(schema), extract)
        }
        "json_valid" => Test::Json(extract),
        "length" => Test::Length(Lengths::of(options)?),
        "latency_ms" => Test::Latency(bounds(options)?),
        "cost_usd" => Test::Cost(bounds(options)?),
        "token_count" => {
            let which = match text(options, "of") {
                "prompt" => Tokens::Prompt,
                "completion" => Tokens::Completion,
                _ => Tokens::Total,
            };
            Test::Tokens(bounds(options)?, which)
        }
        // The remaining kind is `tool_called`.
        _ => {
            let some = options.contains_key("min") || options.contains_key("max");
            let bounds = if some { bounds(options)? } else { Bounds { min: Some(1.0), max: None } };
            Test::Called(text(options, "name").to_owned(), bounds)
        }
    })
}

fn bounds(options: &Map<String, Value>) -> Result<Bounds, Vec<ConfigProblem>> {
    let at = |name: &str| options.get(name).and_then(Value::as_f64);
    let bounds = Bounds { min: at("min"), max: at("max") };
    match (bounds.min, bounds.max) {
        (None, None) => Err(vec![ConfigProblem::new("", "needs min, max or both")]),
        (Some(min), Some(max)) if min > max => Err(vec![ConfigProblem::new("min", "is above max")]),
        _ => Ok(bounds),
    }
}

/// Returns the schema of a check of this kind.
fn allowed(kind: &str) -> Value {
    let boolean = || json!({"type": "boolean"});
    let number = || json!({"type": "number", "minimum": 0});
    let whole = || json!({"type": "integer", "minimum": 0});
    let text = |most: u32| json!({"type": "string", "minLength": 1, "maxLength": most});
    let (mut properties, required, reads_text) = match kind {
        "regex" => {
            // An empty expression is valid: with `full_match` it matches an empty text.
            let pattern = json!({"type": "string", "maxLength": 10_000});
            let flags = json!({"pattern": pattern, "case_insensitive": boolean(), "full_match": boolean()});
            (flags, Some("pattern"), true)
        }
        "contains" => (json!({"text": text(10_000), "case_insensitive": boolean()}), Some("text"), true),
        "json_schema" => {
            let schema = json!({"type": ["object", "boolean"]});
            let draft = json!({"enum": schema::DRAFTS});
            let all = json!({"schema": schema, "draft": draft, "formats": boolean(), "extract": boolean()});
            (all, Some("schema"), true)
        }
        "json_valid" => (json!({"extract": boolean()}), None, true),
        "length" => (Lengths::properties(), None, true),
        "token_count" => {
            let of = json!({"enum": ["total", "prompt", "completion"]});
            (json!({"min": whole(), "max": whole(), "of": of}), None, false)
        }
        "tool_called" => (json!({"name": text(1_000), "min": whole(), "max": whole()}), Some("name"), false),
        _ => (json!({"min": number(), "max": number()}), None, false),
    };
    if let Value::Object(properties) = &mut properties {
        properties.insert("kind".into(), json!({"type": "string"}));
        properties.insert("negate".into(), boolean());
        if reads_text {
            properties.insert("target".into(), Target::schema());
        }
    }
    let required: Vec<&str> = required.into_iter().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
