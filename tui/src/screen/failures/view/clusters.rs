//! Draws the clusters, and the selected one with its samples.

use api::{
    FailureType,
    failure::{ClusterStatus, Failure, FailureCluster},
};
use ratatui::{buffer::Buffer, layout::Rect};

use super::{project_name, table};
use crate::{
    keymap::Action,
    screen::failures::keys::{CLUSTERS_SCOPE, RESOLVE_CLUSTER},
    screen::failures::layout::FailuresLayout,
    screen::failures::state::Failures,
    shell::{Shell, notice},
    theme::{Glyphs, Theme, Tone},
    widgets::table::{Pieces, packed, put_pane, put_panel, rule},
};
use present::{
    chart::spark,
    format::{CLOCK_DATED, clock_minute, count, moment, same_day, short_id, thousands},
    text::{clean, fit, fit_right, wrap},
};

/// Number of hours that the trend covers.
const TREND_HOURS: usize = 12;
/// Width in columns of a count.
const COUNT_COLS: usize = 6;
/// Width in columns of a time such as `14:02`.
const MINUTE_COLS: usize = 5;

/// Widths of the columns; 0 leaves a column out.
struct ClusterColumns {
    mark: usize,
    kind: usize,
    span_name: usize,
    last: usize,
    trend: usize,
    title: usize,
}

impl ClusterColumns {
    fn of(cols: usize, dated: bool, theme: &Theme) -> Self {
        let mark = theme.glyphs.mark_width();
        let last = if dated { CLOCK_DATED } else { MINUTE_COLS };
        let kind = if cols >= 100 { 21 } else { 16 };
        let trend = if cols >= 76 { TREND_HOURS } else { 0 };
        let used = 2 + mark + 1 + kind + 1 + COUNT_COLS + 1 + last + if trend > 0 { trend + 1 } else { 0 };
        let free = cols.saturating_sub(used + 1);
        let (span_name, title) =
            if cols >= 110 { (free * 2 / 5, free - free * 2 / 5 - 1) } else { (free, 0) };
        Self { mark, kind, span_name: span_name.max(4), last, trend, title }
    }

    fn line(&self, cells: [&str; 6], tone: Tone, glyphs: &Glyphs) -> Pieces {
        let [mark, kind, span_name, number, last, trend] = cells;
        let line = Pieces::new()
            .add(tone, format!("{} ", fit(mark, self.mark, glyphs)))
            .plain(format!("{} ", fit(kind, self.kind, glyphs)))
            .plain(format!("{} ", fit(span_name, self.span_name, glyphs)))
            .add(Tone::Strong, format!("{} ", fit_right(number, COUNT_COLS, glyphs)))
            .add(Tone::Dim, fit(last, self.last, glyphs));
        if self.trend > 0 {
            line.add(Tone::Field, format!(" {}", fit(trend, self.trend, glyphs)))
        } else {
            line
        }
    }

    fn with_title(&self, line: Pieces, title: &str, glyphs: &Glyphs) -> Pieces {
        if self.title > 0 { line.plain(format!(" {}", fit(title, self.title, glyphs))) } else { line }
    }
}

/// Draws the clusters and the pane of the selected one, or why there are none.
pub fn draw(failures: &Failures, shell: &Shell, buffer: &mut Buffer, parts: &FailuresLayout) {
    if !shell.has_session() {
        let area = Rect { height: parts.list.height + parts.pane.height, ..parts.list };
        let sentence = "Failures need a session token; there is only an API key.";
        return put_panel(buffer, area, &shell.theme, &notice::session_needed(shell, sentence));
    }
    let (theme, glyphs) = (&shell.theme, &shell.theme.glyphs);
    let rows = &failures.clusters;
    let dated = rows.items.iter().any(|it| !same_day(shell.zone, it.last_seen, shell.now));
    let columns = ClusterColumns::of(usize::from(parts.list.width), dated, theme);
    let head = columns.line(["", "TYPE", "WHERE", "N", "LAST", "12H"], Tone::Dim, glyphs);
    let head = columns.with_title(head, "TITLE", glyphs);
    let is_drawn = table(shell, buffer, parts.list, rows, empty(failures, shell), head, |it| {
        let (mark, tone) = mark_and_tone(it, glyphs);
        let last = clock_minute(shell.zone, it.last_seen, shell.now);
        let cells =
            [mark, it.failure_type.as_str(), &it.span_name, &count(it.count), &last, &trend(it, glyphs)];
        let line = columns.with_title(columns.line(cells, tone, glyphs), &it.title, glyphs);
        if it.status == ClusterStatus::Open { line } else { line.all(Tone::Dim) }
    });
    if let Some(it) = rows.current().filter(|_| is_drawn && parts.pane.height > 0) {
        pane(failures, shell, it, buffer, parts.pane);
    }
}

/// Returns the mark of a cluster: its status, or that it is a remediation regression.
fn mark_and_tone(it: &FailureCluster, glyphs: &Glyphs) -> (&'static str, Tone) {
    match (it.status, it.failure_type) {
        (ClusterStatus::Open, FailureType::RemediationRegression) => (glyphs.fall, Tone::Bad),
        (ClusterStatus::Open, _) => (glyphs.failed, Tone::Bad),
        (ClusterStatus::Resolved, _) => (glyphs.ok, Tone::Dim),
        (ClusterStatus::Muted, _) => (glyphs.paused, Tone::Dim),
    }
}

