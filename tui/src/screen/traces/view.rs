//! The live list of traces.

use api::{TraceState, trace::Trace};
use ratatui::{buffer::Buffer, layout::Rect};

use crate::screen::traces::keys::LIST_SCOPE;
use crate::{
    keymap::Action,
    layout::frame,
    screen::traces::{
        detail, layout,
        state::{Sort, Traces},
    },
    shell::{ScreenReplies as _, ScreenView, Shell, freshness, notice},
    theme::{Glyphs, Theme, Tone},
    widgets::table::{Pieces, first_visible, put, put_panel},
};
use present::{
    format::{CLOCK_DATED, CLOCK_TODAY, clock, count, latency, money, same_day, short_id, thousands},
    text::{clean, cut, fit, fit_right, shorten, width, wrap},
};

/// Width in columns of the latency bar at the right edge, and the number of milliseconds that fills it.
const BAR_COLS: usize = 10;
const BAR_FULL_MS: i64 = 8_000;
/// Width in columns of the tags' own column,.
const TAGS_COLUMNS: usize = 20;
/// Columns that a long name leaves to the tags in a shared column.
const SHARED_TAGS_COLUMNS: usize = 10;
/// Limits the lines that an error takes from the rows.
const REASON_LINES: usize = 6;

/// Widths of the columns; 0 leaves a column out.
struct TraceColumns {
    time: usize,
    mark: usize,
    name: usize,
    model: usize,
    latency: usize,
    tokens: usize,
    cost: usize,
    tags: usize,
    id: usize,
    bar: usize,
}

impl TraceColumns {
    /// Returns the columns for a width: where room is short, the least important ones are left out first.
    fn of(cols: usize, dated: bool, theme: &Theme) -> Self {
        let wide = cols >= 110;
        let mut it = Self {
            time: if dated { CLOCK_DATED } else { CLOCK_TODAY },
            mark: theme.glyphs.mark_width(),
            name: 0,
            model: if wide { 15 } else { 13 },
            latency: 7,
            tokens: if wide { 7 } else { 6 },
            cost: if wide { 8 } else { 7 },
            tags: if wide { TAGS_COLUMNS + cols.saturating_sub(120) / 3 } else { 0 },
            id: if wide { 8 } else { 0 },
            bar: if wide { BAR_COLS } else { 0 },
        };
        if cols < 76 {
            it.cost = 0;
        }
        if cols < 68 {
            it.tokens = 0;
        }
        if cols < 56 {
            it.model = 0;
        }
        let others = [it.model, it.latency, it.tokens, it.cost, it.tags, it.id, it.bar];
        let used: usize = others.iter().filter(|width| **width > 0).map(|width| width + 1).sum();
        it.name = cols.saturating_sub(2 + it.time + 1 + it.mark + 1 + used).max(4);
        it
    }

    fn each(&self, cells: &TraceCells<'_>, theme: &Theme) -> Pieces {
        let glyphs = &theme.glyphs;
        let mut line = Pieces::new()
            .add(cells.side, fit(&cells.time, self.time, glyphs))
            .plain(" ")
            .add(cells.mark_tone, fit(cells.mark, self.mark, glyphs))
            .plain(" ")
            .join(self.name(cells, theme));
        let tags = tags_cell(cells.tags, self.tags, glyphs);
        let rest: [(usize, bool, &str, Tone); 7] = [
            (self.model, false, cells.model, cells.side),
            (self.latency, true, &cells.latency, cells.tone),
            (self.tokens, true, &cells.tokens, cells.main),
            (self.cost, true, &cells.cost, cells.main),
            (self.tags, false, &tags, cells.side),
            (self.id, false, &cells.id, cells.side),
            (self.bar, false, &cells.bar, cells.mark_tone),
        ];
        for (width, right, text, tone) in rest {
            if width > 0 {
                let text = if right { fit_right(text, width, glyphs) } else { fit(text, width, glyphs) };
                line = line.plain(" ").add(tone, text);
            }
        }
        line
    }

