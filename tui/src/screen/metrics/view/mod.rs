//! Draws Metrics: the table with its trends, the line above it, and the panels without values.

pub mod chart;
pub mod numbers;

use api::metrics::Metric;
use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    keymap::Action,
    screen::metrics::change::{Mark, change},
    screen::metrics::keys::METRICS_SCOPE,
    screen::metrics::layout::{parts, plot_cols},
    screen::metrics::state::{Metrics, Stretch},
    shell::{
        ScreenReplies as _, ScreenView, Shell,
        freshness::{Cause, Stale},
        notice,
    },
    theme::Tone,
    widgets::table::{Pieces, first_visible, put, put_panel},
};
use present::{
    chart::{how_combined, per_column, series, spark},
    format,
    format::clock,
    text::{clean, fit, fit_right},
};

/// Width in columns of a metric's name.
const NAME_COLS: usize = 18;
/// Width in columns of a metric's value.
const VALUE_COLS: usize = 9;
/// Width in columns of a metric's change.
const CHANGE_COLS: usize = 11;

impl ScreenView for Metrics {
    fn has_records(&self, _shell: &Shell) -> bool {
        self.shown.is_some()
    }

    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        if self.shown.is_none() {
            return put_panel(buffer, area, &shell.theme, &instead(self, shell));
        }
        let parts = parts(shell.size, self.numbers);
        if self.numbers {
            return numbers::draw(self, shell, buffer, parts.table);
        }
        table(self, shell, buffer, parts.table);
        if parts.chart.height == 0 {
            return;
        }
        if traces(self) == 0 {
            put(buffer, parts.chart, 0, &rule(self, shell, "").line(&shell.theme, false));
            let below = Rect { y: parts.chart.y + 1, height: parts.chart.height - 1, ..parts.chart };
            return put_panel(buffer, below, &shell.theme, &none(self, shell));
        }
        chart::draw(self, shell, buffer, parts.chart);
        if let Some(area) = parts.feedback {
            chart::feedback(self, shell, buffer, area);
        }
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        let theme = &shell.theme;
        let mut line = Pieces::new().add(Tone::Dim, if cols >= 76 { " window " } else { " " });
        for stretch in Stretch::ALL {
            line = if stretch == self.stretch {
                line.add(Tone::Strong, format!("[{}] ", stretch.label()))
            } else {
                line.plain(format!("{} ", stretch.label()))
            };
        }
        line = match shell.project_name() {
            Some(name) => line.add(Tone::Dim, "  project ").plain(clean(name).into_owned()),
            None => line.add(Tone::Dim, "  all projects"),
        };
        let mut end = Pieces::new();
        if let Some(at) = self.at {
            let tone = if self.error.is_some() { Tone::Bad } else { Tone::Dim };
            let stale = if self.error.is_some() { "not renewed, " } else { "" };
            end = end.add(tone, format!("{stale}as of {}", clock(shell.zone, at, shell.now)));
        }
        let auto = if self.auto { "auto" } else { "not auto" };
        end = end.add(Tone::Dim, format!(" {} t {auto}", theme.glyphs.dot));
        line.with_end(end, cols, theme)
    }

    fn status(&self, shell: &Shell) -> String {
        let glyphs = &shell.theme.glyphs;
        if self.shown.is_none() {
            return if self.is_busy(shell) { format!("loading{}", glyphs.ellipsis) } else { String::new() };
        }
        chart::readout(self, shell).unwrap_or_default()
    }

    fn stale(&self) -> Option<Stale<'_>> {
        let cause = Cause::Failure(self.error.as_ref()?);
        Some(Stale { since: self.at, cause, next: self.next })
    }
}

fn traces(metrics: &Metrics) -> i64 {
    metrics.shown.as_ref().map_or(0, |shown| shown.metrics.trace_count)
}

fn table(metrics: &Metrics, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let theme = &shell.theme;
    let glyphs = &theme.glyphs;
    let head = format!("  {:<NAME_COLS$} {:>VALUE_COLS$}  {:<CHANGE_COLS$}", "METRIC", "NOW", "VS PREV");
    let trend = format!("{}   TREND", " ".repeat(glyphs.mark_width() - 1));
    put(buffer, area, 0, &Pieces::new().add(Tone::Dim, head + &trend).line(theme, false));
    let rows = usize::from(area.height.saturating_sub(1));
    let mut lines: Vec<Pieces> =
        Metric::ALL.iter().map(|metric| row(metrics, shell, *metric, area.width)).collect();
    lines.push(retry_cap(metrics, shell));
    let top = first_visible(metrics.row, lines.len(), rows);
    for (at, line) in lines.into_iter().enumerate().skip(top).take(rows) {
        let selected = at == metrics.row;
        let cursor = if selected { glyphs.cursor } else { " " };
        let line = Pieces::new().plain(format!("{cursor} ")).join(line).cut(usize::from(area.width), theme);
        put(buffer, area, 1 + at - top, &line.line(theme, selected));
    }
}

