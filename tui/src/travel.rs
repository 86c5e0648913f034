//! Moving a cursor over rows.

use crate::keymap::Action;

/// Returns the row that a movement leads to; none if the action is not a movement. `last` is the
/// last row, `page` the number of rows on a page.
pub fn to(action: Action, at: usize, last: usize, page: usize) -> Option<usize> {
    Some(match action {
        Action::Up => at.saturating_sub(1),
        Action::Down => (at + 1).min(last),
        Action::PageUp => at.saturating_sub(page),
        Action::PageDown => (at + page).min(last),
        Action::Top => 0,
        Action::Bottom => last,
        _ => return None,
    })
}
