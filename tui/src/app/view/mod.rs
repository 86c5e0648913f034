//! The frame around every screen, from the header to the line of keys.

mod footer;

use ratatui::{Frame, layout::Rect, text::Line};

use super::{App, dialog::view as dialog, help, palette::view as palette, picker::view as picker};
use crate::{
    input::Input,
    layout,
    shell::freshness::{Cause, Stale},
    shell::{Link, Overlay, freshness, notice},
    theme::Tone,
    widgets::table::{Pieces, put, put_over},
};
use present::{
    format::{capital, clock_minute},
    text::{clean, width, wrap},
};

/// Draws everything.
pub fn draw(app: &App, frame: &mut Frame<'_>) {
    let size = app.shell.size;
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let theme = &app.shell.theme;
    if layout::too_small(size) {
        let text = format!(
            "terminal too small ({}x{}), needs {}x{}",
            size.0,
            size.1,
            layout::MIN_COLS,
            layout::MIN_ROWS
        );
        // The sentence ends with the required size, so it is wrapped and not cut.
        for (row, line) in wrap(&text, usize::from(size.0)).into_iter().enumerate() {
            put(buffer, area, row, &Pieces::new().plain(line).line(theme, false));
        }
        return;
    }
    let parts = layout::frame(size);
    let cols = usize::from(size.0);
    put(buffer, parts.header, 0, &header(app, cols));
    put(buffer, parts.tabs, 0, &tabs(app, cols).line(theme, false));
    put(buffer, parts.line, 0, &middle(app, cols).line(theme, false));
    match &app.shell.overlay {
        Some(Overlay::Projects { .. } | Overlay::Contexts { .. } | Overlay::Bookmarks { .. }) => {
            picker::draw(&app.shell, buffer, parts.body);
        }
        Some(Overlay::Palette { .. }) => palette::draw(&app.shell, buffer, parts.body),
        Some(Overlay::Help { .. } | Overlay::Problems { .. }) => help::draw(&app.shell, buffer, parts.body),
        None if app.shell.is_unauthorized() && !app.screen().has_records(&app.shell) => {
            notice::draw(&app.shell, buffer, parts.body);
        }
        None => app.screen().draw(&app.shell, buffer, parts.body),
    }
    if let Some(input) = &app.shell.input {
        for (row, line) in input_error(app, input, cols).into_iter().enumerate() {
            put_over(buffer, parts.body, row, &line.line(theme, false));
        }
    }
    put(buffer, parts.status, 0, &status(app, cols).line(theme, false));
    put(buffer, parts.keys, 0, &footer::keys(app, cols).line(theme, false));
    if let Some(open) = &app.shell.dialog {
        dialog::draw(&app.shell, open, buffer, dialog::area(size));
    } else if let Some((x, y)) = cursor(app, parts.line) {
        frame.set_cursor_position((x, y));
    }
}

/// Returns line 1: the user's location, and whether the records are current. If they are not, the whole line is
/// a bar.
fn header(app: &App, cols: usize) -> Line<'static> {
    let theme = &app.shell.theme;
    let mut line = Pieces::new().add(Tone::Strong, " loupe");
    if let Some(context) = &app.shell.target.context {
        let (left, right) = theme.glyphs.badge;
        let tone = if app.shell.target.protected { Tone::Protected } else { Tone::Badge };
        let label = if theme.glyphs.ascii {
            format!("{left}{}{right}", context.to_uppercase())
        } else {
            format!(" {} ", context.to_uppercase())
        };
        line = line.plain(" ").add(tone, clean(&label).into_owned());
    }
    if cols >= 110 {
        line = line.add(Tone::Dim, format!(" {}", clean(&app.shell.target.url)));
    }
    let project = app.shell.project_name().unwrap_or("all projects");
    let tenant = app.shell.me.as_ref().map(|me| format!("{}/", me.tenant.name)).unwrap_or_default();
    line = line.plain(format!(" {}", clean(&format!("{tenant}{project}"))));
    if let Some(me) = &app.shell.me {
        line = line
            .add(Tone::Dim, format!(" {}{}{}", capital(me.tenant.plan.as_str()), theme.glyphs.dot, me.role));
    }
    if app.screens.traces.failures_only(&app.shell) {
        line = line.plain(" ").add(Tone::Badge, " failures only ");
    }
    match freshness::stale(&app.shell).or_else(|| app.screen().stale()) {
        Some(stale) => line.with_end(not_current(app, stale), cols, theme).bar(theme, Tone::Alarm),
        None => line.with_end(connection(app), cols, theme).line(theme, false),
    }
}

/// Returns the text of the bar: start and cause of the failure, and the next retry.
fn not_current(app: &App, stale: Stale<'_>) -> Pieces {
    let dot = app.shell.theme.glyphs.dot;
    let since = match stale.since {
        Some(at) => format!("STALE since {}", clock_minute(app.shell.zone, at, app.shell.now)),
        None => "NO DATA".to_owned(),
    };
    let next = match stale.next {
        Some(at) if at > app.shell.now => format!(" {dot} retry {}s", app.shell.seconds_until(at)),
        _ if matches!(stale.cause, Cause::Silence(_)) => String::new(),
        _ => format!(" {dot} asking"),
    };
    Pieces::new().plain(format!("{since} {dot} {}{next} ", stale.cause.label(app.shell.now)))
}

