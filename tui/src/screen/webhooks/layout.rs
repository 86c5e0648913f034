//! The layout of Webhooks.

use ratatui::layout::Rect;

use super::state::WebhooksSection;
use crate::layout::{ALL_SECTIONS_ROWS, TWO_SECTIONS_ROWS, frame};

/// Maximum rows of the webhooks with their column heads, if there is room for the deliveries too.
const MAX_LIST_ROWS: u16 = 10;

/// The parts of Webhooks. Parts without room have no height.
#[derive(Clone, Copy, Debug)]
pub struct WebhooksLayout {
    /// Column heads and webhooks.
    pub list: Rect,
    /// The selected webhook and its test, with the rule above them.
    pub test: Rect,
    /// The deliveries, with the rule and the column heads above them.
    pub log: Rect,
    /// The selected delivery, with the rule above it.
    pub delivery: Rect,
}

impl WebhooksLayout {
    /// Returns the number of webhooks that are visible at once.
    pub fn rows(&self) -> usize {
        usize::from(self.list.height.saturating_sub(1))
    }

    /// Returns the number of deliveries that are visible at once.
    pub fn log_rows(&self) -> usize {
        usize::from(self.log.height.saturating_sub(2))
    }
}

/// Returns the parts of Webhooks for a terminal of this size with this number of webhooks.
pub fn parts(size: (u16, u16), section: WebhooksSection, webhooks: usize) -> WebhooksLayout {
    let body = frame(size).body;
    let wanted = u16::try_from(webhooks).unwrap_or(u16::MAX).clamp(2, MAX_LIST_ROWS) + 1;
    let [list, test, log, delivery] = match (body.height, section) {
        (ALL_SECTIONS_ROWS.., _) => {
            let list = wanted.min(body.height - 25);
            [list, 8, body.height - list - 17, 9]
        }
        (18.., _) => {
            let list = wanted.min(5);
            [list, 6, body.height - list - 6, 0]
        }
        (TWO_SECTIONS_ROWS.., WebhooksSection::List) => [body.height - 6, 6, 0, 0],
        (9.., WebhooksSection::List) => [body.height - 4, 4, 0, 0],
        (TWO_SECTIONS_ROWS.., WebhooksSection::Deliveries) => [0, 0, body.height - 5, 5],
        (_, WebhooksSection::List) => [body.height, 0, 0, 0],
        (_, WebhooksSection::Deliveries) => [0, 0, body.height, 0],
    };
    let at = |y: u16, height: u16| Rect { y: body.y + y, height, ..body };
    WebhooksLayout {
        list: at(0, list),
        test: at(list, test),
        log: at(list + test, log),
        delivery: at(list + test + log, delivery),
    }
}
