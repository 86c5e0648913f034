//! Full display of one resource: a title line, and a labelled line for each value.

use present::text::{cut, width, wrap};

use super::cell::{Cell, Style, Tone};

/// Width of a label in columns, with the blanks around it.
const LABEL_COLUMNS: usize = 14;
/// Minimum width in columns to which texts are wrapped.
const MIN_TEXT_COLUMNS: usize = 20;

/// A text that is built line by line, without control characters.
pub struct Sheet {
    style: Style,
    columns: Option<usize>,
    text: String,
}

impl Sheet {
    /// Creates an empty sheet for a terminal of this width.
    pub fn new(style: &Style, columns: Option<usize>) -> Self {
        Self { style: style.clone(), columns, text: String::new() }
    }

    /// Adds the title line: a mark and words separated by two blanks, cut to the terminal's width.
    pub fn head(mut self, mark: &Cell, words: &[&str]) -> Self {
        let words: Vec<&str> = words.iter().copied().filter(|it| !it.is_empty()).collect();
        let line = Cell::plain(words.join("  ")).text;
        let (mark, taken) = match width(&mark.text) {
            0 => (String::new(), 0),
            taken => (format!("{} ", self.style.paint(&mark.text, mark.tone)), taken + 1),
        };
        let line = cut(&line, self.room(taken), &self.style.glyphs);
        self.text.push_str(&format!("{mark}{}\n", self.style.paint(&line, Tone::Strong)));
        self
    }

    /// Adds a labelled text, wrapped and never cut; keeps its line breaks. Adds nothing for an empty text.
    pub fn line(self, label: &str, value: impl AsRef<str>) -> Self {
        self.toned(label, value, Tone::Plain)
    }

    /// Adds a labelled text with a tone.
    pub fn toned(mut self, label: &str, value: impl AsRef<str>, tone: Tone) -> Self {
        let value = value.as_ref().trim_end();
        if value.is_empty() {
            return self;
        }
        let room = self.room(LABEL_COLUMNS).max(MIN_TEXT_COLUMNS);
        let mut label = Some(label);
        for line in value.lines() {
            for part in wrap(&Cell::plain(line).text, room) {
                let label = label.take().unwrap_or_default();
                let part = self.style.paint(part.trim_end(), tone);
                self.text.push_str(format!("  {label:<11} {part}").trim_end());
                self.text.push('\n');
            }
        }
        self
    }

    /// Returns the complete text.
    pub fn text(self) -> String {
        self.text
    }

    fn room(&self, taken: usize) -> usize {
        self.columns.map_or(usize::MAX / 4, |columns| columns.saturating_sub(taken))
    }
}

#[cfg(test)]
mod tests {
    use present::Glyphs;

    use super::*;

    fn style() -> Style {
        Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() }
    }

    #[test]
    fn sheet_wraps_texts_and_escapes_controls() {
        let sheet = Sheet::new(&style(), Some(40))
            .head(&Cell::plain("!"), &["faithfulness@1", "", "0.62"])
            .line("id", "x")
            .line("rule", "")
            .line("reasoning", "one two three four five six\nseven\u{1b}[2J");
        let wanted = "! faithfulness@1  0.62\n  id          x\n  reasoning   one two three four five\n              six\n              seven⟦ESC⟧[2J\n";
        assert_eq!(sheet.text(), wanted);
        for columns in 20..60 {
            for mark in ["", "!", "paused"] {
                let sheet = Sheet::new(&style(), Some(columns));
                let text = sheet.head(&Cell::plain(mark), &["a name that is long", "and more of it"]).text();
                assert!(width(text.trim_end()) <= columns, "{text}");
            }
        }
    }
}
