//! The palette.

use ratatui::{buffer::Buffer, layout::Rect};

use super::picker::choose;
use crate::{
    palette::items,
    state::{Overlay, State},
    text::fit,
    theme::Tone,
    widgets::table::{Pieces, put},
};

/// Columns of the kind of a thing.
const KIND: usize = 8;

/// Draws what fits the words.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
    let (Some(Overlay::Palette { selected }), Some(input)) = (&state.overlay, &state.input) else { return };
    let cols = usize::from(area.width);
    let glyphs = &state.theme.glyphs;
    let items = items(state, input.text());
    if items.is_empty() {
        let line = Pieces::new().add(Tone::Dim, "  nothing fits").cut(cols, &state.theme);
        return put(buffer, area, 0, &line.line(&state.theme, false));
    }
    let label = cols.saturating_sub(KIND + 4).min(64).min(cols * 2 / 3);
    let note = cols.saturating_sub(label + KIND + 4);
    let rows = items.iter().map(|item| {
        Pieces::new()
            .add(Tone::Dim, format!("{} ", fit(item.kind, KIND, glyphs)))
            .plain(format!("{} ", fit(&item.label, label, glyphs)))
            .add(Tone::Field, fit(&item.note, note, glyphs))
    });
    choose(state, buffer, area, *selected, rows.collect());
}
