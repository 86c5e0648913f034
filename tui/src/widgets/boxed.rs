//! A box with a title over the middle of the screen.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};

use crate::theme::{Theme, Tone};
use crate::widgets::table::{Pieces, put};
use present::text::{cut, width};

/// Width in columns of a box if there is room for it.
const MAX_BOX_COLS: u16 = 62;
/// Width in columns of the frame and the margins of a box.
const FRAME_COLS: u16 = 8;

/// Returns the columns of the lines in a box on a screen of this width.
pub fn inner_cols(screen: u16) -> usize {
    usize::from(MAX_BOX_COLS.min(screen).saturating_sub(FRAME_COLS))
}

/// Draws lines in a box. If they do not all fit, the first lines are left out, because the last ones
/// contain the question.
pub fn put_box(buffer: &mut Buffer, area: Rect, theme: &Theme, title: &str, foot: &str, lines: Vec<Pieces>) {
    let area = area.intersection(buffer.area);
    if area.width < FRAME_COLS || area.height < 3 {
        return;
    }
    let cols = MAX_BOX_COLS.min(area.width);
    let roomy = usize::from(area.height) >= lines.len() + 4;
    let padding = usize::from(roomy);
    let wanted = lines.len() + 2 + 2 * padding;
    let rows = u16::try_from(wanted).unwrap_or(u16::MAX).min(area.height);
    let place = Rect::new(area.x + (area.width - cols) / 2, area.y + (area.height - rows) / 2, cols, rows);
    for y in place.top()..place.bottom() {
        // A wide character that reaches under the edge would cover it.
        let beside = place.left().checked_sub(1).and_then(|x| buffer.cell_mut((x, y)));
        if let Some(cell) = beside.filter(|cell| width(cell.symbol()) > 1) {
            cell.set_symbol(" ");
        }
        for x in place.left()..place.right() {
            buffer[(x, y)].reset();
        }
        buffer.set_style(Rect::new(place.x, y, place.width, 1), Style::new());
    }
    let inner = usize::from(cols) - 2;
    let [top_left, top_right, bottom_left, bottom_right] = theme.glyphs.corners;
    put(buffer, place, 0, &edge(theme, top_left, top_right, title, true, inner).line(theme, false));
    let last = usize::from(rows) - 1;
    put(buffer, place, last, &edge(theme, bottom_left, bottom_right, foot, false, inner).line(theme, false));
    let room = usize::from(rows) - 2 - 2 * padding;
    let left_out = lines.len().saturating_sub(room);
    let mut shown = lines.into_iter().skip(left_out);
    for row in 1..last {
        let within = row > padding && row < last - padding;
        let line = if within { shown.next() } else { None }.unwrap_or_default();
        let line = Pieces::new().plain("   ").join(line).with_end(Pieces::new(), inner, theme);
        let side = || Pieces::new().add(Tone::Dim, theme.glyphs.vertical);
        put(buffer, place, row, &side().join(line).join(side()).line(theme, false));
    }
}

/// Returns the upper or lower edge with a few words in it.
fn edge(theme: &Theme, left: &str, right: &str, words: &str, at_left: bool, inner: usize) -> Pieces {
    let rule = |count: usize| theme.glyphs.rule.repeat(count);
    let words = match cut(words, inner.saturating_sub(6), &theme.glyphs) {
        words if words.is_empty() => words,
        words => format!(" {words} "),
    };
    let (before, after) = match inner.saturating_sub(width(&words)) {
        free if at_left => (free.min(2), free.saturating_sub(2)),
        free => (free.saturating_sub(2), free.min(2)),
    };
    let line = Pieces::new().add(Tone::Dim, format!("{left}{}", rule(before)));
    line.add(Tone::Strong, words).add(Tone::Dim, format!("{}{right}", rule(after)))
}
