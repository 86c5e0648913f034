//! An opened trace: the waterfall above, the panes below.

use api::TraceState;
use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    net::FailureKind,
    screen::traces::detail::content::DetailTab,
    screen::traces::detail::layout::{GUTTER_COLS, parts},
    screen::traces::detail::tree::TreeRow,
    screen::traces::detail::{Detail, Focus, Pane},
    screen::traces::state::Traces,
    shell::notice::{describe, failure},
    shell::{ScreenReplies as _, Shell},
    theme::{Theme, Tone},
    widgets::table::{Pieces, first_visible, put, put_panel},
    widgets::waterfall::Scale,
};
use present::{
    format::{count, latency, money, short_id, thousands},
    text::{cut, fit, fit_right, width},
};

/// Draws the opened trace.
pub fn draw(shell: &Shell, detail: &Detail, buffer: &mut Buffer, _area: Rect) {
    let areas = parts(shell.size, detail.shown());
    if areas.tree.height > 0 {
        tree(shell, detail, buffer, areas.tree);
    }
    let theme = &shell.theme;
    put(
        buffer,
        areas.rule,
        0,
        &rule(detail, areas.right.is_some(), areas.rule.width, theme).line(theme, false),
    );
    let query = detail.find.as_deref();
    pane(theme, &detail.left, detail.focus == Focus::Left, query, buffer, areas.left);
    if let Some(area) = areas.right {
        for row in 0..usize::from(area.height) {
            let edge = Pieces::new().add(Tone::Dim, theme.glyphs.vertical).line(theme, false);
            put(buffer, area, row, &edge);
        }
        let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area };
        pane(theme, &detail.right, detail.focus == Focus::Right, query, buffer, inner);
    }
}

/// Widths of the tree's columns; 0 leaves a column out.
struct SpanColumns {
    name: usize,
    kind: usize,
    latency: usize,
    tokens: usize,
    cost: usize,
    bars: usize,
}

impl SpanColumns {
    fn of(cols: usize) -> Self {
        let wide = cols >= 110;
        let (tokens, cost) = if wide { (7, 8) } else { (0, 0) };
        let kind = if cols >= 60 { 4 } else { 0 };
        let name = if wide { 35 } else { (cols * 32 / 100).max(12) };
        let fixed: usize =
            [kind, 7, tokens, cost].iter().filter(|width| **width > 0).map(|width| width + 1).sum();
        let left = cols.saturating_sub(2 + name + fixed + 2);
        // Bars of a few cells show nothing, so the name gets their columns.
        let (name, bars) = if left < 8 { (name + left, 0) } else { (name, left) };
        Self { name, kind, latency: 7, tokens, cost, bars }
    }
}

fn tree(shell: &Shell, detail: &Detail, buffer: &mut Buffer, area: Rect) {
    let theme = &shell.theme;
    let glyphs = &theme.glyphs;
    let columns = SpanColumns::of(usize::from(area.width));
    let scale = Scale::of(&detail.spans);
    let ruler = scale.map(|scale| scale.ruler(columns.bars)).unwrap_or_default();
    let head = |text: &str, width: usize, right: bool| match (width, right) {
        (0, _) => String::new(),
        (_, true) => format!(" {text:>width$}"),
        (_, false) => format!(" {text:<width$}"),
    };
    let heads = format!(
        "  {:<name$}{}{}{}{}  {ruler}",
        "SPAN",
        head("KIND", columns.kind, false),
        head("LATENCY", columns.latency, true),
        head("TOKENS", columns.tokens, true),
        head("COST", columns.cost, true),
        name = columns.name,
    );
    put(buffer, area, 0, &Pieces::new().add(Tone::Dim, heads).line(theme, false));
    let rows = usize::from(area.height.saturating_sub(1));
    if detail.tree.rows.is_empty() {
        let inner = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        let lines = match (&detail.error, detail.loaded) {
            (Some(error), _) if error.kind() == FailureKind::NotFound => vec![
                (Tone::Bad, describe(error)),
                (Tone::Plain, "The trace was deleted, or belongs to another tenant.".to_owned()),
            ],
            (Some(error), _) => failure(shell, error, detail.next),
            (None, true) => vec![(Tone::Dim, "no spans".to_owned())],
            (None, false) => vec![(Tone::Dim, format!("loading{}", glyphs.ellipsis))],
        };
        return put_panel(buffer, inner, theme, &lines);
    }
    let top = first_visible(detail.selected, detail.tree.rows.len(), rows);
    for (at, row) in detail.tree.rows.iter().enumerate().skip(top).take(rows) {
        let selected = at == detail.selected;
        let line = span_line(detail, *row, selected, &columns, scale, theme);
        put(buffer, area, 1 + at - top, &line.line(theme, selected && detail.focus == Focus::Tree));
    }
}

