//! Draws the chart of the selected metric, the values under its cursor, and the bars of the feedback.

use api::{
    Timestamp,
    anomaly::Anomaly,
    metrics::{Interval, Metric},
};
use ratatui::{buffer::Buffer, layout::Rect};

use crate::screen::metrics::view::rule;
use crate::{
    anomalies::{detected_metric, expected_range, metric_value, severity_mark},
    screen::metrics::layout::{AXIS_COLS, plot_cols},
    screen::metrics::state::Metrics,
    shell::Shell,
    theme::Tone,
    widgets::table::{Pieces, put},
};
use present::{
    chart::{axis_top, columns, combined, highest, per_column, series},
    format,
    text::{fit_right, take, width},
};

/// Minimum height in rows of a chart in which a band looks different from a column.
const BAND_ROWS: usize = 10;
/// The maximum ratio of the axis to the metric itself when a band is drawn.
const BAND_REACH: f64 = 1.25;
/// The widest column of a value.
const MAX_BAND_COLS: usize = 4;

/// The values of the chart.
struct Plot {
    metric: Metric,
    /// The metric, a value for each column.
    values: Vec<Option<f64>>,
    /// The lower and the upper percentiles, where they are drawn.
    band: Option<[Vec<Option<f64>>; 3]>,
    /// The end of the axis.
    top: f64,
    /// Marks of columns that overlap an anomaly.
    marks: Vec<Option<(&'static str, Tone)>>,
    /// Whether the anomalies could not be loaded.
    lacks_anomalies: bool,
    /// The column under the cursor.
    cursor: usize,
    /// Cells of a column.
    wide: usize,
}

impl Plot {
    fn of(metrics: &Metrics, shell: &Shell, rows: usize) -> Self {
        let (metric, points) = (metrics.metric(), metrics.points());
        let cols = plot_cols(shell.size);
        let values = series(metric, points, cols);
        let percentiles = [Metric::LatencyP50, Metric::LatencyP95, Metric::LatencyP99];
        let banded = percentiles.contains(&metric) && rows >= BAND_ROWS;
        let band = banded.then(|| percentiles.map(|it| series(it, points, cols)));
        // The band must not flatten the line of the metric.
        let reach =
            band.as_ref().map_or(0.0, |[_, _, upper]| highest(upper).min(BAND_REACH * highest(&values)));
        Self {
            metric,
            top: axis_top(highest(&values).max(reach)),
            marks: marks(metrics, shell, cols),
            lacks_anomalies: metrics.anomalies_error.is_some() && detected_metric(metric).is_some(),
            cursor: metrics.point() / per_column(points.len(), cols),
            wide: (cols / values.len().max(1)).clamp(1, MAX_BAND_COLS),
            values,
            band,
        }
    }

    /// Returns the rows of the chart, topmost first, with a cell for each column.
    fn rows(&self, count: usize, shell: &Shell) -> Vec<Vec<String>> {
        let glyphs = &shell.theme.glyphs;
        let Some(band) = &self.band else {
            let rows = columns(&self.values, count, self.top, glyphs);
            return rows.iter().map(|row| row.chars().map(String::from).collect()).collect();
        };
        let cell = |at: usize, row: usize| {
            // A cell belongs to the lowest percentile that reaches the middle of the cell, or the bottom of
            // its row.
            let height = if row == 0 { f64::MIN_POSITIVE } else { row as f64 + 0.5 };
            let least = self.top * height / count as f64;
            let reaches = |values: &[Option<f64>]| values[at].is_some_and(|value| value >= least);
            let shade = band.iter().position(|values| reaches(values));
            shade.map_or(" ", |shade| glyphs.shades[shade]).to_owned()
        };
        (0..count).rev().map(|row| (0..self.values.len()).map(|at| cell(at, row)).collect()).collect()
    }

