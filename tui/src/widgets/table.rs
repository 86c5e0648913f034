//! Lines that consist of pieces in tones.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use crate::theme::{Theme, Tone};
use present::text::{clean, cut, width};

/// A line under construction. Its texts are clean already.
#[derive(Clone, Debug, Default)]
pub struct Pieces(Vec<(Tone, String)>);

impl Pieces {
    /// Returns an empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text in a tone.
    pub fn add(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.0.push((tone, text.into()));
        self
    }

    /// Adds text in no particular tone.
    pub fn plain(self, text: impl Into<String>) -> Self {
        self.add(Tone::Plain, text)
    }

    /// Adds the pieces of another line.
    pub fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns the pieces without trailing blanks, which would otherwise count as text when they are cut.
    pub fn trimmed(mut self) -> Self {
        while let Some((_, text)) = self.0.last_mut() {
            text.truncate(text.trim_end().len());
            if !text.is_empty() {
                break;
            }
            self.0.pop();
        }
        self
    }

    /// Returns the same text in one tone.
    pub fn all(mut self, tone: Tone) -> Self {
        for (its, _) in &mut self.0 {
            *its = tone;
        }
        self
    }

    /// Returns the text.
    #[cfg(test)]
    pub fn text(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Returns the width in columns.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| width(text)).sum()
    }

    /// Adds blanks so that `end` is at the right edge of `cols` columns. If both do not fit, this line is
    /// cut.
    pub fn with_end(self, end: Self, cols: usize, theme: &Theme) -> Self {
        let room = cols.saturating_sub(end.width());
        let mut line = self.cut(room.saturating_sub(1), theme);
        let gap = room.saturating_sub(line.width());
        line.0.push((Tone::Plain, " ".repeat(gap)));
        line.0.extend(end.0);
        line.cut(cols, theme)
    }

    /// Cuts to `cols` columns, with an ellipsis where something was cut.
    pub fn cut(self, cols: usize, theme: &Theme) -> Self {
        if self.width() <= cols {
            return self;
        }
        let mut left = cols;
        let mut kept = Vec::new();
        let mut pieces = self.0.into_iter().peekable();
        while let Some((tone, text)) = pieces.next() {
            let more = pieces.peek().is_some();
            let needed = width(&text);
            // The ellipsis needs a column as soon as anything is left out.
            if needed < left || (needed == left && !more) {
                left -= needed;
                kept.push((tone, text));
                continue;
            }
            let mut text = present::text::take(&text, left.saturating_sub(1)).to_owned();
            if left > 0 {
                text.push_str(theme.glyphs.ellipsis);
            }
            kept.push((tone, text));
            break;
        }
        Self(kept)
    }

    /// Draws the row as a bar over the whole width in one tone.
    pub fn bar(self, theme: &Theme, tone: Tone) -> Line<'static> {
        let spans = self.0.into_iter().map(|(_, text)| Span::raw(text));
        Line::from(spans.collect::<Vec<_>>()).style(theme.style(tone))
    }

    /// Returns the line to draw. With `selected`, the whole line has the tone of a selected row.
    pub fn line(self, theme: &Theme, selected: bool) -> Line<'static> {
        let spans = self.0.into_iter().map(|(tone, text)| {
            let style = if selected { Style::new() } else { theme.style(tone) };
            Span::styled(text, style)
        });
        let line = Line::from(spans.collect::<Vec<_>>());
        if selected { line.style(theme.style(Tone::Selected)) } else { line }
    }
}

/// Draws a line at a row of the area, counted from its top; rows below it are left alone.
pub fn put(buffer: &mut Buffer, area: Rect, row: usize, line: &Line<'_>) {
    let Ok(row) = u16::try_from(row) else { return };
    // A window that just shrank is drawn once before its new size arrives as a message.
    let area = area.intersection(buffer.area);
    if row >= area.height {
        return;
    }
    buffer.set_style(Rect::new(area.x, area.y + row, area.width, 1), line.style);
    buffer.set_line(area.x, area.y + row, line, area.width);
}

/// Draws a line like [`put`], and clears the rest of the row.
pub fn put_over(buffer: &mut Buffer, area: Rect, row: usize, line: &Line<'_>) {
    let within = area.intersection(buffer.area);
    if let Some(y) = u16::try_from(row).ok().filter(|row| *row < within.height).map(|row| within.y + row) {
        for x in within.left()..within.right() {
            buffer[(x, y)].reset();
        }
        put(buffer, area, row, line);
    }
}

/// Draws sentences centred in an area, each on its own lines.
pub fn put_panel(buffer: &mut Buffer, area: Rect, theme: &Theme, lines: &[(Tone, String)]) {
    let cols = usize::from(area.width.saturating_sub(4));
    let mut wrapped = Vec::new();
    for (tone, text) in lines {
        let clean = clean(text);
        wrapped.extend(present::text::wrap(&clean, cols).into_iter().map(|part| (*tone, part)));
    }
    let free = usize::from(area.height).saturating_sub(wrapped.len());
    let top = (free / 3).min(4);
    for (at, (tone, text)) in wrapped.into_iter().enumerate() {
        let line = Pieces::new().plain("  ").add(tone, cut(&text, cols, &theme.glyphs)).line(theme, false);
        put(buffer, area, top + at, &line);
    }
}

/// Returns the first visible row that keeps the selected one on the screen, roughly in the middle once the list is
/// longer than the screen.
pub fn first_visible(selected: usize, total: usize, rows: usize) -> usize {
    selected.saturating_sub(rows / 2).min(total.saturating_sub(rows))
}

/// Returns a rule with a title at its left and a note at its right.
pub fn rule(title: &str, note: &str, cols: usize, theme: &Theme) -> Pieces {
    let glyphs = &theme.glyphs;
    let note = if note.is_empty() { String::new() } else { format!(" {note} {}", glyphs.rule.repeat(2)) };
    let room = cols.saturating_sub(4 + width(&note));
    let title = format!("{} {} ", glyphs.rule.repeat(2), cut(title, room, glyphs));
    let gap = cols.saturating_sub(width(&title) + width(&note));
    Pieces::new().add(Tone::Dim, title + &glyphs.rule.repeat(gap) + &note).cut(cols, theme)
}

/// Lays fields out on as few lines as possible, so that none is cut.
pub fn packed(fields: &[(&str, String)], cols: usize) -> Vec<Pieces> {
    let mut lines: Vec<Pieces> = Vec::new();
    for (name, value) in fields {
        let field = Pieces::new().add(Tone::Field, format!("{name} ")).plain(clean(value).into_owned());
        let line = match lines.pop() {
            Some(line) if line.width() + 3 + field.width() <= cols => line.plain("   "),
            before => {
                lines.extend(before);
                Pieces::new().plain("  ")
            }
        };
        lines.push(line.join(field));
    }
    lines
}

/// Draws a pane: its rule, and the lines below it. Where lines have no room, the last visible one ends with an ellipsis.
pub fn put_pane(buffer: &mut Buffer, area: Rect, theme: &Theme, rule: Pieces, lines: Vec<Pieces>) {
    let cols = usize::from(area.width);
    put(buffer, area, 0, &rule.line(theme, false));
    let room = usize::from(area.height.saturating_sub(1));
    let is_cut = lines.len() > room;
    for (at, line) in lines.into_iter().take(room).enumerate() {
        let more =
            if is_cut && at + 1 == room { format!(" {}", theme.glyphs.ellipsis) } else { String::new() };
        let line = line.cut(cols.saturating_sub(width(&more)), theme).add(Tone::Dim, more);
        put(buffer, area, 1 + at, &line.line(theme, false));
    }
}
