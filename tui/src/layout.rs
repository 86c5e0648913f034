//! The layout of the frame around the screens, as functions of the terminal size.
//!
//! `update` needs the same rectangles as `view`, for the rows of a page and the width of a wrapped
//! text.

use ratatui::layout::{Constraint, Layout, Rect};

/// Minimum width of the terminal in columns; a smaller terminal shows only one line.
pub const MIN_COLS: u16 = 40;
/// Minimum height of the terminal in rows; a smaller terminal shows only one line.
pub const MIN_ROWS: u16 = 10;
/// Minimum width in columns at which the detail of a trace has room for two panes.
pub const SPLIT_COLS: u16 = 110;

/// The parts of the screen, from top to bottom. Parts without room have no height.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The context, the project and the connection.
    pub header: Rect,
    /// The screens.
    pub tabs: Rect,
    /// Filter or breadcrumb.
    pub line: Rect,
    /// The content of the screen.
    pub body: Rect,
    /// Status, notices and the error of the line editor.
    pub status: Rect,
    /// Keys.
    pub keys: Rect,
}

/// Returns whether the terminal has room for a sentence only.
pub fn too_small(size: (u16, u16)) -> bool {
    size.0 < MIN_COLS || size.1 < MIN_ROWS
}

/// Returns whether there is room for one pane only.
pub fn single(size: (u16, u16)) -> bool {
    size.0 < 60 || size.1 < 15
}

/// Returns the parts of a terminal of this size.
pub fn frame(size: (u16, u16)) -> Frame {
    let tabs = u16::from(!single(size));
    let rows = [
        Constraint::Length(1),
        Constraint::Length(tabs),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
        Constraint::Length(1),
    ];
    let [header, tabs, line, body, status, keys] =
        Layout::vertical(rows).areas(Rect::new(0, 0, size.0, size.1));
    Frame { header, tabs, line, body, status, keys }
}

/// Minimum height in rows of a body that has room for all sections of a screen.
pub const ALL_SECTIONS_ROWS: u16 = 28;
/// Minimum height in rows of a body that has room for two sections of a screen.
pub const TWO_SECTIONS_ROWS: u16 = 14;
