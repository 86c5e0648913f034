//! The frame around every screen, from the header to the line of keys.

mod footer;

use ratatui::{Frame, layout::Rect, text::Line};

use crate::{
    format::{capital, clock_minute},
    freshness::{self, Cause, Stale},
    input::{Input, Purpose},
    layout,
    screens::{detail, dialog, evals, help, manage, metrics, palette, picker, placeholder, search, traces},
    state::{EVALS, Link, MANAGE, METRICS, Overlay, SEARCH, State},
    text::{clean, width, wrap},
    theme::Tone,
    widgets::table::{Pieces, put, put_over},
};

/// Draws everything.
pub fn draw(state: &State, frame: &mut Frame<'_>) {
    let size = state.size;
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let theme = &state.theme;
    if layout::too_small(size) {
        let text = format!(
            "terminal too small ({}x{}), needs {}x{}",
            size.0,
            size.1,
            layout::MIN_COLS,
            layout::MIN_ROWS
        );
        put(buffer, area, 0, &Pieces::new().plain(text).cut(usize::from(size.0), theme).line(theme, false));
        return;
    }
    let parts = layout::frame(size);
    let cols = usize::from(size.0);
    put(buffer, parts.header, 0, &header(state, cols));
    put(buffer, parts.tabs, 0, &tabs(state, cols).line(theme, false));
    put(buffer, parts.line, 0, &middle(state, cols).line(theme, false));
    match (&state.overlay, &state.detail, state.screen) {
        (Some(Overlay::Projects { .. } | Overlay::Contexts { .. } | Overlay::Bookmarks { .. }), ..) => {
            picker::draw(state, buffer, parts.body);
        }
        (Some(Overlay::Palette { .. }), ..) => palette::draw(state, buffer, parts.body),
        (Some(_), ..) => help::draw(state, buffer, parts.body),
        (None, Some(open), 1) => detail::draw(state, open, buffer, parts.body),
        (None, None, 1) => traces::draw(state, buffer, parts.body),
        (None, _, EVALS) => evals::draw(state, buffer, parts.body),
        (None, _, METRICS) => metrics::draw(state, buffer, parts.body),
        (None, _, SEARCH) => search::draw(state, buffer, parts.body),
        (None, _, MANAGE) => manage::draw(state, buffer, parts.body),
        _ => placeholder::draw(state, buffer, parts.body),
    }
    if let Some(input) = &state.input {
        for (row, line) in input_error(state, input, cols).into_iter().enumerate() {
            put_over(buffer, parts.body, row, &line.line(theme, false));
        }
    }
    put(buffer, parts.status, 0, &status(state, cols).line(theme, false));
    put(buffer, parts.keys, 0, &footer::keys(state, cols).line(theme, false));
    if let Some(open) = &state.dialog {
        // Where the body has too little room, the lines above it are covered, but never the keys.
        let above = if layout::single(size) {
            Rect { y: 0, height: parts.body.bottom(), ..parts.body }
        } else {
            parts.body
        };
        dialog::draw(state, open, buffer, above);
    } else if let Some((x, y)) = cursor(state, parts.line) {
        frame.set_cursor_position((x, y));
    }
}

/// Line 1: the reader's location, and whether the records are current. If they are not, the whole line is a
/// bar.
fn header(state: &State, cols: usize) -> Line<'static> {
    let theme = &state.theme;
    let mut line = Pieces::new().add(Tone::Strong, " loupe");
    if let Some(context) = &state.target.context {
        let (left, right) = theme.glyphs.badge;
        let tone = if state.target.protected { Tone::Protected } else { Tone::Badge };
        let label = if theme.glyphs.ascii {
            format!("{left}{}{right}", context.to_uppercase())
        } else {
            format!(" {} ", context.to_uppercase())
        };
        line = line.plain(" ").add(tone, clean(&label).into_owned());
    }
    if cols >= 110 {
        line = line.add(Tone::Dim, format!(" {}", clean(&state.target.url)));
    }
    let project = state.project_name().unwrap_or("all projects");
    let tenant = state.me.as_ref().map(|me| format!("{}/", me.tenant.name)).unwrap_or_default();
    line = line.plain(format!(" {}", clean(&format!("{tenant}{project}"))));
    if let Some(me) = &state.me {
        line = line
            .add(Tone::Dim, format!(" {}{}{}", capital(me.tenant.plan.as_str()), theme.glyphs.dot, me.role));
    }
    if state.failures_only() {
        line = line.plain(" ").add(Tone::Badge, " failures only ");
    }
    match freshness::stale(state) {
        Some(stale) => line.with_end(not_current(state, stale), cols, theme).bar(theme, Tone::Alarm),
        None => line.with_end(connection(state), cols, theme).line(theme, false),
    }
}

