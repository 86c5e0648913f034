//! The layout of Search.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::layout::{ALL_SECTIONS_ROWS, TWO_SECTIONS_ROWS, frame};

/// The parts of Search. Parts without room have no height.
#[derive(Clone, Copy, Debug)]
pub struct SearchLayout {
    /// Column heads and spans.
    pub list: Rect,
    /// The selected span with the rule above it.
    pub span: Rect,
    /// Recent searches with the rule above them.
    pub recent: Rect,
}

impl SearchLayout {
    /// Returns the number of spans that are visible at once.
    pub fn rows(&self) -> usize {
        usize::from(self.list.height.saturating_sub(1))
    }
}

/// Returns the parts of Search for a terminal of this size.
pub fn parts(size: (u16, u16)) -> SearchLayout {
    let body = frame(size).body;
    let (span, recent) = match body.height {
        ALL_SECTIONS_ROWS.. => (11, 5),
        TWO_SECTIONS_ROWS.. => (7, 0),
        9.. => (4, 0),
        _ => (0, 0),
    };
    let parts = [Constraint::Min(0), Constraint::Length(span), Constraint::Length(recent)];
    let [list, span, recent] = Layout::vertical(parts).areas(body);
    SearchLayout { list, span, recent }
}
