//! Where things stand on the screen, as plain functions of its size.
//!
//! `update` needs the same rectangles as `view`: how far a page moves, and how wide a text is
//! wrapped.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::{evals::Part, manage::Tab};

/// Below this many columns or rows only one line is shown.
pub const MIN_COLS: u16 = 40;
/// See [`MIN_COLS`].
pub const MIN_ROWS: u16 = 10;
/// From this many columns on the detail has room for two panes.
pub const SPLIT_COLS: u16 = 110;

/// The parts of the screen, from top to bottom. Parts without room have no height.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Where am I.
    pub header: Rect,
    /// The screens.
    pub tabs: Rect,
    /// Filter or breadcrumb.
    pub line: Rect,
    /// The screen's own.
    pub body: Rect,
    /// Status, toasts and the line editor's complaint.
    pub status: Rect,
    /// Keys.
    pub keys: Rect,
}

/// Whether the terminal is too small for more than a sentence.
pub fn too_small(size: (u16, u16)) -> bool {
    size.0 < MIN_COLS || size.1 < MIN_ROWS
}

/// Whether there is room for one pane only.
pub fn single(size: (u16, u16)) -> bool {
    size.0 < 60 || size.1 < 15
}

/// The parts of a screen of this size.
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

/// The parts of the list's body.
pub fn list(size: (u16, u16)) -> (Rect, Option<Rect>) {
    let body = frame(size).body;
    if size.1 < 30 {
        return (body, None);
    }
    let [rows, preview] = Layout::vertical([Constraint::Min(0), Constraint::Length(4)]).areas(body);
    (rows, Some(preview))
}

/// Rows of traces that are visible at once.
pub fn list_rows(size: (u16, u16)) -> usize {
    usize::from(list(size).0.height.saturating_sub(1))
}

/// Rows of the body from which all sections of Keys & Projects are shown, or two of them.
const ALL_SECTIONS: u16 = 28;
const TWO_SECTIONS: u16 = 14;
/// Rows of a section without records: a panel stands there.
const PANEL: u16 = 10;

/// The sections of Keys & Projects that there is room for, from top to bottom. All but the
/// first begin with a rule. `counts` are the rows of keys and projects, and the lines of the plan.
pub fn sections(size: (u16, u16), tab: Tab, counts: [usize; 3]) -> Vec<(Tab, Rect)> {
    let body = frame(size).body;
    let [keys, projects, plan] = counts.map(|count| u16::try_from(count).unwrap_or(u16::MAX / 2));
    let with_plan = body.height >= ALL_SECTIONS;
    if body.height < TWO_SECTIONS || (tab == Tab::Plan && !with_plan) {
        return vec![(tab, body)];
    }
    let plan = if with_plan { (plan + 1).min(body.height / 2) } else { 0 };
    let rest = body.height - plan;
    let wanted = |rows: u16, more: u16| if rows == 0 { PANEL } else { rows.saturating_add(more) };
    let projects = wanted(projects, 3).min(rest / 2);
    let keys = wanted(keys, 2).min(rest - projects);
    let at = |y: u16, height: u16| Rect { y: body.y + y, height, ..body };
    let mut sections = vec![(Tab::Keys, at(0, keys)), (Tab::Projects, at(keys, projects))];
    if with_plan {
        sections.push((Tab::Plan, at(keys + projects, plan)));
    }
    sections
}

/// Rows of the table of metrics: the heads, the metrics of traces, and the one of the project.
const METRIC_ROWS: u16 = 9;
/// Columns of a chart's labels and its axis.
pub const AXIS: u16 = 10;
/// The tallest chart; a taller one tells no more.
const TALLEST: u16 = 20;

/// The parts of Metrics. Parts without room have no height.
#[derive(Clone, Copy, Debug)]
pub struct Metrics {
    /// The table, or the numbers.
    pub table: Rect,
    /// The chart with the rule above it.
    pub chart: Rect,
    /// The feedback with the rule above it.
    pub feedback: Option<Rect>,
}

/// The parts of Metrics for a terminal of this size. With the numbers of the points there is
/// room for nothing else.
pub fn metrics(size: (u16, u16), numbers: bool) -> Metrics {
    let body = frame(size).body;
    let none = Rect { y: body.bottom(), height: 0, ..body };
    if numbers || body.height < METRIC_ROWS + 5 {
        return Metrics { table: body, chart: none, feedback: None };
    }
    let roomy = body.height >= ALL_SECTIONS && size.0 >= 76;
    let chart = (body.height - METRIC_ROWS - if roomy { 4 } else { 0 }).min(TALLEST);
    let at = |y: u16, height: u16| Rect { y: body.y + y, height, ..body };
    Metrics {
        table: at(0, METRIC_ROWS),
        chart: at(METRIC_ROWS, chart),
        feedback: roomy.then(|| at(METRIC_ROWS + chart, 4)),
    }
}

