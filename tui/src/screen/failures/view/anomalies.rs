//! Draws anomalies: the newest ones below the clusters, and the tab with all of them.

use api::anomaly::Anomaly;
use ratatui::{buffer::Buffer, layout::Rect};

use super::{panel, project_name, table};
use crate::{
    anomalies::{direction_glyph, expected_range, metric_value, severity_mark, status_text},
    keymap::Action,
    screen::failures::keys::{ANOMALIES_SCOPE, CLUSTERS_SCOPE, SHOW_ANOMALIES},
    screen::failures::layout::FailuresLayout,
    screen::failures::state::Failures,
    shell::Shell,
    theme::{Glyphs, Tone},
    widgets::table::{Pieces, packed, put, put_pane, rule},
};
use present::{
    format::{CLOCK_DATED, clock_minute, moment},
    text::{clean, fit, fit_right},
};

/// Width in columns of a metric's name.
const METRIC_COLS: usize = 20;
/// Width in columns of a value.
const VALUE_COLS: usize = 9;
/// Width in columns of an expected range.
const RANGE_COLS: usize = 20;
/// Width in columns of a project's name.
const PROJECT_COLS: usize = 20;

/// Draws the newest anomalies below the clusters.
pub fn newest(failures: &Failures, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let rows = &failures.anomalies;
    let cols = usize::from(area.width);
    let note = format!("{} all", shell.key(CLUSTERS_SCOPE, SHOW_ANOMALIES));
    let head = rule("anomalies, newest", &note, cols, &shell.theme);
    let empty = vec![(Tone::Dim, "none".to_owned())];
    if let Some(lines) = panel(shell, rows, empty) {
        let first = lines.into_iter().next();
        let line = first.map(|(tone, text)| Pieces::new().plain("  ").add(tone, clean(&text).into_owned()));
        return put_pane(buffer, area, &shell.theme, head, line.into_iter().collect());
    }
    put(buffer, area, 0, &head.line(&shell.theme, false));
    let room = usize::from(area.height.saturating_sub(1));
    let is_faded = rows.error.is_some() || shell.failure().is_some();
    for (at, it) in rows.items.iter().take(room).enumerate() {
        let line = cells(shell, it, cols);
        let line = if is_faded { line.all(Tone::Dim) } else { line };
        let line = Pieces::new().plain("  ").join(line).cut(cols, &shell.theme);
        put(buffer, area, 1 + at, &line.line(&shell.theme, false));
    }
}

/// Draws the tab of all anomalies.
pub fn draw(failures: &Failures, shell: &Shell, buffer: &mut Buffer, parts: &FailuresLayout) {
    let rows = &failures.anomalies;
    let cols = usize::from(parts.list.width);
    let place = shell.project_name().map(|name| format!(" in {name}")).unwrap_or_default();
    let empty = vec![
        (Tone::Strong, format!("No anomalies{place}.")),
        (
            Tone::Plain,
            "The server compares each metric with its usual values, after some days of traces.".to_owned(),
        ),
    ];
    let head =
        columns(["", "BEGAN", "METRIC", "", "VALUE", "EXPECTED", "PROJECT", "STATE"], Tone::Dim, cols, shell);
    let is_drawn = table(shell, buffer, parts.list, rows, empty, head, |it| cells(shell, it, cols));
    let Some(it) = rows.current().filter(|_| is_drawn && parts.pane.height > 0) else { return };
    let cols = usize::from(parts.pane.width);
    let open = shell.key(ANOMALIES_SCOPE, Action::Open);
    let title = format!("{} {}", it.metric, it.direction);
    let head = rule(&title, &format!("{open} traces"), cols, &shell.theme);
    put_pane(buffer, parts.pane, &shell.theme, head, facts(shell, it, cols));
}

fn cells(shell: &Shell, it: &Anomaly, cols: usize) -> Pieces {
    let glyphs = &shell.theme.glyphs;
    let (mark, tone) = severity_mark(it, glyphs);
    let began = clock_minute(shell.zone, it.window_start, shell.now);
    let value = metric_value(&it.metric, it.observed);
    let range = expected_range(it);
    let project = project_name(shell, it.project_id);
    let state = status_text(it, shell.now);
    let side = direction_glyph(it, glyphs);
    columns([mark, &began, &it.metric, side, &value, &range, &project, &state], tone, cols, shell)
}

fn columns(cells: [&str; 8], tone: Tone, cols: usize, shell: &Shell) -> Pieces {
    let glyphs: &Glyphs = &shell.theme.glyphs;
    let [mark, began, metric, side, value, range, project, state] = cells;
    let mut line = Pieces::new()
        .add(tone, format!("{} ", fit(mark, 2, glyphs)))
        .add(Tone::Dim, format!("{} ", fit(began, CLOCK_DATED, glyphs)))
        .plain(format!("{} ", fit(metric, if cols >= 76 { METRIC_COLS } else { 12 }, glyphs)))
        .add(tone, format!("{} {} ", fit(side, 1, glyphs), fit_right(value, VALUE_COLS, glyphs)));
    if cols >= 90 {
        line = line.add(Tone::Dim, format!("{} ", fit(range, RANGE_COLS, glyphs)));
    }
    if cols >= 110 && shell.project.is_none() {
        line = line.add(Tone::Dim, format!("{} ", fit(project, PROJECT_COLS, glyphs)));
    }
    let room = cols.saturating_sub(2 + line.width());
    line.plain(present::text::cut(state, room, glyphs))
}

fn facts(shell: &Shell, it: &Anomaly, cols: usize) -> Vec<Pieces> {
    let value = |value| metric_value(&it.metric, value);
    let at = |time| moment(shell.zone, time, shell.now);
    let mut fields = vec![
        ("status", status_text(it, shell.now)),
        ("severity", it.severity.to_string()),
        ("value", value(it.observed)),
        ("expected", format!("{}, {}", value(it.expected), expected_range(it))),
        ("score", format!("{:.1}", it.score)),
        ("began", at(it.window_start)),
        ("last interval ended", at(it.window_end)),
        ("detected", at(it.created_at)),
        ("id", it.id.to_string()),
    ];
    let project = project_name(shell, it.project_id);
    if !project.is_empty() {
        fields.insert(1, ("project", project));
    }
    packed(&fields, cols)
}
