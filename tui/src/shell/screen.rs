//! The traits that a screen implements for the console.

use ratatui::{buffer::Buffer, layout::Rect};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{Shell, changes::ScreenChangeReplies, freshness::Stale, requests::ScreenReplies};
use crate::{
    ids::LoadedIds,
    input::LineKind,
    keymap::{Action, Scope},
    net::Effect,
    widgets::table::Pieces,
};

/// The position of the first wrong character of a line, from 0, and the problem.
pub type LineError = (usize, String);

/// The entry of a screen in the tab line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tab {
    /// The digit that goes to the screen.
    pub digit: u8,
    /// The title.
    pub title: &'static str,
    /// The title for 80 columns.
    pub short: &'static str,
}

/// A word that `tab` can complete, and the help shown once it is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The word.
    pub text: String,
    /// The help.
    pub help: String,
}

/// Returns the completions of a field: its name, and its name with each value.
pub fn field_completions<'a>(
    name: &str,
    values: impl IntoIterator<Item = &'a str>,
    help: &str,
) -> Vec<Completion> {
    let word = |value: &str| Completion { text: format!("{name}:{value}"), help: help.to_owned() };
    std::iter::once(word("")).chain(values.into_iter().map(word)).collect()
}

/// The records that `e` writes to a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Export {
    /// One record as JSON.
    Record(String),
    /// Rows, as CSV or as a line of JSON each.
    Rows(Vec<Value>),
}

impl Export {
    /// Returns rows to write.
    pub fn rows<'a, T: Serialize + 'a>(rows: impl IntoIterator<Item = &'a T>) -> Self {
        Self::Rows(rows.into_iter().filter_map(|row| serde_json::to_value(row).ok()).collect())
    }
}

/// A screen. The supertraits are its parts: a screen implements each of them in the file that has the code.
///
/// The console calls these methods; a screen never calls another screen. A screen that leads
/// elsewhere returns an [`Effect::Go`].
pub trait Screen:
    ScreenActions + ScreenReplies + ScreenChangeReplies + ScreenView + ScreenRecords + ScreenLines
{
    /// Returns the entry in the tab line.
    fn tab(&self) -> Tab;

    /// Returns the current key scope of the screen.
    fn scope(&self) -> Scope;

    /// Discards everything but the user's settings, because the context changes.
    fn reset(&mut self) {}

    /// Brings derived state up to date after each message.
    fn settle(&mut self, _shell: &Shell) {}
}

/// Handlers of a screen for keys, ticks, and changes of project or connection.
pub trait ScreenActions {
    /// Requests what the screen shows, when the user goes there.
    fn enter(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        Vec::new()
    }

    /// Performs an action of the screen's key scope.
    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect>;

    /// Handles the passing of time, once a second and before each key.
    fn tick(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        Vec::new()
    }

    /// Discards the records of the previous project and requests those of the new one if the screen is shown.
    fn project_changed(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        Vec::new()
    }

    /// Requests what the tab line shows of the screen: as soon as the identity is known, then every 30 seconds.
    fn background(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        Vec::new()
    }

    /// Repeats failed requests after an outage of the server.
    fn reconnected(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        Vec::new()
    }
}

/// Drawing of a screen. No method changes the screen.
pub trait ScreenView {
    /// Returns whether there are records to show. Without them, the console explains in place of the screen that
    /// the server refuses the credential.
    fn has_records(&self, _shell: &Shell) -> bool {
        true
    }

    /// Returns the count that the tab line shows beside the title.
    fn badge(&self, _shell: &Shell) -> Option<String> {
        None
    }

    /// Draws the body.
    fn draw(&self, shell: &Shell, buffer: &mut Buffer, area: Rect);

    /// Returns line 3: the filter, the breadcrumb or the tabs of the screen.
    fn line(&self, _shell: &Shell, _cols: usize) -> Pieces {
        Pieces::new()
    }

    /// Returns the status line.
    fn status(&self, _shell: &Shell) -> String {
        String::new()
    }

    /// Returns why the records are not current, if their own requests fail.
    fn stale(&self) -> Option<Stale<'_>> {
        None
    }

    /// Returns the footer word of an action where it differs from the key map; an empty word leaves the
    /// action out.
    fn footer_word(&self, _action: Action) -> Option<&'static str> {
        None
    }
}

/// The records of a screen, for the actions that every screen has: find, mark, copy and export.
pub trait ScreenRecords {
    /// Returns the search text of the find action.
    fn find(&self) -> Option<&str> {
        None
    }

    /// Sets the search text of the find action, in lower case.
    fn set_find(&mut self, _words: Option<String>) {}

    /// Returns whether find matches the row under the cursor.
    fn is_on_hit(&self) -> bool {
        true
    }

    /// Returns the trace under the cursor.
    fn current_trace(&self) -> Option<Uuid> {
        None
    }

    /// Returns the trace that can be marked, and its name.
    fn markable(&self) -> Option<(Uuid, Option<String>)> {
        None
    }

    /// Adds the ids of loaded records.
    fn loaded_ids(&self, _ids: &mut LoadedIds) {}

    /// Suggests the name of the file that `e` writes; none if there is nothing to write.
    fn export_name(&self) -> Option<String> {
        None
    }

    /// Returns the records that `e` writes.
    fn export(&self, _shell: &Shell) -> Option<Export> {
        None
    }

    /// Returns what a copy action copies: a description and the text. Never a credential.
    fn copy(&self, _shell: &Shell, _action: Action) -> Option<(&'static str, String)> {
        None
    }
}

/// The lines of text that a screen reads: a filter, a query.
pub trait ScreenLines {
    /// Returns the lines used before, oldest first.
    fn history(&self, _line: LineKind) -> &[String] {
        &[]
    }

    /// Adds a line to the history.
    fn history_mut(&mut self, _line: LineKind) -> Option<&mut Vec<String>> {
        None
    }

    /// Returns the completions of a line.
    fn completions(&self, _shell: &Shell, _line: LineKind) -> Vec<Completion> {
        Vec::new()
    }

    /// Checks a line while it is edited.
    fn check(&self, _shell: &Shell, _line: LineKind, _text: &str) -> Option<LineError> {
        None
    }

    /// Applies a line.
    ///
    /// # Errors
    /// Fails when the line is invalid.
    fn submit(
        &mut self,
        _shell: &mut Shell,
        _line: LineKind,
        _text: &str,
        _loaded: &LoadedIds,
    ) -> Result<Vec<Effect>, LineError> {
        Ok(Vec::new())
    }
}