fn span_line(
    detail: &Detail,
    row: TreeRow,
    selected: bool,
    columns: &SpanColumns,
    scale: Option<Scale>,
    theme: &Theme,
) -> Pieces {
    let glyphs = &theme.glyphs;
    let Some(span) = detail.spans.get(row.span) else { return Pieces::new() };
    let failed = span.error.is_some();
    let fold = match (row.parent, row.folded) {
        (false, _) => glyphs.leaf,
        (true, false) => glyphs.open,
        (true, true) => glyphs.closed,
    };
    // Deep trees keep half of the column for the name.
    let indent = " ".repeat((2 * row.depth).min(columns.name / 2));
    let mark = if failed { format!(" {}", glyphs.failed) } else { String::new() };
    let hidden = if row.folded && row.failed_below && !failed { " !" } else { "" };
    let remediation = detail.remediations.get(&span.id);
    let remediation = remediation.map(|it| format!(" ({})", it.label)).unwrap_or_default();
    let marks = width(&mark) + hidden.len() + remediation.len();
    let room = columns.name.saturating_sub(width(&indent) + 2 + marks);
    let label = cut(&span.name, room, glyphs);
    let name = fit(&format!("{indent}{fold} {label}{remediation}{mark}{hidden}"), columns.name, glyphs);
    let cursor = if selected { glyphs.cursor } else { " " };
    let tone = if failed { Tone::Bad } else { Tone::Plain };
    let kind = match span.kind.as_str() {
        "other" => glyphs.none,
        kind => kind,
    };
    let kind: String = if width(kind) > 4 {
        present::text::take(&present::text::clean(kind), 4).to_owned()
    } else {
        kind.to_owned()
    };
    let none = || glyphs.leaf.to_owned();
    let tokens = match (span.prompt_tokens, span.completion_tokens) {
        (None, None) => none(),
        (input, output) => count(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
    };
    let took = span.latency_ms.map_or_else(none, latency);
    let cost = span.cost.map_or_else(none, money);
    let mut line = Pieces::new().plain(cursor).plain(" ").add(tone, name);
    if columns.kind > 0 {
        line = line.add(Tone::Dim, format!(" {}", fit(&kind, columns.kind, glyphs)));
    }
    for (width, text) in [(columns.latency, took), (columns.tokens, tokens), (columns.cost, cost)] {
        if width > 0 {
            line = line.plain(format!(" {}", fit_right(&text, width, glyphs)));
        }
    }
    if let Some(scale) = scale.filter(|_| columns.bars > 0) {
        let (first, cells) = scale.bar(span, columns.bars);
        let tone = if failed { Tone::Bad } else { Tone::Field };
        line = line.plain("  ").plain(" ".repeat(first)).add(tone, glyphs.bar.repeat(cells));
    }
    line
}

fn rule(detail: &Detail, split: bool, cols: u16, theme: &Theme) -> Pieces {
    let cols = usize::from(cols);
    let glyphs = &theme.glyphs;
    let name = detail.subject().map_or("", |subject| subject.name());
    let name = cut(name, cols / 3, glyphs);
    let mut line =
        Pieces::new().add(Tone::Dim, glyphs.rule.repeat(2)).plain(format!(" {name} {} ", glyphs.dot));
    let titles: Vec<(bool, &str)> =
        if split || (detail.split && cols >= usize::from(crate::layout::SPLIT_COLS)) {
            let io = !matches!(detail.tab, DetailTab::Evals | DetailTab::Meta | DetailTab::Json);
            vec![
                (io, "I/O"),
                (detail.tab == DetailTab::Evals, "Evals"),
                (detail.tab == DetailTab::Meta, "Meta"),
                (detail.tab == DetailTab::Json, "JSON"),
            ]
        } else {
            DetailTab::ALL.iter().map(|tab| (*tab == detail.tab, tab.title())).collect()
        };
    for (current, title) in titles {
        line = if current {
            line.add(Tone::Strong, format!("[{title}] "))
        } else {
            line.plain(format!("{title} "))
        };
    }
    let hint = if cols >= 76 {
        format!(" tab/[ ] {} z zoom {}", glyphs.dot, glyphs.rule.repeat(2))
    } else {
        String::new()
    };
    let gap = cols.saturating_sub(line.width() + width(&hint));
    line.add(Tone::Dim, glyphs.rule.repeat(gap)).add(Tone::Dim, hint).cut(cols, theme)
}

fn pane(theme: &Theme, pane: &Pane, focused: bool, find: Option<&str>, buffer: &mut Buffer, area: Rect) {
    let glyphs = &theme.glyphs;
    let rows = usize::from(area.height);
    let top = first_visible(pane.cursor, pane.lines.len(), rows);
    for (at, line) in pane.lines.iter().enumerate().skip(top).take(rows) {
        let fold = match &line.node {
            None => " ",
            Some((_, true)) => glyphs.closed,
            Some((_, false)) => glyphs.open,
        };
        let fold = if line.continued { glyphs.continued } else { fold };
        let number = format!("{:>3} ", (at + 1) % 1_000);
        let mut shown = Pieces::new().add(Tone::Dim, format!("{number}{fold} "));
        let hit = find.is_some_and(|words| line.plain().to_lowercase().contains(words));
        for piece in &line.pieces {
            shown = shown.add(if hit { Tone::Hit } else { piece.tone }, piece.text.clone());
        }
        debug_assert!(usize::from(GUTTER_COLS) == number.len() + 2, "the gutter is what layout says");
        put(
            buffer,
            area,
            at - top,
            &shown.cut(usize::from(area.width), theme).line(theme, focused && at == pane.cursor),
        );
    }
}

/// Returns the breadcrumb: the trace, its status, model and latency.
pub fn breadcrumb(shell: &Shell, detail: &Detail) -> Pieces {
    let theme = &shell.theme;
    let glyphs = &theme.glyphs;
    let line = Pieces::new().add(Tone::Dim, format!(" {} Traces / ", glyphs.back)).plain(short_id(detail.id));
    let Some(trace) = &detail.trace else { return line };
    let name = cut(trace.name.as_deref().unwrap_or(glyphs.none), 40, glyphs);
    let (tone, mark) = match &trace.error {
        Some(_) => {
            (Tone::Bad, if glyphs.ascii { "ERR".to_owned() } else { format!("{} error", glyphs.failed) })
        }
        None => (Tone::Good, glyphs.ok.to_owned()),
    };
    let mut line = line.add(Tone::Strong, format!(" {name}  ")).add(tone, mark);
    if let Some(model) = &trace.model {
        line = line.plain(format!("  {}", cut(model, 24, glyphs)));
    }
    if let Some(ms) = trace.latency_ms {
        line = line.plain(format!("  {}", latency(ms)));
    }
    line
}

/// Returns the mark of a marked trace, for the end of the breadcrumb.
pub fn mark(shell: &Shell, detail: &Detail) -> Pieces {
    let marked = shell.bookmarks.has(&shell.target.url, detail.id);
    if marked {
        Pieces::new().add(Tone::Warn, format!("marked {}", shell.theme.glyphs.marked))
    } else {
        Pieces::new()
    }
}

/// Returns the status line of an opened trace.
pub fn status(traces: &Traces, shell: &Shell, detail: &Detail) -> String {
    let glyphs = &shell.theme.glyphs;
    let dot = glyphs.dot;
    if let Some((at, hits)) = detail.hits() {
        let (open, close) = glyphs.quotes;
        let words = detail.find.as_deref().unwrap_or_default();
        return format!("find {open}{words}{close} {at} of {hits} {dot} n next {dot} N previous");
    }
    let mut parts = Vec::new();
    let position = traces.list.position(detail.id);
    if let Some(at) = position {
        parts.push(format!("trace {} of {} loaded", thousands(at + 1), thousands(traces.list.len())));
    }
    if detail.loaded {
        let all = detail.trace.as_ref().map_or(0, |trace| trace.span_count);
        let loaded = i64::try_from(detail.spans.len()).unwrap_or(i64::MAX);
        let spans = if detail.next_cursor.is_some() && all > loaded {
            format!("{} of {} spans, loading", thousands(loaded), thousands(all))
        } else {
            format!("{} spans", thousands(loaded))
        };
        parts.push(format!("{spans}, {} failed", detail.failures()));
    } else if traces.is_busy(shell) || shell.is_busy() {
        parts.push(format!("loading{}", glyphs.ellipsis));
    }
    if let Some(trace) = detail.trace.as_ref().filter(|trace| trace.state != TraceState::Complete) {
        parts.push(trace.state.to_string());
    }
    if let Some(cost) = detail.trace.as_ref().and_then(|trace| trace.cost) {
        parts.push(format!("cost {}", money(cost)));
    }
    // Last, because the end of the line is cut first.
    if position.is_some() {
        parts.push("J/K other traces".to_owned());
    }
    parts.join(&format!(" {dot} "))
}