    /// Returns the name, with the tags at the right edge of its column if they have no column of their own.
    fn name(&self, cells: &TraceCells<'_>, theme: &Theme) -> Pieces {
        let glyphs = &theme.glyphs;
        if self.tags > 0 || cells.tags.is_empty() {
            return Pieces::new().add(cells.title, fit(cells.name, self.name, glyphs));
        }
        let wanted = width(&clean(&cells.tags.join(" ")));
        let name = width(&cut(cells.name, self.name, glyphs));
        // The name is cut only as far as the tags need it.
        let kept = wanted.min(SHARED_TAGS_COLUMNS).min(self.name / 3);
        let room = self.name.saturating_sub(name + 1).max(kept);
        let tags = tags_cell(cells.tags, room.min(wanted), glyphs);
        let name = self.name.saturating_sub(width(&tags) + 1);
        Pieces::new().add(cells.title, fit(cells.name, name, glyphs)).plain(" ").add(cells.side, tags)
    }
}

impl ScreenView for Traces {
    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        match &self.detail {
            Some(open) => detail::view::draw(shell, open, buffer, area),
            None => draw_list(self, shell, buffer, area),
        }
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        match &self.detail {
            Some(open) => detail::view::breadcrumb(shell, open).with_end(
                detail::view::mark(shell, open),
                cols,
                &shell.theme,
            ),
            None => filter_line(self, shell, cols),
        }
    }

    fn status(&self, shell: &Shell) -> String {
        match &self.detail {
            Some(open) => detail::view::status(self, shell, open),
            None => list_status(self, shell),
        }
    }

    fn footer_word(&self, action: Action) -> Option<&'static str> {
        match action {
            Action::Pause if self.list.paused => Some("resume"),
            // The footer has no room for it.
            Action::Bookmark if self.detail.is_none() => Some(""),
            Action::Open if self.detail.is_some() => Some("pane"),
            _ => None,
        }
    }
}

/// Returns as many tags as fit, and the number of the others. A tag that does not fit as a whole is
/// shortened in the middle.
fn tags_cell(tags: &[String], cols: usize, glyphs: &Glyphs) -> String {
    let Some(first) = tags.first().filter(|_| cols > 0) else { return String::new() };
    let more = |left: usize| if left == 0 { String::new() } else { format!(" +{left}") };
    for shown in (1..=tags.len()).rev() {
        let text = clean(&tags[..shown].join(" ")).into_owned() + &more(tags.len() - shown);
        if width(&text) <= cols {
            return text;
        }
    }
    let more = more(tags.len() - 1);
    let room = cols.saturating_sub(width(&more));
    if room < 5 { shorten(first, cols, glyphs) } else { shorten(first, room, glyphs) + &more }
}

/// The texts of a row, before they are fitted.
struct TraceCells<'a> {
    time: String,
    mark: &'a str,
    name: &'a str,
    model: &'a str,
    latency: String,
    tokens: String,
    cost: String,
    tags: &'a [String],
    id: String,
    bar: String,
    /// Returns the tone of the mark and the bar.
    mark_tone: Tone,
    /// Returns the tone of the latency.
    tone: Tone,
    /// Tone of the name.
    title: Tone,
    /// Tone of the values of first importance.
    main: Tone,
    /// Tone of the values of second importance.
    side: Tone,
}

/// Draws the list, or the panel of a list without rows.
fn draw_list(traces: &Traces, shell: &Shell, buffer: &mut Buffer, _area: Rect) {
    let (area, preview_area) = layout::list(shell.size);
    if traces.list.is_empty() && (traces.list.loaded || freshness::stale(shell).is_some()) {
        return put_panel(buffer, frame(shell.size).body, &shell.theme, &instead(traces, shell));
    }
    let reason = reason(shell, usize::from(area.width));
    let rows = usize::from(area.height.saturating_sub(1)).saturating_sub(reason.len());
    let list = &traces.list;
    let top = first_visible(list.selected(), list.len(), rows);
    let visible = || (top..list.len().min(top + rows)).filter_map(|at| list.get(at).map(|row| (at, row)));
    let dated = visible().any(|(_, row)| !same_day(shell.zone, row.started_at, shell.now));
    let columns = TraceColumns::of(usize::from(area.width), dated, &shell.theme);
    put(buffer, area, 0, &head(traces, shell, &columns).line(&shell.theme, false));
    let faded = freshness::stale(shell).is_some();
    for (at, trace) in visible() {
        let selected = at == list.selected();
        let cursor = if selected { shell.theme.glyphs.cursor } else { " " };
        let mut cells = cells(traces, shell, trace, faded);
        if list.hit(at) {
            cells.title = Tone::Hit;
        }
        let body = columns.each(&cells, &shell.theme);
        let line = Pieces::new().plain(cursor).plain(" ").join(body);
        put(buffer, area, 1 + at - top, &line.line(&shell.theme, selected));
    }
    for (at, line) in reason.into_iter().enumerate() {
        put(buffer, area, 1 + rows + at, &line.line(&shell.theme, false));
    }
    if let (Some(area), Some(trace)) = (preview_area, list.current()) {
        preview(shell, trace, buffer, area);
    }
}

