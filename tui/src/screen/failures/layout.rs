//! The layout of Failures.

use ratatui::layout::Rect;

use super::state::FailuresTab;
use crate::layout::{ALL_SECTIONS_ROWS, TWO_SECTIONS_ROWS, frame};

/// The parts of Failures. Parts without room have no height.
#[derive(Clone, Copy, Debug)]
pub struct FailuresLayout {
    /// Column heads and rows.
    pub list: Rect,
    /// The selected row with the rule above it.
    pub pane: Rect,
    /// The newest anomalies with the rule above them; below the clusters only.
    pub anomalies: Rect,
}

impl FailuresLayout {
    /// Returns the number of rows that are visible at once.
    pub fn rows(&self) -> usize {
        usize::from(self.list.height.saturating_sub(1))
    }
}

/// Returns the parts of Failures for a terminal of this size. The failures of a cluster have no anomalies below
/// them.
pub fn parts(size: (u16, u16), tab: FailuresTab, has_events: bool) -> FailuresLayout {
    let body = frame(size).body;
    let with_anomalies = tab == FailuresTab::Clusters && !has_events;
    let (pane, anomalies) = match body.height {
        ALL_SECTIONS_ROWS.. => (11, 6),
        18.. => (7, 4),
        TWO_SECTIONS_ROWS.. => (6, 0),
        9.. => (4, 0),
        _ => (0, 0),
    };
    let anomalies = if with_anomalies { anomalies } else { 0 };
    let list = body.height - pane - anomalies;
    let at = |y: u16, height: u16| Rect { y: body.y + y, height, ..body };
    FailuresLayout { list: at(0, list), pane: at(list, pane), anomalies: at(list + pane, anomalies) }
}
