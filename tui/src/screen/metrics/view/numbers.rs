//! Draws the points of the series as a table of numbers, in place of the chart.

use api::metrics::{Metric, MetricPoint};
use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    screen::metrics::state::Metrics,
    shell::Shell,
    theme::Tone,
    widgets::table::{Pieces, first_visible, put},
};
use present::{
    format,
    format::{CLOCK_DATED, clock_minute},
    text::{fit, fit_right},
};

/// The metrics with their heads. Where room is short, the last ones are left out.
const METRIC_COLUMNS: [(Metric, &str); 7] = [
    (Metric::TraceCount, "TRACES"),
    (Metric::ErrorRate, "ERRORS"),
    (Metric::LatencyP95, "P95"),
    (Metric::TotalCost, "COST"),
    (Metric::LatencyP50, "P50"),
    (Metric::LatencyP99, "P99"),
    (Metric::FeedbackGoodRate, "GOOD"),
];
/// Width in columns of a number.
const NUMBER_COLS: usize = 8;

/// Draws the points, newest first.
pub fn draw(metrics: &Metrics, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let (theme, metrics) = (&shell.theme, metrics);
    let glyphs = &theme.glyphs;
    let room = usize::from(area.width).saturating_sub(2 + CLOCK_DATED);
    let columns = &METRIC_COLUMNS[..(room / (NUMBER_COLS + 1)).min(METRIC_COLUMNS.len())];
    let heads = columns.iter().map(|(_, head)| format!(" {head:>NUMBER_COLS$}"));
    let head = format!("  {:<CLOCK_DATED$}{}", "BEGINS", heads.collect::<String>());
    put(buffer, area, 0, &Pieces::new().add(Tone::Dim, head).line(theme, false));
    let points = metrics.points();
    let rows = usize::from(area.height.saturating_sub(1));
    let selected = points.len().saturating_sub(1).saturating_sub(metrics.point());
    let top = first_visible(selected, points.len(), rows);
    for (at, point) in points.iter().rev().enumerate().skip(top).take(rows) {
        let cursor = if at == selected { glyphs.cursor } else { " " };
        let begins = fit(&clock_minute(shell.zone, point.start, shell.now), CLOCK_DATED, glyphs);
        let tone = if point.values.trace_count == 0 { Tone::Dim } else { Tone::Plain };
        let cells = columns.iter().map(|(metric, _)| format!(" {}", cell(shell, point, *metric)));
        let line = Pieces::new().plain(format!("{cursor} {begins}")).add(tone, cells.collect::<String>());
        put(buffer, area, 1 + at - top, &line.line(theme, at == selected));
    }
}

fn cell(shell: &Shell, point: &MetricPoint, metric: Metric) -> String {
    let glyphs = &shell.theme.glyphs;
    let value = point.values.get(metric).map(|value| format::metric(metric, value));
    fit_right(value.as_deref().unwrap_or(glyphs.none), NUMBER_COLS, glyphs)
}
