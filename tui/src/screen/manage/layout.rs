//! The layout of Keys & Projects.

use ratatui::layout::Rect;

use super::state::Section;
use crate::layout::{ALL_SECTIONS_ROWS, TWO_SECTIONS_ROWS, frame};

/// Number of rows of the panel in a section without records.
const PANEL_ROWS: u16 = 10;

/// Returns the sections of Keys & Projects that there is room for, from top to bottom. All but the
/// first begin with a rule. Rejections are shown alone. `counts` are the rows of keys and projects, and the lines of the plan.
pub fn sections(size: (u16, u16), tab: Section, counts: [usize; 3]) -> Vec<(Section, Rect)> {
    let body = frame(size).body;
    let [keys, projects, plan] = counts.map(|count| u16::try_from(count).unwrap_or(u16::MAX / 2));
    let with_plan = body.height >= ALL_SECTIONS_ROWS;
    if tab == Section::Rejections || body.height < TWO_SECTIONS_ROWS || (tab == Section::Plan && !with_plan) {
        return vec![(tab, body)];
    }
    let plan = if with_plan { (plan + 1).min(body.height / 2) } else { 0 };
    let rest = body.height - plan;
    let wanted = |rows: u16, more: u16| if rows == 0 { PANEL_ROWS } else { rows.saturating_add(more) };
    let projects = wanted(projects, 3).min(rest / 2);
    let keys = wanted(keys, 2).min(rest - projects);
    let at = |y: u16, height: u16| Rect { y: body.y + y, height, ..body };
    let mut sections = vec![(Section::Keys, at(0, keys)), (Section::Projects, at(keys, projects))];
    if with_plan {
        sections.push((Section::Plan, at(keys + projects, plan)));
    }
    sections
}
