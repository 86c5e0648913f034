//! Display of prompt deployments for terminals.

use present::{format, share};
use serde_json::Value;

use crate::{
    commands::{decision::decided, evals::view::text_member},
    output::{
        Column, View,
        cell::{self, Cell, Style, Tone},
        sheet::Sheet,
    },
};

/// Table of prompt deployments.
pub const DEPLOYMENT_VIEW: View = View {
    plural: "deployments",
    id: "id",
    columns: &[
        Column::new("TIME", "created_at", |row, style| cell::time(row, "created_at", style)),
        Column::new("PROMPT", "prompt_name", |row, style| cell::text(row, "prompt_name", style)).elastic(),
        Column::new("V", "version", |row, style| cell::text(row, "version", style)).right(),
        Column::new("STATUS", "status", status),
        Column::new("MODE", "mode", |row, style| cell::text(row, "mode", style)).optional(),
        Column::new("SCORES", "ab.candidate.n", samples).right().optional(),
        Column::new("EFFECT", "ab.effect", |row, style| {
            effect(row).map_or_else(|| cell::none(style), Cell::plain)
        })
        .right(),
        Column::new("P", "ab.p_value", |row, style| {
            float(row, "/ab/p_value").map_or_else(|| cell::none(style), |it| Cell::plain(probability(it)))
        })
        .right()
        .wide(),
        Column::new("METRIC", "ab.metric_name", |row, style| {
            cell::text_or_none(metric(row).to_owned(), style)
        })
        .elastic()
        .wide(),
        Column::new("MODEL", "model", |row, style| cell::text(row, "model", style)).elastic().optional(),
        Column::new("REASON", "reason", |row, style| cell::text(row, "reason", style)).elastic().optional(),
        Column::new("DECIDED BY", "decided_by", |row, style| cell::text(row, "decided_by", style))
            .elastic()
            .wide(),
        Column::new("SHIPPED", "shipped_at", |row, style| cell::time(row, "shipped_at", style)).wide(),
        Column::new("PROJECT", "project_id", |row, style| cell::short_id(row, "project_id", style)).wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[
        "id",
        "project_id",
        "prompt_name",
        "version",
        "template",
        "model",
        "status",
        "reason",
        "baseline_id",
        "mode",
        "ab",
        "watch",
        "source_action_id",
        "created_by",
        "decided_by",
        "decided_at",
        "decision_note",
        "shipped_at",
        "created_at",
        "updated_at",
    ],
};

fn status(row: &Value, style: &Style) -> Cell {
    let tone = match text_member(row, "status") {
        "ab_passed" => Tone::Warn,
        "shipped" => Tone::Good,
        "ab_failed" | "regressed" => Tone::Bad,
        _ => Tone::Dim,
    };
    Cell { tone, ..cell::text(row, "status", style) }
}

fn float(row: &Value, path: &str) -> Option<f64> {
    row.pointer(path).and_then(Value::as_f64)
}

fn integer(row: &Value, path: &str) -> Option<i64> {
    row.pointer(path).and_then(Value::as_i64)
}

fn metric(row: &Value) -> &str {
    row.pointer("/ab/metric_name").and_then(Value::as_str).unwrap_or_default()
}

fn effect(row: &Value) -> Option<String> {
    float(row, "/ab/effect").map(|it| format!("{it:+.3}"))
}

/// Formats a probability; small ones as `<0.001`.
fn probability(value: f64) -> String {
    if value < 0.001 { "<0.001".to_owned() } else { format!("{value:.3}") }
}

/// Formats how many scores both arms have: the smaller number, of the required one.
fn samples(row: &Value, style: &Style) -> Cell {
    let arm = |name: &str| integer(row, &format!("/ab/{name}/n"));
    match (arm("baseline"), arm("candidate"), integer(row, "/ab/min_samples")) {
        (Some(baseline), Some(candidate), Some(required)) => Cell::plain(format!(
            "{}/{}",
            format::thousands(baseline.min(candidate)),
            format::thousands(required)
        )),
        _ => cell::none(style),
    }
}

/// Returns the name and the version of a prompt, such as `support-tone v14`.
pub fn title(row: &Value) -> String {
    let version = integer(row, "/version").map(|it| format!(" v{it}")).unwrap_or_default();
    format!("{}{version}", text_member(row, "prompt_name"))
}

/// Returns the result of the test in one line, such as `faithfulness +0.041, p 0.003`, or why there was none.
pub fn test_result(row: &Value) -> String {
    match (effect(row), float(row, "/ab/p_value")) {
        (Some(effect), Some(p)) => format!("{} {effect}, p {}", metric(row), probability(p)),
        (Some(effect), None) => format!("{} {effect}", metric(row)),
        (None, _) if row.get("ab").is_none_or(Value::is_null) => "no version to compare with".to_owned(),
        (None, _) => format!("{}, not decided", metric(row)),
    }
}

/// Formats the scores of one arm: `mean 0.871 (sd 0.120), 100 scores`.
fn arm(row: &Value, path: &str) -> String {
    let Some(n) = integer(row, &format!("{path}/n")) else { return String::new() };
    let mean = float(row, &format!("{path}/mean")).map(|it| format!("mean {it:.3}"));
    let spread = float(row, &format!("{path}/stddev")).map(|it| format!(" (sd {it:.3})")).unwrap_or_default();
    let count = format!("{} {}", format::thousands(n), if n == 1 { "score" } else { "scores" });
    mean.map_or(count.clone(), |mean| format!("{mean}{spread}, {count}"))
}

/// Formats the settings of the test.
fn test_settings(row: &Value) -> String {
    if row.get("ab").is_none_or(Value::is_null) {
        return String::new();
    }
    let part = |label: &str, value: Option<String>| value.map(|it| format!("{label}{it}"));
    let hours = integer(row, "/ab/max_duration_hours").map(|it| match it % 24 {
        0 => format!("{}d", it / 24),
        _ => format!("{it}h"),
    });
    let share =
        float(row, "/ab/traffic_share").filter(|_| text_member(row, "mode") == "live").map(share::text);
    [
        Some(text_member(row, "mode").to_owned()),
        part("traffic ", share),
        part("scores ", integer(row, "/ab/min_samples").map(format::thousands)),
        part("alpha ", float(row, "/ab/alpha").map(|it| it.to_string())),
        part("max regression ", float(row, "/ab/max_regression").map(|it| it.to_string())),
        part("at most ", hours),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>()
    .join(", ")
}

/// Formats the result of the test with its bound.
fn effect_line(row: &Value) -> String {
    let Some(effect) = effect(row) else { return String::new() };
    let p = float(row, "/ab/p_value").map(|it| format!(", p {}", probability(it))).unwrap_or_default();
    let bound = float(row, "/ab/lower_bound").map(|it| format!(", at least {it:+.3}")).unwrap_or_default();
    format!("{effect}{p}{bound}")
}

/// Formats the watch over a shipped version.
fn watch(row: &Value) -> String {
    let Some(windows) = integer(row, "/watch/windows") else { return String::new() };
    let effect = float(row, "/watch/effect").map(|it| format!(", last {it:+.3}")).unwrap_or_default();
    let unit = if windows == 1 { "window" } else { "windows" };
    format!("{windows} {unit}{effect}; now {}", arm(row, "/watch/current"))
}

/// Adds the lines about the test of a deployment to a sheet.
pub fn add_test_lines(sheet: Sheet, row: &Value) -> Sheet {
    sheet
        .line("metric", metric(row))
        .line("baseline", arm(row, "/ab/baseline"))
        .line("candidate", arm(row, "/ab/candidate"))
        .line("effect", effect_line(row))
}

/// Formats one prompt deployment in full.
pub fn sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    let date = |name: &str| {
        cell::timestamp(row, name).map(|_| cell::date(row, name, style).text).unwrap_or_default()
    };
    let sheet = Sheet::new(style, columns)
        .head(&status(row, style), &[&title(row)])
        .line("id", text_member(row, "id"))
        .line("project", text_member(row, "project_id"))
        .line("model", text_member(row, "model"))
        .line("reason", text_member(row, "reason"))
        .line("compared to", text_member(row, "baseline_id"))
        .line("test", test_settings(row));
    add_test_lines(sheet, row)
        .line("watch", watch(row))
        .line("action", text_member(row, "source_action_id"))
        .line("created by", text_member(row, "created_by"))
        .line("decided", decided(row, style))
        .line("note", text_member(row, "decision_note"))
        .line("created", date("created_at"))
        .line("shipped", date("shipped_at"))
        .line("template", text_member(row, "template"))
        .text()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn test_result_is_shown_in_one_line() {
        for (ab, shown) in [
            (
                json!({ "metric_name": "faithfulness", "effect": 0.041, "p_value": 0.0031 }),
                "faithfulness +0.041, p 0.003",
            ),
            (
                json!({ "metric_name": "faithfulness", "effect": -0.2, "p_value": 0.00001 }),
                "faithfulness -0.200, p <0.001",
            ),
            (json!({ "metric_name": "faithfulness", "effect": null }), "faithfulness, not decided"),
            (Value::Null, "no version to compare with"),
        ] {
            assert_eq!(test_result(&json!({ "ab": ab })), shown);
        }
    }

    #[test]
    fn numbers_of_scores_and_windows_agree_with_their_nouns() {
        let row = |n: i64| json!({ "watch": { "windows": n, "effect": -0.1, "current": { "n": n } } });
        assert_eq!(watch(&row(1)), "1 window, last -0.100; now 1 score");
        assert_eq!(watch(&row(2)), "2 windows, last -0.100; now 2 scores");
    }

    #[test]
    fn settings_name_the_traffic_share_of_live_tests_only() {
        let ab = json!({ "traffic_share": 0.5, "min_samples": 100, "alpha": 0.05, "max_regression": 0.0, "max_duration_hours": 168 });
        let row = |mode: &str| json!({ "mode": mode, "ab": ab.clone() });
        let wanted = "live, traffic 50%, scores 100, alpha 0.05, max regression 0, at most 7d";
        assert_eq!(test_settings(&row("live")), wanted);
        assert!(!test_settings(&row("replay")).contains("traffic"));
    }
}
