//! The choice of a project, of a context, and of a marked trace.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    shell::{Overlay, Shell},
    theme::Tone,
    widgets::table::{Pieces, first_visible, put},
};
use present::{
    format::{CLOCK_DATED, clock, short_id},
    text::{clean, fit},
};

/// Draws the choice that lies over the screen, if it is one of these.
pub fn draw(shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let cols = usize::from(area.width);
    let (selected, rows) = match &shell.overlay {
        Some(Overlay::Projects { .. }) if !shell.projects.loaded => {
            let text = match &shell.projects.error {
                Some(error) => format!("  {}", crate::shell::notice::describe(error)),
                None => format!("  loading{}", shell.theme.glyphs.ellipsis),
            };
            let line = Pieces::new().add(Tone::Dim, clean(&text).into_owned()).cut(cols, &shell.theme);
            return put(buffer, area, 0, &line.line(&shell.theme, false));
        }
        Some(Overlay::Projects { selected }) => {
            let at = shell.projects.shown().position(|project| Some(project.id) == *selected);
            (at.map_or(0, |at| at + 1), projects(shell, cols))
        }
        Some(Overlay::Contexts { selected }) => (*selected, contexts(shell, cols)),
        Some(Overlay::Bookmarks { selected }) => (*selected, bookmarks(shell, cols)),
        _ => return,
    };
    choose(shell, buffer, area, selected, rows);
}

/// Draws rows to choose from; the selected one is always visible.
pub fn choose(shell: &Shell, buffer: &mut Buffer, area: Rect, selected: usize, rows: Vec<Pieces>) {
    let theme = &shell.theme;
    let room = usize::from(area.height);
    let top = first_visible(selected, rows.len(), room);
    for (at, row) in rows.into_iter().enumerate().skip(top).take(room) {
        let cursor = if at == selected { theme.glyphs.cursor } else { " " };
        let line = Pieces::new().plain(format!("{cursor} ")).join(row).cut(usize::from(area.width), theme);
        put(buffer, area, at - top, &line.line(theme, at == selected));
    }
}

fn projects(shell: &Shell, cols: usize) -> Vec<Pieces> {
    let name = 40.min(cols / 2);
    let rows = shell.projects.shown().map(|project| {
        let note = project.archived_at.map(|at| format!("archived {}", shell.zone.of(at).format("%Y-%m-%d")));
        Pieces::new()
            .plain(fit(&project.name, name, &shell.theme.glyphs))
            .add(Tone::Dim, format!(" {}", note.unwrap_or_default()))
    });
    std::iter::once(Pieces::new().plain("all projects")).chain(rows).collect()
}

fn bookmarks(shell: &Shell, cols: usize) -> Vec<Pieces> {
    let glyphs = &shell.theme.glyphs;
    let rows = shell.bookmarks.of(&shell.target.url).map(|it| {
        let name = it.name.as_deref().unwrap_or(glyphs.none);
        Pieces::new()
            .add(Tone::Dim, format!("{} ", fit(&clock(shell.zone, it.at, shell.now), CLOCK_DATED, glyphs)))
            .plain(format!("{} ", fit(name, cols.saturating_sub(CLOCK_DATED + 12).min(60), glyphs)))
            .add(Tone::Dim, short_id(it.trace))
    });
    let rows: Vec<Pieces> = rows.collect();
    if rows.is_empty() { vec![Pieces::new().plain("no trace is marked; m marks one")] } else { rows }
}

fn contexts(shell: &Shell, cols: usize) -> Vec<Pieces> {
    let glyphs = &shell.theme.glyphs;
    let name = 24.min(cols / 5);
    let rows = shell.contexts.iter().map(|target| {
        let context = target.context.as_deref().unwrap_or_default();
        let here = if target.context == shell.target.context { glyphs.here } else { " " };
        let how = match (target.session, target.api_key) {
            (true, true) => "session and key",
            (true, false) => "session",
            (false, true) => "API key",
            (false, false) => "no credential",
        };
        let line = Pieces::new()
            .plain(format!("{} {} ", fit(context, name, glyphs), fit(here, 1, glyphs)))
            .plain(fit(&target.url, cols.saturating_sub(name + 33).clamp(16, 60), glyphs))
            .add(Tone::Dim, format!(" {how}"));
        let line = if target.protected { line.add(Tone::Warn, "  protected") } else { line };
        if target.read_only { line.add(Tone::Dim, "  read-only") } else { line }
    });
    rows.collect()
}