/// Returns the sparkline of the last twelve hours.
fn trend(it: &FailureCluster, glyphs: &Glyphs) -> String {
    let skipped = it.trend.len().saturating_sub(TREND_HOURS);
    let values: Vec<Option<f64>> = it.trend[skipped..].iter().map(|hour| Some(hour.count as f64)).collect();
    let missing = TREND_HOURS - values.len();
    " ".repeat(missing) + &spark(&values, glyphs)
}

fn pane(failures: &Failures, shell: &Shell, it: &FailureCluster, buffer: &mut Buffer, area: Rect) {
    let (theme, glyphs) = (&shell.theme, &shell.theme.glyphs);
    let (cols, dot) = (usize::from(area.width), shell.theme.glyphs.dot);
    let key = |action| shell.key(CLUSTERS_SCOPE, action);
    let note = match cols {
        76.. => format!(
            "{} {} {dot} {} trace",
            key(Action::Open),
            counted(it.count, "failure"),
            key(Action::OpenTrace)
        ),
        _ => String::new(),
    };
    let title = format!("{} {dot} {}", it.failure_type, it.span_name);
    let is_wide = area.height > 8;
    let mut lines = Vec::new();
    let text = if is_wide { &it.signature } else { &it.title };
    let wrapped = wrap(&clean(text.lines().next().unwrap_or_default()), cols.saturating_sub(4));
    lines.extend(
        wrapped
            .into_iter()
            .take(if is_wide { 3 } else { 1 })
            .map(|part| Pieces::new().plain("  ").add(Tone::Text, part)),
    );
    let at = |time| moment(shell.zone, time, shell.now);
    let mut status = it.status.to_string();
    if let Some(resolved) = it.resolved_at {
        status.push_str(&format!(" {}", clock_minute(shell.zone, resolved, shell.now)));
    }
    let mut fields = vec![
        ("status", status),
        ("failures", format!("{} in {}", thousands(it.count), counted(it.trace_count, "trace"))),
        ("first", at(it.first_seen)),
        ("last", at(it.last_seen)),
        ("models", if it.models.is_empty() { glyphs.none.to_owned() } else { it.models.join(", ") }),
    ];
    let project = project_name(shell, it.project_id);
    if !project.is_empty() {
        fields.insert(1, ("project", project));
    }
    lines.extend(packed(&fields, cols));
    lines.extend(samples(failures, shell, cols));
    put_pane(buffer, area, &shell.theme, rule(&title, &note, cols, theme), lines);
}

/// Returns a line for each sample, newest first.
fn samples(failures: &Failures, shell: &Shell, cols: usize) -> Vec<Pieces> {
    let note = |tone, text: String| vec![Pieces::new().plain("  ").add(tone, clean(&text).into_owned())];
    match failures.current_samples().map(|known| &known.result) {
        None => note(Tone::Dim, format!("loading samples{}", shell.theme.glyphs.ellipsis)),
        Some(Err(error)) => note(Tone::Bad, format!("samples: {}", notice::describe(error))),
        Some(Ok(samples)) if samples.is_empty() => note(Tone::Dim, "no trace of it is kept".to_owned()),
        Some(Ok(samples)) => {
            let mut samples: Vec<&Failure> = samples.iter().collect();
            samples.sort_by_key(|it| std::cmp::Reverse(it.created_at));
            samples.into_iter().map(|it| sample(shell, it, cols)).collect()
        }
    }
}

fn sample(shell: &Shell, it: &Failure, cols: usize) -> Pieces {
    let glyphs = &shell.theme.glyphs;
    let name = if cols >= 100 { format!("{} ", fit(&it.span_name, 20, glyphs)) } else { String::new() };
    let line = Pieces::new()
        .plain("  ")
        .add(
            Tone::Dim,
            format!("{} ", fit(&clock_minute(shell.zone, it.created_at, shell.now), CLOCK_DATED, glyphs)),
        )
        .add(Tone::Field, format!("{} ", short_id(it.trace_id)))
        .plain(name);
    let room = cols.saturating_sub(line.width());
    line.plain(present::text::cut(&it.message, room, glyphs))
}

fn counted(n: i64, word: &str) -> String {
    format!("{} {word}{}", thousands(n), if n == 1 { "" } else { "s" })
}

fn empty(failures: &Failures, shell: &Shell) -> Vec<(Tone, String)> {
    let key = |action| shell.key(CLUSTERS_SCOPE, action);
    if !failures.text.is_empty() {
        return vec![
            (Tone::Strong, format!("Nothing matches  {}", failures.text)),
            (Tone::Plain, String::new()),
            (Tone::Plain, format!("{}  drop the time bounds", key(Action::WidenTime))),
            (Tone::Plain, format!("{}  clear the filter", key(Action::Back))),
            (Tone::Plain, format!("{}  change it", key(Action::EditFilter))),
        ];
    }
    let place = shell.project_name().map(|name| format!(" in {name}")).unwrap_or_default();
    let mut lines = vec![
        (Tone::Strong, format!("No failures{place} yet.")),
        (Tone::Plain, "Spans with an error appear here, grouped by type and message.".to_owned()),
    ];
    if !shell.target.read_only {
        let resolve = key(RESOLVE_CLUSTER);
        lines.push((Tone::Plain, format!("{resolve} resolves a group once its cause is fixed.")));
    }
    lines
}