/// Describes how new traces arrive, and the remaining rate limit if it is low.
fn connection(app: &App) -> Pieces {
    let glyphs = &app.shell.theme.glyphs;
    let line = Pieces::new();
    let line = match &app.shell.link {
        Link::Connecting | Link::Down(_) => line.add(Tone::Dim, format!("{} connecting", glyphs.offline)),
        _ if app.shell.is_archived() => line.add(Tone::Warn, format!("{} archived", glyphs.archived)),
        _ if app.screens.traces.list.paused => line.add(Tone::Warn, format!("{} paused", glyphs.paused)),
        Link::Streaming => line.add(Tone::Good, format!("{} live", glyphs.live)),
        Link::Polling => line.add(Tone::Good, format!("{} live 2s", glyphs.polling)),
    };
    match app.shell.limit {
        // For plans without a limit, the server sends a number that no client reaches.
        Some(limit) if !limit.is_unlimited() && limit.is_low(app.shell.now) => {
            let wait = limit.reset.filter(|_| limit.remaining == 0);
            let wait = wait.map(|at| format!(" {} {}s", glyphs.dot, app.shell.seconds_until(at)));
            let wait = wait.unwrap_or_default();
            line.add(Tone::Warn, format!("  RL {}/{}{wait}", limit.remaining, limit.limit))
        }
        _ => line,
    }
}

fn tabs(app: &App, cols: usize) -> Pieces {
    let mut line = Pieces::new();
    for screen in app.screens.all() {
        let tab = screen.tab();
        let digit = tab.digit;
        let current = app.shell.screen == digit;
        let title = match cols {
            110.. => format!("{digit} {}", tab.title),
            76.. => format!("{digit} {}", tab.short),
            _ if current => format!("{digit} {}", tab.short),
            _ => digit.to_string(),
        };
        let badge = screen.badge(&app.shell).map(|count| format!(" {count}")).unwrap_or_default();
        line = if current {
            line.add(Tone::Strong, format!("[{title}{badge}] "))
        } else {
            line.plain(title).add(Tone::Warn, badge).plain("  ")
        };
    }
    line.cut(cols, &app.shell.theme)
}

/// Returns line 3: the filter or find, the breadcrumb, or the name of the overlay.
fn middle(app: &App, cols: usize) -> Pieces {
    let theme = &app.shell.theme;
    if let Some(input) = &app.shell.input {
        let hint = Pieces::new().add(Tone::Dim, input.kind.hint());
        return Pieces::new().plain(visible(input, cols).text).with_end(hint, cols, theme);
    }
    let title = match &app.shell.overlay {
        None => return app.screen().line(&app.shell, cols),
        Some(Overlay::Help { .. }) => " Keys",
        Some(Overlay::Problems { .. }) => " Log",
        Some(Overlay::Projects { .. }) => " Projects",
        Some(Overlay::Contexts { .. }) => " Contexts",
        Some(Overlay::Bookmarks { .. }) => " Marked traces",
        Some(Overlay::Palette { .. }) => "",
    };
    Pieces::new().add(Tone::Dim, title)
}

/// The visible part of a line being edited.
struct VisibleLine {
    /// The prompt and the visible text.
    text: String,
    /// The cursor's column.
    cursor: usize,
    /// Number of columns scrolled away to the left.
    hidden: usize,
}

fn visible(input: &Input, cols: usize) -> VisibleLine {
    let prompt = input.kind.prompt();
    let (before, after) = input.around();
    let (before, after) = (clean(before), clean(after));
    let room = cols.saturating_sub(width(prompt) + 26).max(10);
    // A long line is scrolled until the cursor is visible.
    let mut start = 0;
    while width(&before[start..]) > room {
        start += before[start..].chars().next().map_or(1, char::len_utf8);
    }
    let shown = &before[start..];
    let left = present::text::take(&after, room.saturating_sub(width(shown)));
    VisibleLine {
        text: format!("{prompt}{shown}{left}"),
        cursor: width(prompt) + width(shown),
        hidden: width(&before[..start]),
    }
}

/// Shows the error of the line being edited in the rows below it: a caret under the first wrong character
/// and the sentence, beside the caret where there is room, else on its own rows.
fn input_error(app: &App, input: &Input, cols: usize) -> Vec<Pieces> {
    let Some((at, message)) = &app.shell.line_error else { return Vec::new() };
    let caret = app.shell.theme.glyphs.caret;
    let before: String = input.text().chars().take(*at).collect();
    let scrolled = width(&clean(&before)).saturating_sub(visible(input, cols).hidden);
    let column = (width(input.kind.prompt()) + scrolled).min(cols.saturating_sub(1));
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

fn status(app: &App, cols: usize) -> Pieces {
    let theme = &app.shell.theme;
    let line = Pieces::new();
    if let Some(prefix) = &app.shell.prefix {
        let mut shown = line.plain(format!(" {prefix} "));
        for (key, binding) in app.shell.keymap.continuations(app.shell.active_scope(), prefix) {
            let word = binding.name.rsplit('.').next().unwrap_or(binding.name);
            shown = shown.plain("  ").add(Tone::Strong, key).plain(format!(" {word}"));
        }
        return shown.cut(cols, theme);
    }
    if let Some(toast) = &app.shell.toast {
        let tone = if toast.is_failure { Tone::Bad } else { Tone::Strong };
        return line.add(tone, format!(" {}", clean(&toast.text))).cut(cols, theme);
    }
    let text = if app.shell.overlay.is_none() { app.screen().status(&app.shell) } else { String::new() };
    line.plain(format!(" {}", clean(&text))).cut(cols, theme)
}

fn cursor(app: &App, line: Rect) -> Option<(u16, u16)> {
    let input = app.shell.input.as_ref()?;
    let VisibleLine { cursor, .. } = visible(input, usize::from(app.shell.size.0));
    Some((line.x + u16::try_from(cursor).ok()?, line.y))
}
