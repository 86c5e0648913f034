//! The layout of Evals.

use ratatui::layout::Rect;

use super::state::EvalsSection;
use crate::layout::{ALL_SECTIONS_ROWS, TWO_SECTIONS_ROWS, frame};

/// Number of rows below the evaluations: the line above the rules, their heads, and some of the rules.
const RULE_ROWS: u16 = 9;

/// The parts of Evals. Parts without room have no height.
#[derive(Clone, Copy, Debug)]
pub struct EvalsLayout {
    /// Column heads and evaluations.
    pub list: Rect,
    /// The selected evaluation or rule with the rule above it.
    pub pane: Rect,
    /// The rules; below the pane with a rule above them.
    pub rules: Rect,
}

impl EvalsLayout {
    /// Returns the number of evaluations that are visible at once.
    pub fn rows(&self) -> usize {
        usize::from(self.list.height.saturating_sub(1))
    }

    /// Rules that are visible at once.
    pub fn rule_rows(&self) -> usize {
        // Below the pane there is a rule above them.
        usize::from(self.rules.height.saturating_sub(if self.list.height > 0 { 2 } else { 1 }))
    }
}

/// Returns the parts of Evals for a terminal of this size. `has_result` states whether the pane shows a test or
/// decisions of a rule, which replace the rules if there is no room for both.
pub fn parts(size: (u16, u16), part: EvalsSection, has_result: bool) -> EvalsLayout {
    let body = frame(size).body;
    let pane = match body.height {
        ALL_SECTIONS_ROWS.. => 9,
        18.. => 8,
        TWO_SECTIONS_ROWS.. => 7,
        9.. => 4,
        height if has_result && part == EvalsSection::Rules => height,
        _ => 0,
    };
    let [list, rules] = match part {
        _ if body.height >= ALL_SECTIONS_ROWS => [body.height - pane - RULE_ROWS, RULE_ROWS],
        EvalsSection::List => [body.height - pane, 0],
        EvalsSection::Rules => [0, body.height - pane],
    };
    let at = |y: u16, height: u16| Rect { y: body.y + y, height, ..body };
    if list == 0 {
        // Without the evaluations, the rules stand above their pane.
        return EvalsLayout { list: at(0, 0), rules: at(0, rules), pane: at(rules, pane) };
    }
    EvalsLayout { list: at(0, list), pane: at(list, pane), rules: at(list + pane, rules) }
}
