//! The layout of an opened trace.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::layout::{SPLIT_COLS, frame, single};

/// The visible parts of an opened trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Whether the pane fills the body.
    pub zoomed: bool,
    /// Whether the pane has the focus.
    pub pane_focused: bool,
    /// Whether the user chose two panes.
    pub split: bool,
    /// Returns the number of visible rows of the tree.
    pub tree_rows: usize,
}

/// The parts of the detail's body.
#[derive(Clone, Copy, Debug)]
pub struct DetailLayout {
    /// Column heads and spans; no height when zoomed.
    pub tree: Rect,
    /// The rule with the tabs.
    pub rule: Rect,
    /// The left or only pane.
    pub left: Rect,
    /// The right pane.
    pub right: Option<Rect>,
}

/// Returns the parts of the detail for a terminal of this size.
pub fn parts(size: (u16, u16), shown: Shown) -> DetailLayout {
    let body = frame(size).body;
    let one = single(size);
    let tree_height = if shown.zoomed || (one && shown.pane_focused) {
        0
    } else if one {
        body.height
    } else {
        let wanted = u16::try_from(shown.tree_rows.saturating_add(1)).unwrap_or(u16::MAX);
        wanted.clamp(3, (body.height / 2).max(3))
    };
    let rule_height = u16::from(tree_height < body.height);
    let parts = [Constraint::Length(tree_height), Constraint::Length(rule_height), Constraint::Min(0)];
    let [tree, rule, pane] = Layout::vertical(parts).areas(body);
    if !shown.split || size.0 < SPLIT_COLS {
        return DetailLayout { tree, rule, left: pane, right: None };
    }
    let [left, right] = Layout::horizontal([Constraint::Percentage(50), Constraint::Min(0)]).areas(pane);
    DetailLayout { tree, rule, left, right: Some(right) }
}

/// Width in columns of line numbers and marks before the text of a pane.
pub const GUTTER_COLS: u16 = 6;
