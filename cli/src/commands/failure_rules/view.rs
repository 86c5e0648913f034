//! Display of failure rules for terminals.

use serde_json::Value;

use crate::{
    commands::{evals::view::text_member, rule_filter::filter_terms},
    output::{
        Column, View,
        cell::{self, Cell, Style, Tone},
        sheet::Sheet,
    },
};

/// Table of failure rules.
pub const FAILURE_RULE_VIEW: View = View {
    plural: "failure_rules",
    id: "id",
    columns: &[
        Column::new("STATE", "enabled", state),
        Column::new("NAME", "name", |row, style| cell::text(row, "name", style)).elastic(),
        Column::new("FAILURES", "failure_types", |row, style| or_none(failure_types(row), style)).elastic(),
        Column::new("SCORES", "max_score", |row, style| or_none(scores(row), style)).elastic(),
        Column::new("METRIC", "metric_name", |row, style| cell::text(row, "metric_name", style)).wide(),
        Column::new("FILTER", "filter", |row, _| Cell::plain(filter_terms(row))).elastic(),
        Column::new("FROM", "min_count", |row, style| cell::count(row, "min_count", style)).right(),
        Column::new("WITHIN", "window_minutes", |row, _| Cell::plain(window(row))).right(),
        Column::new("LAST FIRED", "last_fired_at", |row, style| cell::time(row, "last_fired_at", style))
            .optional(),
        Column::new("PROJECT", "project_id", |row, style| cell::short_id(row, "project_id", style)).wide(),
        Column::new("CHANGED", "updated_at", |row, style| cell::date(row, "updated_at", style)).wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[
        "id",
        "name",
        "enabled",
        "project_id",
        "failure_types",
        "metric_name",
        "max_score",
        "filter",
        "min_count",
        "window_minutes",
        "created_at",
        "updated_at",
        "last_fired_at",
    ],
};

fn state(row: &Value, _: &Style) -> Cell {
    if row.get("enabled").and_then(Value::as_bool).unwrap_or_default() {
        Cell::toned("on", Tone::Good)
    } else {
        Cell::toned("off", Tone::Dim)
    }
}

fn or_none(text: String, style: &Style) -> Cell {
    if text.is_empty() { cell::none(style) } else { Cell::plain(text) }
}

fn failure_types(row: &Value) -> String {
    let types = row.get("failure_types").and_then(Value::as_array).into_iter().flatten();
    types.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// Formats the condition on scores, such as `faithfulness <= 0.5`; empty without one.
fn scores(row: &Value) -> String {
    match (text_member(row, "metric_name"), row.get("max_score").and_then(Value::as_f64)) {
        ("", _) | (_, None) => String::new(),
        (metric, Some(score)) => format!("{metric} <= {score}"),
    }
}

/// Formats the window in its largest unit that is whole: `15m`, `1h`, `7d`.
fn window(row: &Value) -> String {
    match row.get("window_minutes").and_then(Value::as_i64).unwrap_or_default() {
        minutes if minutes % 1_440 == 0 => format!("{}d", minutes / 1_440),
        minutes if minutes % 60 == 0 => format!("{}h", minutes / 60),
        minutes => format!("{minutes}m"),
    }
}

/// Formats one failure rule in full.
pub fn sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    let fires = match row.get("min_count").and_then(Value::as_i64).unwrap_or_default() {
        1 => "for every matching trace".to_owned(),
        count => format!("at {count} or more matching traces within {}", window(row)),
    };
    let project = match text_member(row, "project_id") {
        "" => "all projects",
        id => id,
    };
    let mut sheet = Sheet::new(style, columns)
        .head(&state(row, style), &[text_member(row, "name")])
        .line("id", text_member(row, "id"))
        .line("project", project)
        .line("failures", failure_types(row))
        .line("scores", scores(row))
        .line("traces", filter_terms(row))
        .line("fires", fires);
    if !text_member(row, "last_fired_at").is_empty() {
        sheet = sheet.line("last fired", cell::date(row, "last_fired_at", style).text);
    }
    sheet
        .line("created", cell::date(row, "created_at", style).text)
        .line("changed", cell::date(row, "updated_at", style).text)
        .text()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn window_is_shown_in_its_largest_whole_unit() {
        for (minutes, text) in [(15, "15m"), (60, "1h"), (90, "90m"), (1_440, "1d"), (10_080, "7d")] {
            assert_eq!(window(&json!({ "window_minutes": minutes })), text);
        }
    }

    #[test]
    fn score_condition_needs_metric_and_score() {
        assert_eq!(scores(&json!({"metric_name": "faithfulness", "max_score": 0.5})), "faithfulness <= 0.5");
        assert_eq!(scores(&json!({"metric_name": null, "max_score": null})), "");
    }
}
