//! Text charts of metrics: sparklines, and bar charts above a time axis.

use std::collections::HashMap;

use api::{
    Timestamp,
    metrics::{Interval, Metric, MetricGroup, MetricPoint, MetricValues, Metrics},
};
use present::{
    chart::{axis_top, columns, highest, how_combined, per_column, series, spark},
    format,
    text::{cut, fit, fit_right, width},
};

use crate::output::cell::{Cell, Style, Tone};

/// Height of a chart in rows.
const CHART_ROWS: usize = 4;
/// Width of the axis labels in columns.
const LABEL_COLUMNS: usize = 8;
/// Maximum width of one point in columns.
const MAX_POINT_COLUMNS: usize = 6;
/// Maximum width of a sparkline in columns.
const MAX_SPARKLINE_COLUMNS: usize = 48;
/// Minimum width of a useful sparkline in columns.
const MIN_SPARKLINE_COLUMNS: usize = 4;

/// Returns a line for each metric: name, value and sparkline.
pub fn lines(metrics: &Metrics, wanted: &[Metric], style: &Style, limit: usize) -> String {
    let points = metrics.series.as_deref().unwrap_or_default();
    let names = wanted.iter().map(|it| width(it.as_str())).max().unwrap_or_default();
    let names = names.min(limit.saturating_sub(LABEL_COLUMNS + 2));
    let mut text = String::new();
    for metric in wanted {
        let name = style.paint(&fit(metric.as_str(), names, &style.glyphs), Tone::Strong);
        text.push_str(&format!(
            "{name}  {}",
            trend(*metric, &metrics.metrics, points, style, limit.saturating_sub(names + 2))
        ));
    }
    text
}

/// Returns a block for each metric, with a line for each group.
pub fn groups(metrics: &Metrics, wanted: &[Metric], style: &Style, limit: usize) -> String {
    let groups = metrics.groups.as_deref().unwrap_or_default();
    let key =
        |key: &Option<String>| key.as_deref().map_or(style.glyphs.none.to_owned(), |it| Cell::plain(it).text);
    let most = (limit / 3).max(4).min(limit.saturating_sub(LABEL_COLUMNS + 4));
    let keys = groups.iter().map(|it| width(&key(&it.key))).max().unwrap_or_default().min(most);
    let mut text = String::new();
    for metric in wanted {
        text.push_str(&heading(&[(metric.as_str(), Tone::Strong)], style, limit));
        for group in groups {
            let points = points_on_series(group, metrics.series.as_deref().unwrap_or_default());
            let line = trend(*metric, &group.metrics, &points, style, limit.saturating_sub(keys + 4));
            text.push_str(&format!("  {}  {line}", fit(&key(&group.key), keys, &style.glyphs)));
        }
    }
    text
}

/// Returns the points of a group at all times of `series`. A group has no points where it has no traces,
/// but the sparklines of several groups must have the same time scale.
fn points_on_series(group: &MetricGroup, series: &[MetricPoint]) -> Vec<MetricPoint> {
    let known: HashMap<i64, MetricPoint> =
        group.series.iter().flatten().map(|it| (it.start.micros(), *it)).collect();
    let nothing = |start| MetricPoint { start, values: MetricValues::default() };
    series.iter().map(|it| known.get(&it.start.micros()).copied().unwrap_or(nothing(it.start))).collect()
}

/// Returns a value and, if there is room, its sparkline.
fn trend(
    metric: Metric,
    values: &MetricValues,
    points: &[MetricPoint],
    style: &Style,
    limit: usize,
) -> String {
    let value = fit_right(&format_value(metric, values.get(metric), style), LABEL_COLUMNS, &style.glyphs);
    let room = limit.saturating_sub(LABEL_COLUMNS + 2).min(MAX_SPARKLINE_COLUMNS);
    if room < MIN_SPARKLINE_COLUMNS {
        return cut(&value, limit, &style.glyphs) + "\n";
    }
    let line = spark(&series(metric, points, room), &style.glyphs);
    format!("{value}  {line}").trim_end().to_owned() + "\n"
}