    fn tone(&self, column: usize) -> Tone {
        match (column == self.cursor, self.marks.get(column)) {
            (true, _) => Tone::Strong,
            (false, Some(Some((_, tone)))) => *tone,
            _ => Tone::Field,
        }
    }
}

/// Draws the rule, the chart and its axes.
pub fn draw(metrics: &Metrics, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let theme = &shell.theme;
    let glyphs = &theme.glyphs;
    let rows = usize::from(area.height).saturating_sub(3);
    let plot = Plot::of(metrics, shell, rows);
    put(buffer, area, 0, &rule(metrics, shell, &legend(shell, &plot)).line(theme, false));
    let (tick, corner) = glyphs.axis;
    let axis = |text: &str, mark: &str| {
        Pieces::new()
            .add(Tone::Dim, format!(" {} {mark}", fit_right(text, usize::from(AXIS_COLS) - 3, glyphs)))
    };
    for (at, row) in plot.rows(rows, shell).into_iter().enumerate() {
        let label = match at {
            0 => format::metric(plot.metric, plot.top),
            _ if at == rows / 2 && rows >= 4 && rows % 2 == 0 => middle(&plot),
            _ => String::new(),
        };
        let mut line = axis(&label, tick);
        for (column, cell) in row.into_iter().enumerate() {
            line = line.add(plot.tone(column), cell.repeat(plot.wide));
        }
        put(buffer, area, 1 + at, &line.line(theme, false));
    }
    let mut line = axis("0", corner);
    for column in 0..plot.values.len() {
        let (mark, tone) = match (column == plot.cursor, plot.marks.get(column).copied().flatten()) {
            (true, _) => (glyphs.caret, Tone::Strong),
            (false, Some(mark)) => mark,
            (false, None) => (glyphs.rule, Tone::Dim),
        };
        // A mark of ASCII is wider than a narrow column.
        let mark = take(mark, plot.wide);
        let gap = plot.wide - width(mark);
        line = line.add(tone, mark).add(Tone::Dim, glyphs.rule.repeat(gap));
    }
    put(buffer, area, 1 + rows, &line.line(theme, false));
    put(buffer, area, 2 + rows, &times(metrics, shell, &plot).line(theme, false));
}

/// Returns the legend of shades and marks, if there is room for it.
fn legend(shell: &Shell, plot: &Plot) -> String {
    let glyphs = &shell.theme.glyphs;
    if shell.size.0 < 76 {
        return String::new();
    }
    let [low, middle, high] = glyphs.shades;
    let band = format!(" {} {low} p50 {middle} p95 {high} p99", glyphs.dot);
    let mut text = if plot.band.is_some() { band } else { String::new() };
    if plot.lacks_anomalies {
        text.push_str(&format!(" {} anomalies not loaded", glyphs.dot));
        return text;
    }
    let mut marks: Vec<&str> = plot.marks.iter().flatten().map(|(mark, _)| *mark).collect();
    marks.sort_unstable();
    marks.dedup();
    if !marks.is_empty() {
        text.push_str(&format!(" {} {} anomaly", glyphs.dot, marks.join(" ")));
    }
    text
}

/// Returns the marks of the columns that overlap an anomaly of the metric: that of the most severe one.
fn marks(metrics: &Metrics, shell: &Shell, cols: usize) -> Vec<Option<(&'static str, Tone)>> {
    let glyphs = &shell.theme.glyphs;
    let mark = |it: &Anomaly| {
        let (mark, tone) = severity_mark(it, glyphs);
        // In the chart, an anomaly that has ended is as notable as an open one.
        (mark, if tone == Tone::Dim { Tone::Warn } else { tone })
    };
    metrics.marks(cols, shell.now).into_iter().map(|it| it.map(mark)).collect()
}

/// Returns the label at half of the axis; a number of traces has none where it would be a fraction.
fn middle(plot: &Plot) -> String {
    let half = plot.top / 2.0;
    if plot.metric == Metric::TraceCount && half.fract() != 0.0 {
        return String::new();
    }
    format::metric(plot.metric, half)
}

/// Returns the labels of the first, the middle and the last column.
fn times(metrics: &Metrics, shell: &Shell, plot: &Plot) -> Pieces {
    let points = metrics.points();
    let per = per_column(points.len(), plot_cols(shell.size));
    let form = if metrics.stretch.interval() == Interval::Day { "%m-%d" } else { "%H:%M" };
    let form = if metrics.stretch.label() == "7d" { "%m-%d %Hh" } else { form };
    let at = |column: usize| {
        points
            .get(column * per)
            .map(|it| shell.zone.of(it.start).format(form).to_string())
            .unwrap_or_default()
    };
    let cells = plot.values.len() * plot.wide;
    let (left, right) = (at(0), at(plot.values.len().saturating_sub(1)));
    let mut text = left;
    let centre = plot.values.len() / 2;
    let middle = at(centre);
    if text.len() + middle.len() + right.len() + 4 < cells {
        text = format!("{text:<width$}{middle}", width = centre * plot.wide);
    }
    if text.len() + right.len() + 1 < cells {
        text = format!("{text:<width$}{right}", width = cells - right.len());
    }
    Pieces::new().add(Tone::Dim, format!("{}{text}", " ".repeat(usize::from(AXIS_COLS))))
}

/// Returns the values under the cursor as a sentence.
pub fn readout(metrics: &Metrics, shell: &Shell) -> Option<String> {
    let glyphs = &shell.theme.glyphs;
    let (metric, dot) = (metrics.metric(), glyphs.dot);
    let cols = if metrics.numbers { usize::MAX } else { plot_cols(shell.size) };
    let column = metrics.column(cols);
    let points = metrics.points().get(column.clone())?;
    let (from, to) = metrics.bounds(column.clone())?;
    let value = combined(metric, points).map(|value| format::metric(metric, value));
    let traces = combined(Metric::TraceCount, points).map(|it| format::metric(Metric::TraceCount, it));
    let begin = format::clock_minute(shell.zone, from, shell.now);
    // The end is inclusive, but a time range is shown with the beginning of the next point.
    let end = format::clock_minute(shell.zone, Timestamp::from_micros(to.micros() + 1), shell.now);
    let at = column.start / per_column(metrics.points().len(), cols);
    let anomaly = metrics.marks(cols, shell.now).get(at).copied().flatten();
    let anomaly = anomaly.map(|it| {
        let value = metric_value(&it.metric, it.observed);
        format!(" {dot} {} anomaly: {value}, expected {}", it.severity, expected_range(it))
    });
    let mut text =
        format!("{begin} to {end} {dot} {} {}", metric.as_str(), value.as_deref().unwrap_or(glyphs.none),);
    if metric != Metric::TraceCount {
        text.push_str(&format!(" {dot} {} traces", traces.as_deref().unwrap_or("0")));
    }
    text.push_str(&anomaly.unwrap_or_default());
    Some(text)
}

/// Draws the feedback of the time shown.
pub fn feedback(metrics: &Metrics, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let theme = &shell.theme;
    let glyphs = &theme.glyphs;
    let Some(verdicts) = metrics.verdicts else { return };
    let label = metrics.stretch.label();
    let which = if verdicts.more { format!("the newest {}", verdicts.all()) } else { "all".to_owned() };
    let title = format!("{} feedback of the last {label}, {which} ", glyphs.rule.repeat(2));
    let gap = usize::from(area.width).saturating_sub(width(&title));
    put(buffer, area, 0, &Pieces::new().add(Tone::Dim, title + &glyphs.rule.repeat(gap)).line(theme, false));
    if verdicts.all() == 0 {
        let none = Pieces::new().plain("  ").add(Tone::Dim, "none");
        return put(buffer, area, 1, &none.line(theme, false));
    }
    let rows = [
        ("good", verdicts.good, Tone::Good),
        ("neutral", verdicts.neutral, Tone::Dim),
        ("bad", verdicts.bad, Tone::Bad),
    ];
    let room = usize::from(area.width).saturating_sub(30);
    for (at, (name, count, tone)) in rows.into_iter().enumerate() {
        let cells = (count * room).div_ceil(verdicts.all());
        let share = count as f64 * 100.0 / verdicts.all() as f64;
        let line = Pieces::new()
            .plain(format!("  {name:<8}"))
            .add(tone, glyphs.bar.repeat(cells))
            .plain(format!("  {count}  {share:.1} %"));
        put(buffer, area, 1 + at, &line.line(theme, false));
    }
}