/// Columns of a chart that values can stand in.
pub fn plot_cols(size: (u16, u16)) -> usize {
    usize::from(size.0.saturating_sub(AXIS + 1)).max(1)
}

/// The parts of Search. Parts without room have no height.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Column heads and spans.
    pub list: Rect,
    /// The selected span with the rule above it.
    pub span: Rect,
    /// Searches of before with the rule above them.
    pub recent: Rect,
}

impl Search {
    /// Spans that are visible at once.
    pub fn rows(&self) -> usize {
        usize::from(self.list.height.saturating_sub(1))
    }
}

/// The parts of Search for a terminal of this size.
pub fn search(size: (u16, u16)) -> Search {
    let body = frame(size).body;
    let (span, recent) = match body.height {
        ALL_SECTIONS.. => (11, 5),
        TWO_SECTIONS.. => (7, 0),
        9.. => (4, 0),
        _ => (0, 0),
    };
    let parts = [Constraint::Min(0), Constraint::Length(span), Constraint::Length(recent)];
    let [list, span, recent] = Layout::vertical(parts).areas(body);
    Search { list, span, recent }
}

/// Rows of the rules below the evaluations: the rule above them, heads, and some of them.
const RULE_ROWS: u16 = 9;

/// The parts of Evals. Parts without room have no height.
#[derive(Clone, Copy, Debug)]
pub struct Evals {
    /// Column heads and evaluations.
    pub list: Rect,
    /// The selected evaluation or rule with the rule above it.
    pub pane: Rect,
    /// The rules; below the pane with a rule above them.
    pub rules: Rect,
}

impl Evals {
    /// Evaluations that are visible at once.
    pub fn rows(&self) -> usize {
        usize::from(self.list.height.saturating_sub(1))
    }

    /// Rules that are visible at once.
    pub fn rule_rows(&self) -> usize {
        // Below the pane there is a rule above them.
        usize::from(self.rules.height.saturating_sub(if self.list.height > 0 { 2 } else { 1 }))
    }
}

/// The parts of Evals for a terminal of this size. `told`: the pane holds what the reader asked of
/// a rule, which takes the place of the rules where there is no room for both.
pub fn evals(size: (u16, u16), part: Part, told: bool) -> Evals {
    let body = frame(size).body;
    let pane = match body.height {
        ALL_SECTIONS.. => 9,
        18.. => 8,
        TWO_SECTIONS.. => 7,
        9.. => 4,
        height if told && part == Part::Rules => height,
        _ => 0,
    };
    let [list, rules] = match part {
        _ if body.height >= ALL_SECTIONS => [body.height - pane - RULE_ROWS, RULE_ROWS],
        Part::List => [body.height - pane, 0],
        Part::Rules => [0, body.height - pane],
    };
    let at = |y: u16, height: u16| Rect { y: body.y + y, height, ..body };
    if list == 0 {
        // Without the evaluations, the rules stand above their pane.
        return Evals { list: at(0, 0), rules: at(0, rules), pane: at(rules, pane) };
    }
    Evals { list: at(0, list), pane: at(list, pane), rules: at(list + pane, rules) }
}

/// What of the detail is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The pane fills the body.
    pub zoomed: bool,
    /// The keys go to the pane.
    pub pane_focused: bool,
    /// Two panes are wanted.
    pub split: bool,
    /// Visible rows of the tree.
    pub tree_rows: usize,
}

/// The parts of the detail's body.
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// Column heads and spans; no height when zoomed.
    pub tree: Rect,
    /// The rule with the tabs.
    pub rule: Rect,
    /// The left or only pane.
    pub left: Rect,
    /// The right pane.
    pub right: Option<Rect>,
}

/// The parts of the detail for a terminal of this size.
pub fn detail(size: (u16, u16), shown: Shown) -> Detail {
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
        return Detail { tree, rule, left: pane, right: None };
    }
    let [left, right] = Layout::horizontal([Constraint::Percentage(50), Constraint::Min(0)]).areas(pane);
    Detail { tree, rule, left, right: Some(right) }
}

/// Columns of line numbers and marks before the text of a pane.
pub const GUTTER: u16 = 6;