/// Draws a chart of one metric, at most `limit` columns wide.
pub fn block(metric: Metric, metrics: &Metrics, interval: Interval, style: &Style, limit: usize) -> String {
    let points = metrics.series.as_deref().unwrap_or_default();
    let room = limit.saturating_sub(LABEL_COLUMNS + 2).max(1);
    let shared = per_column(points.len(), room);
    let values = series(metric, points, room);
    let how = match (shared, how_combined(metric)) {
        (2.., Some(how)) => format!("by {interval}, {how} of {shared} in a column"),
        (2.., None) => format!("by {interval}, {shared} in a column"),
        _ => format!("by {interval}"),
    };
    let value = format_value(metric, metrics.metrics.get(metric), style);
    let parts = [(metric.as_str(), Tone::Strong), (&value, Tone::Plain), (&how, Tone::Dim)];
    let mut text = heading(&parts, style, limit);
    if values.iter().all(Option::is_none) {
        return text
            + &cut(&format!("{}  no values", " ".repeat(LABEL_COLUMNS)), limit, &style.glyphs)
            + "\n";
    }
    let cell = (room / values.len().max(1)).clamp(1, MAX_POINT_COLUMNS);
    let top = axis_top(highest(&values));
    let vertical = style.glyphs.vertical;
    for (at, row) in columns(&values, CHART_ROWS, top, &style.glyphs).iter().enumerate() {
        let label = if at == 0 { format_value(metric, Some(top), style) } else { String::new() };
        let drawn: String = row.chars().map(|it| widened(it, cell)).collect();
        text.push_str(
            format!("{} {vertical}{drawn}", fit_right(&label, LABEL_COLUMNS, &style.glyphs)).trim_end(),
        );
        text.push('\n');
    }
    let across = cell * values.len();
    let axis = style.glyphs.rule.repeat(across);
    text.push_str(&format!(
        "{} {}{axis}\n",
        fit_right("0", LABEL_COLUMNS, &style.glyphs),
        style.glyphs.corners[2]
    ));
    let starts: Vec<Timestamp> =
        points.chunks(shared).filter_map(|it| it.first()).map(|it| it.start).collect();
    let times = times(&starts, cell, interval, style);
    text + " ".repeat(LABEL_COLUMNS + 2).as_str() + &times + "\n"
}

/// Joins as many texts as fit into the width; the first is cut if necessary.
pub fn heading(parts: &[(&str, Tone)], style: &Style, limit: usize) -> String {
    let (mut text, mut used) = (String::new(), 0);
    for (part, tone) in parts {
        let gap = if used == 0 { "" } else { "  " };
        let room = limit.saturating_sub(used + gap.len());
        if used > 0 && width(part) > room {
            break;
        }
        let part = cut(part, room, &style.glyphs);
        used += gap.len() + width(&part);
        text.push_str(gap);
        text.push_str(&style.paint(&part, *tone));
    }
    text + "\n"
}

/// Repeats a cell to the width of a point, with a blank between wide points.
fn widened(cell: char, columns: usize) -> String {
    let drawn = if columns > 2 { columns - 1 } else { columns };
    cell.to_string().repeat(drawn) + &" ".repeat(columns - drawn)
}

/// Returns the labels of the time axis, as many as fit.
fn times(starts: &[Timestamp], cell: usize, interval: Interval, style: &Style) -> String {
    let across = cell * starts.len();
    let same_day = match (starts.first(), starts.last()) {
        (Some(first), Some(last)) => format::same_day(style.zone(), *first, *last),
        _ => true,
    };
    let form = match interval {
        Interval::Day => "%m-%d",
        Interval::Minute | Interval::Hour if same_day => "%H:%M",
        Interval::Minute | Interval::Hour => "%m-%d %H:%M",
    };
    let mut line = String::new();
    for (at, start) in starts.iter().enumerate() {
        let label = style.zone().of(*start).format(form).to_string();
        let column = at * cell;
        let fits = column + label.len() <= across;
        if fits && (at == 0 || column >= line.len() + 8) {
            line.push_str(&" ".repeat(column - line.len()));
            line.push_str(&label);
        }
    }
    line
}

fn format_value(metric: Metric, value: Option<f64>, style: &Style) -> String {
    value.map_or_else(|| style.glyphs.none.to_owned(), |it| format::metric(metric, it))
}