/// Returns the text of the bar: since when, why, and what happens next.
fn not_current(state: &State, stale: Stale<'_>) -> Pieces {
    let dot = state.theme.glyphs.dot;
    let since = match stale.since {
        Some(at) => format!("STALE since {}", clock_minute(state.zone, at, state.now)),
        None => "NO DATA".to_owned(),
    };
    let next = match stale.next {
        Some(at) if at > state.now => format!(" {dot} retry {}s", state.seconds_until(at)),
        _ if matches!(stale.cause, Cause::Silence(_)) => String::new(),
        _ => format!(" {dot} asking"),
    };
    Pieces::new().plain(format!("{since} {dot} {}{next} ", stale.cause.label(state.now)))
}

/// Describes how new traces arrive, and what is left of the rate limit if that is little.
fn connection(state: &State) -> Pieces {
    let glyphs = &state.theme.glyphs;
    let line = Pieces::new();
    let line = match &state.link {
        Link::Connecting | Link::Down(_) => line.add(Tone::Dim, format!("{} connecting", glyphs.offline)),
        _ if state.is_archived() => line.add(Tone::Warn, format!("{} archived", glyphs.archived)),
        _ if state.list.paused => line.add(Tone::Warn, format!("{} paused", glyphs.paused)),
        Link::Streaming => line.add(Tone::Good, format!("{} live", glyphs.live)),
        Link::Polling => line.add(Tone::Good, format!("{} live 2s", glyphs.polling)),
    };
    match state.limit {
        // Plans without limits send a number that no one reaches.
        Some(limit) if limit.limit < manage::UNLIMITED && limit.is_low(state.now) => {
            let wait = limit.reset.filter(|_| limit.remaining == 0);
            let wait = wait.map(|at| format!(" {} {}s", glyphs.dot, state.seconds_until(at)));
            let wait = wait.unwrap_or_default();
            line.add(Tone::Warn, format!("  RL {}/{}{wait}", limit.remaining, limit.limit))
        }
        _ => line,
    }
}

fn tabs(state: &State, cols: usize) -> Pieces {
    let mut line = Pieces::new();
    for (at, screen) in placeholder::SCREENS.iter().enumerate() {
        let digit = at + 1;
        let current = usize::from(state.screen) == digit;
        let title = match cols {
            110.. => format!("{digit} {}", screen.title),
            76.. => format!("{digit} {}", screen.short),
            _ if current => format!("{digit} {}", screen.short),
            _ => digit.to_string(),
        };
        line = match (current, screen.is_built()) {
            (true, _) => line.add(Tone::Strong, format!("[{title}] ")),
            (false, true) => line.plain(format!("{title}  ")),
            (false, false) => line.add(Tone::Dim, format!("{title}  ")),
        };
    }
    line.cut(cols, &state.theme)
}

/// Line 3: the filter or find, the breadcrumb, or the name of the overlay.
fn middle(state: &State, cols: usize) -> Pieces {
    let theme = &state.theme;
    let archived = state.project.as_ref().and_then(|project| project.archived_at);
    if let Some(input) = &state.input {
        let hint = match input.purpose {
            Purpose::Filter | Purpose::EvalFilter | Purpose::Search => "tab completes",
            Purpose::Why => "id of a trace, or none",
            Purpose::Find => "find in what is loaded",
            Purpose::Help => "narrow down",
            Purpose::Palette => "actions, screens, projects",
            Purpose::Export => ".csv or .ndjson",
            Purpose::Dialog => "",
        };
        let Visible { text, .. } = visible(input, cols);
        return Pieces::new().plain(text).with_end(Pieces::new().add(Tone::Dim, hint), cols, theme);
    }
    match (&state.overlay, &state.detail, state.screen) {
        (Some(Overlay::Help { .. }), ..) => Pieces::new().add(Tone::Dim, " Keys"),
        (Some(Overlay::Problems { .. }), ..) => Pieces::new().add(Tone::Dim, " Log"),
        (Some(Overlay::Projects { .. }), ..) => Pieces::new().add(Tone::Dim, " Projects"),
        (Some(Overlay::Contexts { .. }), ..) => Pieces::new().add(Tone::Dim, " Contexts"),
        (Some(Overlay::Bookmarks { .. }), ..) => Pieces::new().add(Tone::Dim, " Marked traces"),
        (None, _, EVALS) => evals::line(state, cols),
        (None, _, METRICS) => metrics::line(state, cols),
        (None, _, SEARCH) => search::line(state, cols),
        (None, _, MANAGE) => manage::tabs(state, cols),
        (None, Some(open), 1) => {
            detail::breadcrumb(state, open).with_end(detail::mark(state, open), cols, theme)
        }
        (None, None, 1) => {
            let filter = if state.filter.text.is_empty() {
                Pieces::new().add(Tone::Dim, " / no filter")
            } else {
                Pieces::new().add(Tone::Dim, " / ").plain(clean(&state.filter.text).into_owned())
            };
            let end = match archived {
                Some(at) => {
                    let day = state.zone.of(at).format("%-d %b");
                    Pieces::new().add(Tone::Warn, format!("archived {day}; data is kept, ingest answers 403"))
                }
                None if state.filter.text.is_empty() => Pieces::new(),
                None => Pieces::new().add(Tone::Dim, "server filter"),
            };
            filter.with_end(end, cols, theme)
        }
        _ => Pieces::new(),
    }
}

