//! Display of failures and failure clusters for terminals.

use present::chart::spark;
use serde_json::Value;

use crate::{
    commands::evals::view::text_member,
    output::{
        Column, View,
        cell::{self, Cell, Style, Tone},
        sheet::Sheet,
    },
};

/// Maximum number of points of a sparkline in a table.
const MAX_TREND_POINTS: usize = 12;
/// Maximum number of points of a sparkline in a sheet: two days of hours.
const MAX_SHEET_POINTS: usize = 48;

/// Table of failures.
pub const FAILURE_VIEW: View = View {
    plural: "failures",
    id: "id",
    columns: &[
        Column::new("TIME", "created_at", |row, style| cell::time(row, "created_at", style)),
        Column::new("TYPE", "type", |row, style| cell::text(row, "type", style)),
        Column::new("WHERE", "span_name", |row, style| cell::text(row, "span_name", style)).elastic(),
        Column::new("MESSAGE", "message", |row, style| cell::text(row, "message", style)).elastic(),
        Column::new("MODEL", "model", |row, style| cell::text(row, "model", style)).elastic().optional(),
        Column::new("CLUSTER", "cluster_id", |row, style| cell::short_id(row, "cluster_id", style))
            .optional(),
        Column::new("SPAN", "span_id", |row, style| cell::short_id(row, "span_id", style)).wide(),
        Column::new("PROJECT", "project_id", |row, style| cell::short_id(row, "project_id", style)).wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)).wide(),
        Column::new("TRACE", "trace_id", |row, style| cell::short_id(row, "trace_id", style)),
    ],
    fields: &[
        "id",
        "project_id",
        "trace_id",
        "span_id",
        "span_name",
        "type",
        "message",
        "model",
        "cluster_id",
        "created_at",
    ],
};

/// Table of failure clusters.
pub const CLUSTER_VIEW: View = View {
    plural: "clusters",
    id: "id",
    columns: &[
        Column::new("LAST", "last_seen", |row, style| cell::time(row, "last_seen", style)),
        Column::new("STATUS", "status", status),
        Column::new("TYPE", "failure_type", |row, style| cell::text(row, "failure_type", style)),
        Column::new("WHERE", "span_name", |row, style| cell::text(row, "span_name", style)).elastic(),
        Column::new("TITLE", "title", |row, style| cell::text(row, "title", style)).elastic(),
        Column::new("N", "count", |row, style| cell::count(row, "count", style)).right(),
        Column::new("TRACES", "trace_count", |row, style| cell::count(row, "trace_count", style))
            .right()
            .wide(),
        Column::new("FIRST", "first_seen", |row, style| cell::time(row, "first_seen", style)).wide(),
        Column::new("12H", "trend", |row, style| Cell::plain(trend(row, MAX_TREND_POINTS, style))).optional(),
        Column::new("PROJECT", "project_id", |row, style| cell::short_id(row, "project_id", style)).wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[
        "id",
        "project_id",
        "failure_type",
        "status",
        "signature",
        "title",
        "span_name",
        "count",
        "trace_count",
        "first_seen",
        "last_seen",
        "resolved_at",
        "sample_trace_ids",
        "models",
        "trend",
        "samples",
    ],
};

fn status(row: &Value, style: &Style) -> Cell {
    let tone = match text_member(row, "status") {
        "open" => Tone::Bad,
        "resolved" => Tone::Good,
        _ => Tone::Dim,
    };
    Cell { tone, ..cell::text(row, "status", style) }
}

/// Returns the failures of the last hours as a sparkline; empty without a trend.
fn trend(row: &Value, hours: usize, style: &Style) -> String {
    let points = row.get("trend").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let latest = &points[points.len().saturating_sub(hours)..];
    let counts: Vec<Option<f64>> = latest.iter().map(|it| it.get("count")?.as_f64()).collect();
    spark(&counts, &style.glyphs)
}

/// Formats one failure cluster in full, with a line for each sample.
pub fn cluster_sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    let hours = columns.map_or(MAX_SHEET_POINTS, |it| it.saturating_sub(30).clamp(8, MAX_SHEET_POINTS));
    let words = |name: &str| {
        let list = row.get(name).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
    };
    let trend = match trend(row, hours, style) {
        chart if chart.is_empty() => chart,
        chart => format!("{chart}  failures per hour"),
    };
    let mut sheet = Sheet::new(style, columns)
        .head(&status(row, style), &[text_member(row, "failure_type"), text_member(row, "title")])
        .line("id", text_member(row, "id"))
        .line("project", text_member(row, "project_id"))
        .line("where", text_member(row, "span_name"))
        .line("template", text_member(row, "signature"))
        .line("failures", cell::count(row, "count", style).text)
        .line("traces", cell::count(row, "trace_count", style).text)
        .line("models", words("models"))
        .line("first", cell::date(row, "first_seen", style).text)
        .line("last", cell::date(row, "last_seen", style).text)
        .line("trend", trend);
    if row.get("resolved_at").is_some_and(|it| !it.is_null()) {
        sheet = sheet.line("resolved", cell::date(row, "resolved_at", style).text);
    }
    match row.get("samples").and_then(Value::as_array) {
        Some(samples) => {
            for it in samples {
                let trace = cell::short_id(it, "trace_id", style).text;
                let time = cell::time(it, "created_at", style).text;
                sheet = sheet.line("sample", format!("{trace}  {time}  {}", text_member(it, "message")));
            }
        }
        None => sheet = sheet.line("samples", words("sample_trace_ids")),
    }
    sheet.text()
}

#[cfg(test)]
mod tests {
    use present::Glyphs;
    use serde_json::json;

    use super::*;

    #[test]
    fn trend_shows_the_latest_hours() {
        let style = Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() };
        let points: Vec<Value> = (0..20).map(|it| json!({"count": if it == 19 { 8 } else { 0 }})).collect();
        let chart = trend(&json!({ "trend": points }), MAX_TREND_POINTS, &style);
        assert_eq!((chart.chars().count(), chart.chars().last()), (MAX_TREND_POINTS, Some('█')));
        assert_eq!(trend(&json!({}), MAX_TREND_POINTS, &style), "");
    }
}
