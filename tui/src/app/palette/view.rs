//! The palette.

use ratatui::{buffer::Buffer, layout::Rect};

use super::items::items;
use crate::{
    app::picker::view::choose,
    shell::{Overlay, Shell},
    theme::Tone,
    widgets::table::{Pieces, put},
};
use present::text::fit;

/// Width in columns of the kind of an item.
const KIND_COLS: usize = 8;

/// Draws the entries that match the words.
pub fn draw(shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let (Some(Overlay::Palette { selected }), Some(input)) = (&shell.overlay, &shell.input) else { return };
    let cols = usize::from(area.width);
    let glyphs = &shell.theme.glyphs;
    let items = items(shell, input.text());
    if items.is_empty() {
        let line = Pieces::new().add(Tone::Dim, "  nothing matches").cut(cols, &shell.theme);
        return put(buffer, area, 0, &line.line(&shell.theme, false));
    }
    let label = cols.saturating_sub(KIND_COLS + 4).min(64).min(cols * 2 / 3);
    let note = cols.saturating_sub(label + KIND_COLS + 4);
    let rows = items.iter().map(|item| {
        Pieces::new()
            .add(Tone::Dim, format!("{} ", fit(item.kind, KIND_COLS, glyphs)))
            .plain(format!("{} ", fit(&item.label, label, glyphs)))
            .add(Tone::Field, fit(&item.note, note, glyphs))
    });
    choose(shell, buffer, area, *selected, rows.collect());
}
