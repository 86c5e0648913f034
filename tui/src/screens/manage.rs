//! Keys & Projects: the tabs, the sections, and what stands in a section without rows.

mod keys;
mod plan;
mod projects;

pub use keys::access;
pub use plan::UNLIMITED;
use ratatui::{buffer::Buffer, layout::Rect};

use super::notice::failure;
use crate::{
    format::capital,
    layout,
    manage::{Rows, Tab},
    state::State,
    text::clean,
    theme::Tone,
    widgets::table::{Pieces, put, put_panel},
};

/// Draws the screen: as many of the sections as there is room for, the one in use always.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
    let manage = &state.manage;
    if state.is_unauthorized() && !state.manage.projects.loaded {
        return super::notice::draw(state, buffer, area);
    }
    let counts = [manage.keys.items.len(), manage.shown_len(), plan::len(state)];
    let sections = layout::sections(state.size, manage.tab, counts);
    for (at, (tab, section)) in sections.into_iter().enumerate() {
        let within = Rect { y: section.y.max(area.y), ..section };
        if at > 0 {
            put(buffer, within, 0, &rule(state, tab).line(&state.theme, false));
        }
        let skip = u16::from(at > 0).min(within.height);
        let body = Rect { y: within.y + skip, height: within.height - skip, ..within };
        match tab {
            Tab::Keys => keys::draw(state, buffer, body),
            Tab::Projects => projects::draw(state, buffer, body),
            Tab::Plan => plan::draw(state, buffer, body),
        }
    }
}

/// Line 3: the tabs, and who it is that may change something.
pub fn tabs(state: &State, cols: usize) -> Pieces {
    let theme = &state.theme;
    let mut line = Pieces::new().plain(" ");
    for tab in Tab::ALL {
        line = if tab == state.manage.tab {
            line.add(Tone::Strong, format!("[{}] ", tab.title()))
        } else {
            line.add(Tone::Dim, format!(" {}  ", tab.title()))
        };
    }
    let who = state.me.as_ref().map(|me| {
        let who = match (&me.subject, &me.api_key) {
            (Some(subject), _) => format!("session: {subject}"),
            (None, Some(key)) => format!("API key {}", key.prefix),
            (None, None) => "session".to_owned(),
        };
        let dot = theme.glyphs.dot;
        let who = if cols >= 76 { format!("{who} {dot} ") } else { String::new() };
        format!("{who}{} {dot} {}", me.role, capital(me.tenant.plan.as_str()))
    });
    let read_only = if state.target.read_only { "read-only  " } else { "" };
    let end =
        Pieces::new().add(Tone::Warn, read_only).add(Tone::Dim, clean(&who.unwrap_or_default()).into_owned());
    line.with_end(end, cols, theme)
}

/// The status line.
pub fn status(state: &State) -> String {
    let manage = &state.manage;
    let (keys, projects) = (&manage.keys, &manage.projects);
    let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let mut parts = Vec::new();
    if keys.loaded {
        parts.push(count(keys.items.len(), "key"));
    }
    if projects.loaded {
        let archived = projects.items.iter().filter(|project| project.archived_at.is_some()).count();
        let hidden = if manage.archived { "shown" } else { "hidden" };
        let note = if archived > 0 { format!(", {archived} archived ({hidden})") } else { String::new() };
        parts.push(format!("{}{note}", count(projects.items.len(), "project")));
    }
    parts.join(&format!(" {} ", state.theme.glyphs.dot))
}

fn rule(state: &State, tab: Tab) -> Pieces {
    let theme = &state.theme;
    let (title, note) = match tab {
        Tab::Keys => ("keys", ""),
        Tab::Projects => ("projects", ""),
        Tab::Plan => ("plan and limits", ""),
    };
    let cols = usize::from(state.size.0);
    let head = Pieces::new().add(Tone::Dim, format!("{} {title} ", theme.glyphs.rule.repeat(2)));
    let free = cols.saturating_sub(head.width() + note.len());
    head.add(Tone::Dim, theme.glyphs.rule.repeat(free)).add(Tone::Dim, note)
}

/// What stands in a section without rows; nothing if there are rows to draw.
fn instead<T>(state: &State, rows: &Rows<T>, empty: &str) -> Option<Vec<(Tone, String)>> {
    if let Some(error) = &rows.error {
        return Some(failure(state, error, state.next_check));
    }
    if !rows.loaded {
        return Some(vec![(Tone::Dim, format!("loading{}", state.theme.glyphs.ellipsis))]);
    }
    rows.items.is_empty().then(|| vec![(Tone::Plain, empty.to_owned())])
}

fn put_instead(state: &State, buffer: &mut Buffer, area: Rect, lines: &[(Tone, String)]) {
    put_panel(buffer, area, &state.theme, lines);
}

/// Day of an instant, in the reader's zone.
fn day(state: &State, time: api::Timestamp) -> String {
    state.zone.of(time).format("%Y-%m-%d").to_string()
}
