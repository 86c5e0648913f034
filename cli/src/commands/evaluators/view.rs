//! Display of evaluators for terminals.

use serde_json::{Map, Value};

use crate::output::{
    Column, View,
    cell::{self, Cell, Style},
    sheet::Sheet,
};

/// Table of evaluators.
pub const EVALUATOR_VIEW: View = View {
    plural: "evaluators",
    id: "name",
    columns: &[
        Column::new("NAME", "name", |row, style| cell::text(row, "name", style)),
        Column::new("TYPE", "evaluator_types", |row, style| words(row, "evaluator_types", style)),
        Column::new("TAGS", "tags", |row, style| words(row, "tags", style)).elastic().optional(),
        Column::new("DISPLAY NAME", "display_name", |row, style| cell::text(row, "display_name", style))
            .elastic()
            .wide(),
        Column::new("VERSION", "version", |row, style| cell::count(row, "version", style)).right().wide(),
        Column::new("OF", "builtin", owner),
        Column::new("DESCRIPTION", "description", |row, style| cell::text(row, "description", style))
            .elastic(),
    ],
    fields: &[
        "name",
        "display_name",
        "tags",
        "evaluator_type",
        "evaluator_types",
        "description",
        "version",
        "config_schema",
        "builtin",
        "rubric",
        "scale",
        "checks",
        "combine",
        "created_at",
        "updated_at",
    ],
};

fn owner(row: &Value, _: &Style) -> Cell {
    Cell::plain(if is_builtin(row) { "Loupe" } else { "you" })
}

fn words(row: &Value, name: &str, style: &Style) -> Cell {
    let words = list(row, name).join(", ");
    if words.is_empty() { cell::none(style) } else { Cell::plain(words) }
}

/// Returns whether an evaluator is built-in.
pub fn is_builtin(row: &Value) -> bool {
    row.get("builtin").and_then(Value::as_bool).unwrap_or_default()
}

/// Returns the texts of a list member.
pub fn list<'a>(row: &'a Value, name: &str) -> Vec<&'a str> {
    row.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Formats one evaluator: its description, its options and an example command.
pub fn sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
    let version = row.get("version").and_then(Value::as_i64).unwrap_or_default();
    let types = list(row, "evaluator_types").join(" or ");
    let mut sheet = Sheet::new(style, columns)
        .head(&Cell::plain(""), &[&format!("{}@{version}", text("name")), text("display_name"), &types])
        .line("tags", list(row, "tags").join(", "))
        .line("checks", text("description"));
    for (label, option) in options(row) {
        sheet = sheet.line(&label, option);
    }
    sheet = sheet.line("rubric", text("rubric"));
    for name in ["scale", "combine"] {
        sheet = sheet.line(name, cell::raw(row.get(name)));
    }
    for check in row.get("checks").and_then(Value::as_array).into_iter().flatten() {
        sheet = sheet.line("check", check.to_string());
    }
    sheet.line("try it", example(row)).text()
}

/// Returns a label and a sentence for each option: name, type, bounds and meaning.
fn options(row: &Value) -> Vec<(String, String)> {
    let schema = row.get("config_schema");
    let required: Vec<&str> = schema.map(|it| list(it, "required")).unwrap_or_default();
    let properties = schema.and_then(|it| it.get("properties")).and_then(Value::as_object);
    let sentence = |(name, option): (&String, &Value)| {
        let must = if required.contains(&name.as_str()) { ", required" } else { "" };
        let mut text = format!("{name}: {}{must}", kind(option));
        for (word, member) in [("default", "default"), ("from", "minimum"), ("to", "maximum")] {
            if let Some(value) = option.get(member) {
                text.push_str(&format!(", {word} {value}"));
            }
        }
        if let Some(meaning) = option.get("description").and_then(Value::as_str) {
            text.push_str(&format!(". {meaning}"));
        }
        ("config".to_owned(), text)
    };
    properties.map(|it| it.iter().map(sentence).collect()).unwrap_or_default()
}

/// Describes the values of an option: its type, or the allowed values.
fn kind(option: &Value) -> String {
    let json = |values: &Vec<Value>| values.iter().map(cell_text).collect::<Vec<_>>();
    if let Some(values) = option.get("enum").and_then(Value::as_array) {
        return json(values).join(" | ");
    }
    if let Some(choices) = option.get("anyOf").or_else(|| option.get("oneOf")).and_then(Value::as_array) {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" | ");
    }
    match option.get("type") {
        Some(Value::Array(types)) => json(types).join(" | "),
        Some(Value::String(word)) if word == "array" => match option.get("items") {
            Some(items) => format!("list of {}", kind(items)),
            None => "list".to_owned(),
        },
        Some(Value::String(word)) => word.clone(),
        _ => option.get("const").map_or_else(|| "any JSON".to_owned(), cell_text),
    }
}

fn cell_text(value: &Value) -> String {
    cell::raw(Some(value))
}

/// Returns an example command: the evaluator with its required options.
fn example(row: &Value) -> String {
    let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
    let schema = row.get("config_schema");
    let properties = schema.and_then(|it| it.get("properties"));
    let required: Vec<&str> = schema.map(|it| list(it, "required")).unwrap_or_default();
    let mut config = Map::new();
    for option in required {
        config.insert(option.to_owned(), sample(properties.and_then(|it| it.get(option))));
    }
    let command = format!("loupe evals run TRACE --metric {name} --wait");
    if config.is_empty() { command } else { format!("{command} --config '{}'", Value::Object(config)) }
}

/// Returns an example value for an option.
fn sample(option: Option<&Value>) -> Value {
    let Some(option) = option else { return Value::Null };
    let first = |name: &str| option.get(name).and_then(Value::as_array).and_then(|it| it.first()).cloned();
    if let Some(value) =
        option.get("default").cloned().or_else(|| first("examples")).or_else(|| first("enum"))
    {
        return value;
    }
    if let Some(choice) = first("anyOf").or_else(|| first("oneOf")) {
        return sample(Some(&choice));
    }
    match option.get("type").and_then(Value::as_str) {
        Some("integer") => 1_000.into(),
        Some("number") => option.get("maximum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        Some("string") => "...".into(),
        Some("array") => Value::Array(vec![sample(option.get("items"))]),
        _ => Value::Object(Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use present::Glyphs;
    use serde_json::json;

    use super::*;

    #[test]
    fn evaluator_sheet_describes_its_config() {
        let row = json!({
            "name": "latency_threshold", "display_name": "Latency Threshold", "tags": ["performance"],
            "evaluator_type": "rule", "evaluator_types": ["rule"], "description": "Within the limit.",
            "version": 1, "builtin": true,
            "config_schema": {"type": "object", "required": ["max_latency_ms", "tongue"], "properties": {
                "max_latency_ms": {"type": "integer", "minimum": 0, "description": "The limit."},
                "labels": {"type": "array", "items": {"enum": ["a", "b"]}},
                "tongue": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                "threshold": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.7},
            }},
        });
        let style = Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() };
        let lines = [
            "latency_threshold@1  Latency Threshold  rule",
            "  tags        performance",
            "  checks      Within the limit.",
            "  config      labels: list of a | b",
            "  config      max_latency_ms: integer, required, from 0. The limit.",
            "  config      threshold: number, default 0.7, from 0, to 1",
            "  config      tongue: string | list of string, required",
            "  try it      loupe evals run TRACE --metric latency_threshold --wait --config '{\"max_latency_ms\":1000,\"tongue\":\"...\"}'",
        ];
        assert_eq!(sheet(&row, &style, None), lines.join("\n") + "\n");
    }
}
