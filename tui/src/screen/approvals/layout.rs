//! The layout of Approvals.

use ratatui::layout::Rect;

use crate::layout::{ALL_SECTIONS_ROWS, frame};

/// Maximum rows of the queue with its column heads, if there is room for the pane too.
const MAX_LIST_ROWS: u16 = 10;
/// From this many columns on, the two texts of a diff are shown side by side.
const SIDE_BY_SIDE_COLS: u16 = 76;

/// The parts of Approvals. Parts without room have no height.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalsLayout {
    /// Column heads and rows.
    pub list: Rect,
    /// The selected row, with the rule above it.
    pub pane: Rect,
}

impl ApprovalsLayout {
    /// Returns the number of rows that are visible at once.
    pub fn rows(&self) -> usize {
        usize::from(self.list.height.saturating_sub(1))
    }
}

/// Returns whether there is room for two texts side by side.
pub const fn has_two_sides(size: (u16, u16)) -> bool {
    size.0 >= SIDE_BY_SIDE_COLS
}

/// Returns the parts of Approvals for a terminal of this size with this number of rows.
pub fn parts(size: (u16, u16), rows: usize) -> ApprovalsLayout {
    let body = frame(size).body;
    let needed = u16::try_from(rows).unwrap_or(u16::MAX).clamp(2, MAX_LIST_ROWS) + 1;
    let list = match body.height {
        ALL_SECTIONS_ROWS.. => needed,
        14.. => needed.min(5),
        9.. => needed.min(4),
        _ => body.height,
    };
    let at = |y: u16, height: u16| Rect { y: body.y + y, height, ..body };
    ApprovalsLayout { list: at(0, list), pane: at(list, body.height - list) }
}