/// Explains below the rows why they are not current and what to do. Returns nothing while the trouble may
/// clear without help: the header suffices.
fn reason(shell: &Shell, cols: usize) -> Vec<Pieces> {
    let Some(error) = shell.failure().filter(|error| !error.is_transient()) else { return Vec::new() };
    let advice = notice::advice(shell, error).into_iter().map(|advice| (Tone::Plain, advice));
    let sentences = std::iter::once((Tone::Bad, notice::describe(error))).chain(advice);
    let wrapped = sentences.flat_map(|(tone, sentence)| {
        let lines = wrap(&clean(&sentence), cols.saturating_sub(4));
        lines.into_iter().map(move |line| Pieces::new().plain("  ").add(tone, line))
    });
    std::iter::once(Pieces::new()).chain(wrapped).take(REASON_LINES).collect()
}

fn head(traces: &Traces, shell: &Shell, columns: &TraceColumns) -> Pieces {
    let down = shell.theme.glyphs.down;
    let title = |text: &str, sort: Sort| {
        if traces.list.sort == sort && sort != Sort::Time { format!("{text}{down}") } else { text.to_owned() }
    };
    let shared = columns.tags == 0 && traces.list.is_empty();
    let tags = [if shared { "" } else { "TAGS" }.to_owned()];
    let cells = TraceCells {
        time: "TIME".to_owned(),
        mark: "",
        name: "NAME",
        model: "MODEL",
        latency: title(if traces.list.sort == Sort::Latency { "LATENC" } else { "LATENCY" }, Sort::Latency),
        tokens: title(if traces.list.sort == Sort::Tokens { "TOKEN" } else { "TOKENS" }, Sort::Tokens),
        cost: title("COST", Sort::Cost),
        tags: &tags,
        id: "ID".to_owned(),
        bar: String::new(),
        mark_tone: Tone::Dim,
        tone: Tone::Dim,
        title: Tone::Dim,
        main: Tone::Dim,
        side: Tone::Dim,
    };
    Pieces::new().plain("  ").join(columns.each(&cells, &shell.theme))
}

fn cells<'a>(traces: &'a Traces, shell: &'a Shell, trace: &'a Trace, faded: bool) -> TraceCells<'a> {
    let glyphs = &shell.theme.glyphs;
    // Healthy rows have no colour, so that the others stand out by colour, weight and mark.
    let (mark, mark_tone, tone, title) = if trace.error.is_some() {
        (glyphs.failed, Tone::Bad, Tone::Bad, Tone::Bad)
    } else if trace.state == TraceState::Interrupted {
        (glyphs.interrupted, Tone::Warn, Tone::Plain, Tone::Plain)
    } else if trace.state == TraceState::Running {
        (glyphs.unfinished, Tone::Plain, Tone::Plain, Tone::Plain)
    } else if traces.list.slow(trace) {
        (glyphs.slow, Tone::Warn, Tone::Warn, Tone::Plain)
    } else {
        (glyphs.healthy, Tone::Dim, Tone::Plain, Tone::Plain)
    };
    let toned = |tone| if faded { Tone::Dim } else { tone };
    let none = || glyphs.none.to_owned();
    let filled = trace.latency_ms.map_or(0, |ms| {
        let full = i64::try_from(BAR_COLS).unwrap_or(16);
        usize::try_from((ms.clamp(0, BAR_FULL_MS) * full / BAR_FULL_MS).max(1)).unwrap_or(1)
    });
    TraceCells {
        time: clock(shell.zone, trace.started_at, shell.now),
        mark,
        name: trace.name.as_deref().unwrap_or(glyphs.none),
        model: trace.model.as_deref().unwrap_or(glyphs.none),
        latency: trace.latency_ms.map_or_else(none, latency),
        tokens: count(trace.total_token_count),
        cost: trace.cost.map_or_else(none, money),
        tags: &trace.tags,
        id: short_id(trace.id),
        bar: glyphs.bar.repeat(filled),
        mark_tone: toned(mark_tone),
        tone: toned(tone),
        title: toned(title),
        main: toned(Tone::Plain),
        side: Tone::Dim,
    }
}

