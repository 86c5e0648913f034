//! Draws Keys & Projects: the tabs, the sections, and the panels of sections without rows.

mod keys;
mod plan;
mod projects;
mod rejections;

pub use keys::access;
use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    net::NetError,
    screen::manage::layout,
    screen::manage::state::{Manage, Section},
    shell::notice::failure,
    shell::{ScreenView, Shell},
    theme::Tone,
    widgets::table::{Pieces, put, put_panel},
};
use present::{format::capital, text::clean};

impl ScreenView for Manage {
    fn has_records(&self, shell: &Shell) -> bool {
        shell.projects.loaded
    }

    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect) {
        let counts = [self.keys.items.len(), shell.projects.shown_len(), plan::len(shell)];
        let sections = layout::sections(shell.size, self.section, counts);
        for (at, (section, rows)) in sections.into_iter().enumerate() {
            let within = Rect { y: rows.y.max(area.y), ..rows };
            if at > 0 {
                put(buffer, within, 0, &rule(shell, section).line(&shell.theme, false));
            }
            let skip = u16::from(at > 0).min(within.height);
            let body = Rect { y: within.y + skip, height: within.height - skip, ..within };
            match section {
                Section::Keys => keys::draw(self, shell, buffer, body),
                Section::Projects => projects::draw(self, shell, buffer, body),
                Section::Plan => plan::draw(shell, buffer, body),
                Section::Rejections => rejections::draw(self, shell, buffer, body),
            }
        }
    }

    fn line(&self, shell: &Shell, cols: usize) -> Pieces {
        let theme = &shell.theme;
        let mut line = Pieces::new().plain(" ");
        for section in Section::ALL {
            line = if section == self.section {
                line.add(Tone::Strong, format!("[{}] ", section.title()))
            } else {
                line.add(Tone::Dim, format!(" {}  ", section.title()))
            };
        }
        let who = shell.me.as_ref().map(|me| {
            let who = match (&me.subject, &me.api_key) {
                (Some(subject), _) => format!("session: {subject}"),
                (None, Some(key)) => format!("API key {}", key.prefix),
                (None, None) => "session".to_owned(),
            };
            let dot = theme.glyphs.dot;
            let who = if cols >= 76 { format!("{who} {dot} ") } else { String::new() };
            format!("{who}{} {dot} {}", me.role, capital(me.tenant.plan.as_str()))
        });
        let read_only = if shell.target.read_only { "read-only  " } else { "" };
        let end = Pieces::new()
            .add(Tone::Warn, read_only)
            .add(Tone::Dim, clean(&who.unwrap_or_default()).into_owned());
        line.with_end(end, cols, theme)
    }

    fn status(&self, shell: &Shell) -> String {
        let (keys, projects) = (&self.keys, &shell.projects);
        let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        if self.section == Section::Rejections {
            let rejections = &self.rejections;
            return if rejections.loaded {
                count(rejections.items.len(), "rejection")
            } else {
                String::new()
            };
        }
        let mut parts = Vec::new();
        if keys.loaded {
            parts.push(count(keys.items.len(), "key"));
        }
        if projects.loaded {
            let archived = projects.items.iter().filter(|project| project.archived_at.is_some()).count();
            let hidden = if shell.projects.archived { "shown" } else { "hidden" };
            let note = if archived > 0 { format!(", {archived} archived ({hidden})") } else { String::new() };
            parts.push(format!("{}{note}", count(projects.items.len(), "project")));
        }
        parts.join(&format!(" {} ", shell.theme.glyphs.dot))
    }
}

fn rule(shell: &Shell, section: Section) -> Pieces {
    let theme = &shell.theme;
    let (title, note) = match section {
        Section::Keys => ("keys", ""),
        Section::Projects => ("projects", ""),
        Section::Plan => ("plan and limits", ""),
        Section::Rejections => ("rejections", ""),
    };
    let cols = usize::from(shell.size.0);
    let head = Pieces::new().add(Tone::Dim, format!("{} {title} ", theme.glyphs.rule.repeat(2)));
    let free = cols.saturating_sub(head.width() + note.len());
    head.add(Tone::Dim, theme.glyphs.rule.repeat(free)).add(Tone::Dim, note)
}

/// Returns the panel of a section without rows; none if there are rows to draw.
fn instead(
    shell: &Shell,
    error: Option<&NetError>,
    rows: Option<usize>,
    empty: &str,
) -> Option<Vec<(Tone, String)>> {
    match (error, rows) {
        (Some(error), _) => Some(failure(shell, error, shell.next_check)),
        (None, None) => Some(vec![(Tone::Dim, format!("loading{}", shell.theme.glyphs.ellipsis))]),
        (None, Some(0)) => Some(vec![(Tone::Plain, empty.to_owned())]),
        (None, Some(_)) => None,
    }
}

fn put_instead(shell: &Shell, buffer: &mut Buffer, area: Rect, lines: &[(Tone, String)]) {
    put_panel(buffer, area, &shell.theme, lines);
}

/// Returns the day of an instant, in the user's zone.
fn day(shell: &Shell, time: api::Timestamp) -> String {
    shell.zone.of(time).format("%Y-%m-%d").to_string()
}
