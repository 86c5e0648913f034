//! The line editor of the filter and of find.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

/// Maximum length of a line, in bytes; a pasted page is not a filter.
const MAX_LINE_BYTES: usize = 1_000;
/// Maximum length of a line of a dialog, in bytes; it can hold a schema.
const MAX_DIALOG_LINE_BYTES: usize = 16 * 1_024;

/// A line that a screen defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineKind {
    /// The text before the line.
    pub prompt: &'static str,
    /// The text at the right end.
    pub hint: &'static str,
}

/// The use of a line of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// A line of the current screen, such as its filter.
    Screen(LineKind),
    /// Find in the loaded records.
    Find,
    /// Find among the keys of help.
    Help,
    /// Find an action, a screen, a project or a filter by name.
    Palette,
    /// The file to write to.
    Export,
    /// A field of a dialog.
    Dialog,
}

impl InputKind {
    /// Returns the text before the line.
    pub const fn prompt(self) -> &'static str {
        match self {
            Self::Screen(line) => line.prompt,
            Self::Find => " find ",
            Self::Help => " keys ",
            Self::Palette => " : ",
            Self::Export => " write to ",
            Self::Dialog => "",
        }
    }

    /// Returns the text at the right end of the line.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Screen(line) => line.hint,
            Self::Find => "find in what is loaded",
            Self::Help => "narrow down",
            Self::Palette => "actions, screens, projects",
            Self::Export => ".csv or .ndjson",
            Self::Dialog => "",
        }
    }
}

/// A line being edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The use of the line.
    pub kind: InputKind,
    text: String,
    /// Byte offset of the cursor, always between grapheme clusters.
    cursor: usize,
    /// The position in the history, counted from its end; 0 for the text itself.
    back: usize,
    draft: String,
}

/// The effect of a key on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The text or the cursor changed, or nothing did.
    Stay,
    /// The text is accepted.
    Accept,
    /// The text is discarded.
    Cancel,
    /// The word under the cursor is completed.
    Complete,
}

impl Input {
    /// Returns a line with a text and the cursor at its end.
    pub fn new(kind: InputKind, text: &str) -> Self {
        Self { kind, text: text.to_owned(), cursor: text.len(), back: 0, draft: String::new() }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text before and after the cursor.
    pub fn around(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    /// Removes the text.
    pub fn clear(&mut self) {
        self.set("");
    }

    /// Inserts text at the cursor; line breaks become blanks.
    pub fn insert(&mut self, text: &str) {
        let limit = if self.kind == InputKind::Dialog { MAX_DIALOG_LINE_BYTES } else { MAX_LINE_BYTES };
        let room = limit.saturating_sub(self.text.len());
        let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let flat = &flat[..flat.floor_char_boundary(room)];
        self.text.insert_str(self.cursor, flat);
        self.cursor += flat.len();
    }

    /// Replaces the text before the cursor from a byte offset on.
    pub fn replace_from(&mut self, start: usize, with: &str) {
        if self.text.is_char_boundary(start) && start <= self.cursor {
            self.text.replace_range(start..self.cursor, with);
            self.cursor = start + with.len();
        }
    }

    /// Handles a key. `history` is oldest first.
    pub fn key(&mut self, key: KeyEvent, history: &[String]) -> Edit {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return Edit::Accept,
            KeyCode::Esc => return Edit::Cancel,
            KeyCode::Tab => return Edit::Complete,
            KeyCode::Char('c') if control => {
                if self.text.is_empty() {
                    return Edit::Cancel;
                }
                self.clear();
            }
            KeyCode::Char('u') if control => self.replace_from(0, ""),
            KeyCode::Char('w') if control => {
                let kept = self.text[..self.cursor].trim_end();
                let start = kept.rfind(' ').map_or(0, |at| at + 1);
                self.replace_from(start, "");
            }
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.text.len(),
            KeyCode::Left => self.cursor -= self.before(),
            KeyCode::Right => self.cursor += self.after(),
            KeyCode::Backspace => self.replace_from(self.cursor - self.before(), ""),
            KeyCode::Delete => {
                let end = self.cursor + self.after();
                self.text.replace_range(self.cursor..end, "");
            }
            KeyCode::Up => self.recall(history, self.back + 1),
            KeyCode::Down => self.recall(history, self.back.saturating_sub(1)),
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.insert(c.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        Edit::Stay
    }

    fn set(&mut self, text: &str) {
        self.text = text.to_owned();
        self.cursor = self.text.len();
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].graphemes(true).next_back().map_or(0, str::len)
    }

    fn after(&self) -> usize {
        self.text[self.cursor..].graphemes(true).next().map_or(0, str::len)
    }

    fn recall(&mut self, history: &[String], back: usize) {
        if back > history.len() || back == self.back {
            return;
        }
        if self.back == 0 {
            self.draft.clone_from(&self.text);
        }
        self.back = back;
        let text = if back == 0 { self.draft.clone() } else { history[history.len() - back].clone() };
        self.set(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILTER_LINE: LineKind = LineKind { prompt: " / ", hint: "" };

    fn press(input: &mut Input, code: KeyCode) -> Edit {
        input.key(KeyEvent::new(code, KeyModifiers::NONE), &["error:true".to_owned(), "model:x".to_owned()])
    }

    #[test]
    fn editing_never_splits_a_cluster() {
        let mut input = Input::new(InputKind::Find, "a👩‍👩‍👧e\u{301}");
        press(&mut input, KeyCode::Backspace);
        press(&mut input, KeyCode::Left);
        assert_eq!(input.around(), ("a", "👩‍👩‍👧"));
        press(&mut input, KeyCode::Delete);
        press(&mut input, KeyCode::Char('b'));
        assert_eq!(input.text(), "ab");
    }

    #[test]
    fn history_goes_back_and_returns_to_the_draft() {
        let mut input = Input::new(InputKind::Screen(FILTER_LINE), "dra");
        press(&mut input, KeyCode::Up);
        assert_eq!(input.text(), "model:x");
        press(&mut input, KeyCode::Up);
        press(&mut input, KeyCode::Up);
        assert_eq!(input.text(), "error:true");
        press(&mut input, KeyCode::Down);
        press(&mut input, KeyCode::Down);
        assert_eq!(input.text(), "dra");
    }

    #[test]
    fn pasted_page_becomes_one_bounded_line() {
        let mut input = Input::new(InputKind::Screen(FILTER_LINE), "");
        input.insert(&"ä\n".repeat(2_000));
        assert!(input.text().len() <= MAX_LINE_BYTES && !input.text().contains('\n'));
    }
}
