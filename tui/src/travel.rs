//! Moving a cursor over rows.

use crate::keymap::Action;

/// Where an action of movement leads from a row; nothing if it is no movement. `last` is the
/// last row, `page` the rows of a page.
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