fn row(metrics: &Metrics, shell: &Shell, metric: Metric, width: u16) -> Pieces {
    let glyphs = &shell.theme.glyphs;
    let now = metrics.shown.as_ref().and_then(|shown| shown.metrics.get(metric));
    let before = metrics.before.filter(|before| before.trace_count > 0);
    let changed = change(metric, now, before.and_then(|it| it.get(metric)), glyphs);
    let value = now.map_or_else(|| glyphs.none.to_owned(), |now| format::metric(metric, now));
    let (text, tone, mark) = match &changed {
        None => (glyphs.none, Tone::Dim, ""),
        Some(it) => match it.mark {
            Mark::Fine => (it.text.as_str(), Tone::Good, glyphs.ok),
            Mark::Worse => (it.text.as_str(), Tone::Warn, glyphs.worse),
            Mark::Bad => (it.text.as_str(), Tone::Bad, glyphs.bad),
        },
    };
    let used = 2 + NAME_COLS + 1 + VALUE_COLS + 2 + CHANGE_COLS + 1 + glyphs.mark_width() + 1;
    let trend = series(metric, metrics.points(), usize::from(width).saturating_sub(used + 1));
    Pieces::new()
        .plain(format!("{:<NAME_COLS$} ", metric.as_str()))
        .add(Tone::Strong, fit_right(&value, VALUE_COLS, glyphs))
        .add(
            if changed.is_some() { Tone::Plain } else { Tone::Dim },
            format!("  {}", fit(text, CHANGE_COLS, glyphs)),
        )
        .add(tone, format!(" {} ", fit(mark, glyphs.mark_width(), glyphs)))
        .add(Tone::Field, spark(&trend, glyphs))
}

/// Returns the line of the retry cap, a metric of one project without a series.
fn retry_cap(metrics: &Metrics, shell: &Shell) -> Pieces {
    let glyphs = &shell.theme.glyphs;
    let value = metrics.retry_cap.map_or_else(|| glyphs.none.to_owned(), format::thousands);
    let note = match (&shell.project, metrics.retry_cap) {
        (None, _) => format!("per project; {} chooses", shell.key(METRICS_SCOPE, Action::Projects)),
        (Some(_), None) => String::new(),
        (Some(_), Some(_)) => "one number, no series".to_owned(),
    };
    Pieces::new()
        .plain(format!("{:<NAME_COLS$} ", "retry_cap_hit 7d"))
        .add(Tone::Strong, fit_right(&value, VALUE_COLS, glyphs))
        .add(Tone::Dim, format!("  {note}"))
}

/// Returns the rule above the chart: the metric, the length of a column, and further words.
fn rule(metrics: &Metrics, shell: &Shell, words: &str) -> Pieces {
    let theme = &shell.theme;
    let glyphs = &theme.glyphs;
    let metric = metrics.metric();
    let cols = usize::from(shell.size.0);
    let per = per_column(metrics.points().len(), plot_cols(shell.size));
    let how = how_combined(metric).filter(|_| per > 1).map(|how| format!(", the {how}")).unwrap_or_default();
    let column = column(metrics.stretch, per);
    let dot = glyphs.dot;
    let left = Pieces::new()
        .add(Tone::Dim, format!("{} ", glyphs.rule.repeat(2)))
        .add(Tone::Strong, metric.as_str())
        .add(Tone::Dim, format!(" {dot} {}, 1 column = {column}{how}{words} ", metrics.stretch.label()));
    let keys = format!(" v numbers {}", glyphs.rule.repeat(2));
    let free = cols.saturating_sub(left.width());
    if free < keys.len() + 2 {
        return left.add(Tone::Dim, glyphs.rule.repeat(free)).cut(cols, theme);
    }
    let gap = free - present::text::width(&keys);
    left.add(Tone::Dim, glyphs.rule.repeat(gap)).add(Tone::Dim, keys)
}

/// Returns the time of one column.
fn column(stretch: Stretch, per: usize) -> String {
    let unit = match stretch.interval() {
        api::metrics::Interval::Minute => "min",
        api::metrics::Interval::Hour => "h",
        api::metrics::Interval::Day => "d",
    };
    format!("{per} {unit}")
}

fn instead(metrics: &Metrics, shell: &Shell) -> Vec<(Tone, String)> {
    match &metrics.error {
        Some(error) => notice::failure(shell, error, metrics.next),
        None => vec![(Tone::Dim, format!("loading{}", shell.theme.glyphs.ellipsis))],
    }
}

/// Returns the panel of a window without traces.
fn none(metrics: &Metrics, shell: &Shell) -> Vec<(Tone, String)> {
    let place = shell.project_name().map(|name| format!(" of {name}")).unwrap_or_default();
    let label = metrics.stretch.label();
    let mut lines = vec![(Tone::Strong, format!("No traces{place} began in the last {label}."))];
    let never = shell.no_traces;
    if never {
        lines.push((Tone::Plain, "There are none at all yet; send one:".to_owned()));
        lines.extend(notice::first_steps(shell).into_iter().map(|line| (Tone::Field, line)));
    } else if metrics.stretch != Stretch::Month {
        lines.push((Tone::Plain, "]  look further back".to_owned()));
    }
    lines
}