fn preview(shell: &Shell, trace: &Trace, buffer: &mut Buffer, area: Rect) {
    let theme = &shell.theme;
    let cols = usize::from(area.width);
    let rule = theme.glyphs.rule;
    let name = fit(trace.name.as_deref().unwrap_or("trace"), 40.min(cols / 2), &theme.glyphs);
    let title = format!("{rule}{rule} preview {} {} ", short_id(trace.id), name.trim_end());
    let left = Pieces::new().add(Tone::Dim, title);
    let gap = cols.saturating_sub(left.width());
    put(buffer, area, 0, &left.add(Tone::Dim, rule.repeat(gap)).line(theme, false));
    let field = |line: Pieces, name: &str, value: Option<&str>| match value {
        Some(value) => line.add(Tone::Field, name.to_owned()).plain(format!(" {}   ", clean(value))),
        None => line,
    };
    let spans = trace.span_count.to_string();
    let facts = field(Pieces::new().plain("  "), "spans", Some(&spans));
    let facts = field(facts, "session", trace.session_id.as_deref());
    let facts = field(facts, "user", trace.user_id.as_deref());
    let facts = field(facts, "external_id", trace.external_id.as_deref());
    let tags = (!trace.tags.is_empty()).then(|| trace.tags.join(" "));
    put(buffer, area, 1, &field(facts, "tags", tags.as_deref()).cut(cols, theme).line(theme, false));
    let text = |name: &str, tone: Tone, value: Option<&str>| {
        let value = fit(value.unwrap_or("(empty)"), cols.saturating_sub(11), &theme.glyphs);
        Pieces::new().plain("  ").add(Tone::Field, format!("{name:<8} ")).add(tone, value).line(theme, false)
    };
    put(buffer, area, 2, &text("input", Tone::Plain, trace.input.as_deref()));
    match trace.error.as_deref() {
        Some(error) => put(buffer, area, 3, &text("error", Tone::Bad, Some(error))),
        None => put(buffer, area, 3, &text("output", Tone::Plain, trace.output.as_deref())),
    }
}

/// Returns the status line of the list.
fn list_status(traces: &Traces, shell: &Shell) -> String {
    let list = &traces.list;
    let glyphs = &shell.theme.glyphs;
    let dot = glyphs.dot;
    let key = |action| shell.keymap.key_of(LIST_SCOPE, action).unwrap_or(glyphs.none);
    let follow = key(Action::Follow);
    let new = format!("{} new {dot} {follow} to follow", thousands(list.waiting()));
    if let Some(hits) = list.hits() {
        let found = notice::found(shell, LIST_SCOPE, list.find().unwrap_or_default(), hits);
        return if list.waiting() > 0 { format!("{found} {dot} {new}") } else { found };
    }
    if !list.loaded {
        return if traces.is_busy(shell) || shell.is_busy() {
            "loading".to_owned() + glyphs.ellipsis
        } else {
            String::new()
        };
    }
    let live = if !freshness::is_live(shell) {
        format!("{} not live", glyphs.offline)
    } else if list.waiting() > 0 {
        format!("{} {new}", glyphs.paused)
    } else if list.paused {
        format!("{} paused {dot} {} or {follow} to follow", glyphs.paused, key(Action::Pause))
    } else if list.sort != Sort::Time {
        format!("sorted: {}", list.sort.title())
    } else if shell.is_archived() {
        format!("{} archived, no new traces", glyphs.archived)
    } else {
        format!("{} following newest", glyphs.following)
    };
    let more = if list.full {
        ", the most that is kept"
    } else if list.older.is_some() {
        ", more on server"
    } else {
        ""
    };
    let loaded = thousands(list.len());
    format!("{live} {dot} {loaded} loaded{more} {dot} errors {}", list.errors)
}