const PROMPTS: [(Purpose, &str); 8] = [
    (Purpose::Filter, " / "),
    (Purpose::EvalFilter, " / "),
    (Purpose::Why, " why "),
    (Purpose::Search, " ? "),
    (Purpose::Find, " find "),
    (Purpose::Help, " keys "),
    (Purpose::Palette, " : "),
    (Purpose::Export, " write to "),
];

fn prompt(input: &Input) -> &'static str {
    PROMPTS.iter().find(|(purpose, _)| *purpose == input.purpose).map_or("", |(_, prompt)| prompt)
}

/// The visible part of a line being edited.
struct Visible {
    /// The prompt and the visible text.
    text: String,
    /// The cursor's column.
    cursor: usize,
    /// Number of columns scrolled away to the left.
    hidden: usize,
}

fn visible(input: &Input, cols: usize) -> Visible {
    let prompt = prompt(input);
    let (before, after) = input.around();
    let (before, after) = (clean(before), clean(after));
    let room = cols.saturating_sub(width(prompt) + 26).max(10);
    // A long line is shown from where the cursor still fits.
    let mut start = 0;
    while width(&before[start..]) > room {
        start += before[start..].chars().next().map_or(1, char::len_utf8);
    }
    let shown = &before[start..];
    let left = crate::text::take(&after, room.saturating_sub(width(shown)));
    Visible {
        text: format!("{prompt}{shown}{left}"),
        cursor: width(prompt) + width(shown),
        hidden: width(&before[..start]),
    }
}

/// Shows the error of the line being edited in the rows below it: a caret under the first wrong character
/// and the sentence, beside the caret where there is room, else on its own rows.
fn input_error(state: &State, input: &Input, cols: usize) -> Vec<Pieces> {
    let Some((at, message)) = &state.filter.error else { return Vec::new() };
    let caret = state.theme.glyphs.caret;
    let before: String = input.text().chars().take(*at).collect();
    let scrolled = width(&clean(&before)).saturating_sub(visible(input, cols).hidden);
    let column = (width(prompt(input)) + scrolled).min(cols.saturating_sub(1));
    let message = clean(message);
    let needed = width(&message);
    let bad = |text: String| Pieces::new().add(Tone::Bad, text);
    if column + 2 + needed <= cols {
        return vec![bad(format!("{}{caret} {message}", " ".repeat(column)))];
    }
    if needed + 2 <= column {
        return vec![bad(format!("{}{message} {caret}", " ".repeat(column - needed - 1)))];
    }
    let lines = wrap(&message, cols.saturating_sub(2)).into_iter().map(|line| bad(format!(" {line}")));
    std::iter::once(bad(format!("{}{caret}", " ".repeat(column)))).chain(lines).collect()
}

fn status(state: &State, cols: usize) -> Pieces {
    let theme = &state.theme;
    let line = Pieces::new();
    if let Some(prefix) = &state.prefix {
        let mut shown = line.plain(format!(" {prefix} "));
        for (key, binding) in state.keymap.continuations(state.scope(), prefix) {
            let word = binding.name.rsplit('.').next().unwrap_or(binding.name);
            shown = shown.plain("  ").add(Tone::Strong, key).plain(format!(" {word}"));
        }
        return shown.cut(cols, theme);
    }
    if let Some(toast) = &state.toast {
        let tone = if toast.bad { Tone::Bad } else { Tone::Strong };
        return line.add(tone, format!(" {}", clean(&toast.text))).cut(cols, theme);
    }
    let text = match (&state.overlay, &state.detail, state.screen) {
        (None, Some(open), 1) => detail::status(state, open),
        (None, None, 1) => traces::status(state),
        (None, _, EVALS) => evals::status(state),
        (None, _, METRICS) => metrics::status(state),
        (None, _, SEARCH) => search::status(state),
        (None, _, MANAGE) => manage::status(state),
        _ => String::new(),
    };
    line.plain(format!(" {}", clean(&text))).cut(cols, theme)
}

fn cursor(state: &State, line: Rect) -> Option<(u16, u16)> {
    let input = state.input.as_ref()?;
    let Visible { cursor, .. } = visible(input, usize::from(state.size.0));
    Some((line.x + u16::try_from(cursor).ok()?, line.y))
}
