//! The choice of a project.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    state::{Overlay, State},
    text::fit,
    theme::Tone,
    widgets::table::{Pieces, first_visible, put},
};

/// Draws the projects to choose from.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
    let Some(Overlay::Projects { all, selected }) = &state.overlay else { return };
    let theme = &state.theme;
    let Some(all) = all else {
        let text = format!("  loading{}", theme.glyphs.ellipsis);
        return put(buffer, area, 0, &Pieces::new().add(Tone::Dim, text).line(theme, false));
    };
    let rows = usize::from(area.height);
    let cols = usize::from(area.width);
    let top = first_visible(*selected, all.len() + 1, rows);
    for at in (top..=all.len()).take(rows) {
        let cursor = if at == *selected { theme.glyphs.cursor } else { " " };
        let line = Pieces::new().plain(format!("{cursor} "));
        let line = match at.checked_sub(1).and_then(|at| all.get(at)) {
            None => line.plain("all projects"),
            Some(project) => {
                let note = project
                    .archived_at
                    .map(|at| format!("archived {}", state.zone.of(at).format("%Y-%m-%d")));
                line.plain(fit(&project.name, 40.min(cols / 2), &theme.glyphs))
                    .add(Tone::Dim, note.unwrap_or_default())
            }
        };
        put(buffer, area, at - top, &line.cut(cols, theme).line(theme, at == *selected));
    }
}