/// Returns the panel of a list without rows.
fn instead(traces: &Traces, shell: &Shell) -> Vec<(Tone, String)> {
    let outage = notice::outage_lines(shell);
    if !outage.is_empty() {
        return outage;
    }
    let key = |action| shell.key(LIST_SCOPE, action);
    if !traces.filter.text.is_empty() {
        return vec![
            (Tone::Strong, format!("Nothing matches  {}", traces.filter.text)),
            (Tone::Plain, String::new()),
            (Tone::Plain, format!("{}  drop the time bounds", key(Action::WidenTime))),
            (Tone::Plain, format!("{}  clear the filter", key(Action::Back))),
            (Tone::Plain, format!("{}  change it", key(Action::EditFilter))),
        ];
    }
    if shell.is_archived() { archived(shell) } else { empty(shell) }
}

fn archived(shell: &Shell) -> Vec<(Tone, String)> {
    let name = shell.project_name().unwrap_or_default();
    vec![
        (Tone::Strong, format!("No traces in {name}, and none will come: the project is archived.")),
        (Tone::Plain, String::new()),
        (Tone::Plain, "Ingest into it returns 403. An owner can restore it:".to_owned()),
        (Tone::Field, format!("loupe projects unarchive {name}")),
        (
            Tone::Plain,
            format!(
                "Screen 7 does the same; {} shows another project.",
                shell.key(LIST_SCOPE, Action::Projects)
            ),
        ),
    ]
}

fn empty(shell: &Shell) -> Vec<(Tone, String)> {
    let place = shell.project_name().map(|name| format!(" in {name}")).unwrap_or_default();
    let mut lines = vec![
        (Tone::Strong, format!("No traces{place} yet.")),
        (Tone::Plain, "The list is live: the first trace appears here. Send one:".to_owned()),
        (Tone::Plain, String::new()),
    ];
    lines.extend(notice::first_steps(shell).into_iter().map(|line| (Tone::Field, line)));
    let url = &shell.target.url;
    lines.extend([
        (Tone::Dim, format!("{} copies this.", shell.key(LIST_SCOPE, Action::CopyCurl))),
        (Tone::Plain, String::new()),
        (Tone::Plain, "From an OpenTelemetry SDK (OpenInference, OpenLLMetry, GenAI and others):".to_owned()),
        (Tone::Field, format!("export OTEL_EXPORTER_OTLP_ENDPOINT={url}")),
        (
            Tone::Field,
            format!(
                "export OTEL_EXPORTER_OTLP_HEADERS=\"Authorization=Bearer%20${}\"",
                shell.target.variable
            ),
        ),
        (Tone::Field, "export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf".to_owned()),
    ]);
    lines
}

/// Returns line 3: the filter, and whether the project is archived.
fn filter_line(traces: &Traces, shell: &Shell, cols: usize) -> Pieces {
    let text = &traces.filter.text;
    let filter = if text.is_empty() {
        Pieces::new().add(Tone::Dim, " / no filter")
    } else {
        Pieces::new().add(Tone::Dim, " / ").plain(clean(text).into_owned())
    };
    let end = match shell.project.as_ref().and_then(|project| project.archived_at) {
        Some(at) => {
            let day = shell.zone.of(at).format("%-d %b");
            Pieces::new().add(Tone::Warn, format!("archived {day}; data is kept, ingest returns 403"))
        }
        None if text.is_empty() => Pieces::new(),
        None => Pieces::new().add(Tone::Dim, "server filter"),
    };
    filter.with_end(end, cols, &shell.theme)
}
