//! The layout of the list of traces.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::layout::frame;

/// Returns the parts of the list's body.
pub fn list(size: (u16, u16)) -> (Rect, Option<Rect>) {
    let body = frame(size).body;
    if size.1 < 30 {
        return (body, None);
    }
    let [rows, preview] = Layout::vertical([Constraint::Min(0), Constraint::Length(4)]).areas(body);
    (rows, Some(preview))
}

/// Number of rows of traces that are visible at once.
pub fn list_rows(size: (u16, u16)) -> usize {
    usize::from(list(size).0.height.saturating_sub(1))
}
