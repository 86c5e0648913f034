//! One opened trace: its spans, the cursor among them, and the panes below.

pub mod content;
mod layout;
mod remediation;
#[cfg(test)]
pub mod tests;
pub mod tree;
pub mod update;
pub mod view;

use std::{collections::HashMap, sync::Arc};

use api::{
    Timestamp,
    eval::{Evaluation, EvaluationList},
    eval_rule::RuleDecision,
    trace::{Event, Span, SpanList, Trace},
};
use uuid::Uuid;

use crate::{
    evaluations::standing,
    find,
    net::NetError,
    record::Record,
    shell::Reader,
    widgets::json::{PaneLine, Toggled},
};
use present::evaluation::EvaluationMark;

use content::{DetailTab, Setting, TEXT_STEP, result_lines, scores, tab_lines};
use layout::{GUTTER_COLS, Shown, parts};
use remediation::{Remediation, remediations};
use tree::Tree;

/// Microseconds after its end during which a trace is young.
const YOUNG_MICROS: i64 = 120_000_000;

/// Lines and a cursor among them.
#[derive(Debug, Default)]
pub struct Pane {
    /// The lines, wrapped to the pane.
    pub lines: Vec<PaneLine>,
    /// The line under the cursor.
    pub cursor: usize,
}

/// The evaluations of the trace.
#[derive(Debug, Default)]
pub struct Scores {
    /// The evaluations, newest first; none before they were requested.
    pub list: Option<EvaluationList>,
    /// The error of the last request, if it failed.
    pub error: Option<NetError>,
    /// Number of consecutive failed requests.
    pub failures: u32,
    /// Time at which to request them again, while one is not finished or further ones are expected.
    pub next: Option<Timestamp>,
    /// The decisions of the project's rules on the trace, once requested.
    pub rules: Option<TraceRules>,
}

/// The decisions of a project's rules on a trace.
#[derive(Debug, Default)]
pub struct TraceRules {
    /// Whether the rules have arrived.
    pub loaded: bool,
    /// The error of the request, if it failed.
    pub error: Option<NetError>,
    /// The rules whose decisions are requested, one at a time.
    pub asked: Vec<RuleVerdict>,
    /// Number of further rules, whose decisions are not requested.
    pub more: usize,
}

/// The decision of one rule.
#[derive(Debug)]
pub struct RuleVerdict {
    /// The id of the rule.
    pub rule: Uuid,
    /// The metric of the rule.
    pub metric: String,
    /// The decision, or the error of the request; none before the response.
    pub answer: Option<Result<Option<RuleDecision>, NetError>>,
}

impl Scores {
    /// Returns the loaded evaluations.
    pub fn rows(&self) -> &[Evaluation] {
        self.list.as_ref().map(|list| list.evaluations.as_slice()).unwrap_or_default()
    }

    /// Returns the mark of an evaluation. Its baseline belongs to the same trace, so it is loaded.
    pub fn standing(&self, it: &Evaluation) -> EvaluationMark {
        let baseline = it.original_evaluation_id;
        let baseline = self.rows().iter().find(|row| Some(row.id) == baseline).and_then(|row| row.score);
        standing(it, baseline)
    }
}

/// The part with the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    /// The span tree.
    #[default]
    Tree,
    /// The left or only pane.
    Left,
    /// The right pane.
    Right,
}

/// One opened trace.
#[derive(Debug)]
pub struct Detail {
    /// The id of the trace.
    pub id: Uuid,
    /// The trace without its spans and events: first the row of the list, then the response.
    pub trace: Option<Arc<Trace>>,
    /// The spans by start.
    pub spans: Vec<Span>,
    /// The events by time.
    pub events: Vec<Event>,
    /// The spans as a tree.
    pub tree: Tree,
    /// The spans that are the output of control actions, by their ids.
    pub remediations: HashMap<Uuid, Remediation>,
    /// The evaluations.
    pub scores: Scores,
    /// The row under the cursor.
    pub selected: usize,
    /// Whether the user moved the cursor.
    pub moved: bool,
    /// The span to put the cursor on as soon as it has arrived.
    pub wanted: Option<Uuid>,
    /// Digit of the screen to go back to.
    pub from: u8,
    /// The part with the focus.
    pub focus: Focus,
    /// The tab of the lower half.
    pub tab: DetailTab,
    /// Whether the panes fill the body.
    pub zoomed: bool,
    /// Whether two panes are shown, if the width allows.
    pub split: bool,
    /// Whether JSON is shown as plain text.
    pub as_text: bool,
    /// The left or only pane.
    pub left: Pane,
    /// The right pane.
    pub right: Pane,
    /// The cursor of the next page of spans, if there are more.
    pub next_cursor: Option<String>,
    /// Whether the spans have arrived.
    pub loaded: bool,
    /// The error of the request, if it failed.
    pub error: Option<NetError>,
    /// Time at which to request the evaluations again after a failure.
    pub next: Option<Timestamp>,
    /// Words that find looks for, in lower case.
    pub find: Option<String>,
    toggled: Toggled,
    limit: usize,
    /// Marks the panes as out of date, so that they are composed again.
    stale: bool,
}

impl Detail {
    /// Returns a trace that is being loaded; `row` is its row of the list.
    pub fn new(id: Uuid, row: Option<Arc<Trace>>) -> Self {
        Self {
            id,
            trace: row,
            spans: Vec::new(),
            events: Vec::new(),
            tree: Tree::default(),
            remediations: HashMap::new(),
            scores: Scores::default(),
            selected: 0,
            moved: false,
            wanted: None,
            from: 1,
            focus: Focus::Tree,
            tab: DetailTab::Input,
            zoomed: false,
            split: true,
            as_text: false,
            left: Pane::default(),
            right: Pane::default(),
            next_cursor: None,
            loaded: false,
            error: None,
            next: None,
            find: None,
            toggled: Toggled::new(),
            limit: TEXT_STEP,
            stale: true,
        }
    }

    /// Stores the response. The cursor stays on its span; if the user never moved it, it goes to the span
    /// where the failure began.
    pub fn load(&mut self, mut trace: Trace) {
        let current = self.current().map(|span| span.id);
        self.spans = trace.spans.take().unwrap_or_default();
        self.events = trace.events.take().unwrap_or_default();
        self.next_cursor = trace.spans_next_cursor.take();
        self.trace = Some(Arc::new(trace));
        self.loaded = true;
        self.error = None;
        self.rebuild(current);
    }

    /// Adds a page of spans.
    pub fn extend(&mut self, page: SpanList) {
        let current = self.current().map(|span| span.id);
        self.spans.extend(page.spans);
        self.next_cursor = page.next_cursor.filter(|_| page.has_more);
        self.rebuild(current);
    }

    fn rebuild(&mut self, current: Option<Uuid>) {
        self.tree.rebuild(&self.spans);
        self.remediations = remediations(&self.spans);
        let wanted = self.wanted.filter(|id| self.tree.position(&self.spans, *id).is_some());
        if wanted.is_some() {
            self.wanted = None;
            self.moved = true;
        }
        let current = wanted.or(current);
        let kept = current.filter(|_| self.moved).and_then(|id| self.tree.position(&self.spans, id));
        self.selected = kept.or_else(|| self.tree.first_failure(&self.spans)).unwrap_or(0);
        let read = self.tab != DetailTab::Evals;
        if read
            && !self.moved
            && self.current().is_some_and(|span| span.error.is_some() && span.input.is_none())
        {
            self.tab = DetailTab::Error;
        }
        self.stale = true;
    }

    /// Returns the span under the cursor.
    pub fn current(&self) -> Option<&Span> {
        self.tree.rows.get(self.selected).and_then(|row| self.spans.get(row.span))
    }

    /// Returns the action whose output the span under the cursor is, else the newest action that repeated the span.
    pub fn current_action(&self) -> Option<Uuid> {
        let current = self.current()?.id;
        if let Some(remediation) = self.remediations.get(&current) {
            return Some(remediation.action);
        }
        let of_span = |span: &Span| {
            let remediation = self.remediations.get(&span.id)?;
            (remediation.original == Some(current)).then_some(remediation.action)
        };
        self.spans.iter().rev().find_map(of_span)
    }

    /// Returns the record that the panes show.
    pub fn subject(&self) -> Option<Record<'_>> {
        match (self.current(), &self.trace) {
            (Some(span), trace) => Some(Record::Span(span, trace.as_deref())),
            (None, Some(trace)) => Some(Record::Trace(trace)),
            (None, None) => None,
        }
    }

    /// Returns whether rules may still evaluate the trace: they run once the trace is ready, and a worker
    /// claims the evaluations a little later.
    pub fn young(&self, now: Timestamp) -> bool {
        self.trace.as_ref().is_some_and(|trace| {
            let last = trace.ended_at.unwrap_or(trace.started_at);
            !trace.ready || now.micros() - last.micros() < YOUNG_MICROS
        })
    }

    /// Returns the number of failed spans among the loaded ones.
    pub fn failures(&self) -> usize {
        self.spans.iter().filter(|span| span.error.is_some()).count()
    }

    /// Puts the cursor on a row of the tree; the panes show its span from the top.
    pub fn select(&mut self, at: usize) {
        let at = at.min(self.tree.rows.len().saturating_sub(1));
        self.moved = true;
        if at != self.selected {
            self.selected = at;
            self.toggled.clear();
            self.limit = TEXT_STEP;
            self.left.cursor = 0;
            self.right.cursor = 0;
            self.stale = true;
        }
    }

    /// Folds or unfolds the span under the cursor; without children, goes to its parent.
    pub fn fold(&mut self, fold: bool) {
        let Some(row) = self.tree.rows.get(self.selected).copied() else { return };
        let Some(id) = self.current().map(|span| span.id) else { return };
        self.moved = true;
        if row.parent && row.folded != fold {
            self.tree.set_folded(&self.spans, id, fold);
            self.selected = self.tree.position(&self.spans, id).unwrap_or(0);
        } else if fold && row.depth > 0 {
            let above = self.tree.rows[..self.selected].iter().rposition(|it| it.depth < row.depth);
            self.select(above.unwrap_or(0));
        }
    }

    /// Returns the pane with the focus.
    pub fn pane(&self) -> Option<&Pane> {
        match self.focus {
            Focus::Tree => None,
            Focus::Left => Some(&self.left),
            Focus::Right => Some(&self.right),
        }
    }

    /// Returns the pane with the focus.
    pub fn pane_mut(&mut self) -> Option<&mut Pane> {
        match self.focus {
            Focus::Tree => None,
            Focus::Left => Some(&mut self.left),
            Focus::Right => Some(&mut self.right),
        }
    }

    /// Returns whether the words of find, in lower case, occur in a line of the focused pane, or in
    /// the name, model or error of a row of the tree.
    pub fn hit(&self, at: usize, needle: &str) -> bool {
        if let Some(pane) = self.pane() {
            return pane.lines.get(at).is_some_and(|line| line.plain().to_lowercase().contains(needle));
        }
        let span = self.tree.rows.get(at).and_then(|row| self.spans.get(row.span));
        span.is_some_and(|span| {
            let texts = [Some(&span.name), span.model.as_ref(), span.error.as_ref()];
            texts.into_iter().flatten().any(|text| text.to_lowercase().contains(needle))
        })
    }

    /// Returns the number of the match at or before the cursor, from 1, and the number of matches.
    pub fn hits(&self) -> Option<(usize, usize)> {
        let needle = self.find.as_deref()?;
        let (cursor, count) = match self.pane() {
            Some(pane) => (pane.cursor, pane.lines.len()),
            None => (self.selected, self.tree.rows.len()),
        };
        Some(find::counted(count, cursor, |at| self.hit(at, needle)))
    }

    /// Folds or unfolds the container under the pane's cursor, if there is one in that state.
    pub fn toggle(&mut self, wanted: Option<bool>) {
        let node = self.pane().and_then(|pane| pane.lines.get(pane.cursor)?.node.clone());
        let Some((path, folded)) = node else { return };
        if wanted.is_some_and(|fold| fold == folded) {
            return;
        }
        if !self.toggled.remove(&path) {
            self.toggled.insert(path);
        }
        self.stale = true;
    }

    /// Goes to the last line of the pane, which lays out the next piece of a long text.
    pub fn pane_end(&mut self) {
        self.limit = self.limit.saturating_add(TEXT_STEP);
        self.stale = true;
        if let Some(pane) = self.pane_mut() {
            pane.cursor = pane.lines.len().saturating_sub(1);
        }
    }

    /// Changes tab, mode or size: the panes are laid out again.
    pub fn touch(&mut self) {
        self.stale = true;
    }

    /// Goes forward by a number of tabs; in the split the first three are one.
    pub fn turn(&mut self, split: bool, forward: bool) {
        let tabs: &[DetailTab] = if split {
            &[DetailTab::Input, DetailTab::Evals, DetailTab::Meta, DetailTab::Json]
        } else {
            &DetailTab::ALL
        };
        let at = tabs.iter().position(|tab| *tab == self.tab).unwrap_or(0);
        let next = if forward { at + 1 } else { at + tabs.len() - 1 } % tabs.len();
        self.tab = tabs[next];
        self.left.cursor = 0;
        if self.focus == Focus::Right {
            self.focus = Focus::Left;
        }
        self.stale = true;
    }

    /// Returns the visible parts.
    pub fn shown(&self) -> Shown {
        let io = matches!(self.tab, DetailTab::Input | DetailTab::Output | DetailTab::Error);
        Shown {
            zoomed: self.zoomed,
            pane_focused: self.focus != Focus::Tree,
            split: self.split && io,
            tree_rows: self.tree.rows.len(),
        }
    }

    /// Lays the panes out for the terminal's size, if anything they show has changed.
    pub fn compose(&mut self, size: (u16, u16), reader: Reader, keys: &scores::Keys) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        let areas = parts(size, self.shown());
        let (left, right) = self.lay(areas.left.width, areas.right.map(|area| area.width), reader, keys);
        self.left.cursor = self.left.cursor.min(left.len().saturating_sub(1));
        self.right.cursor = self.right.cursor.min(right.len().saturating_sub(1));
        self.left.lines = left;
        self.right.lines = right;
        if self.focus == Focus::Right && areas.right.is_none() {
            self.focus = Focus::Left;
        }
    }

    fn lay(
        &self,
        left: u16,
        right: Option<u16>,
        reader: Reader,
        keys: &scores::Keys,
    ) -> (Vec<PaneLine>, Vec<PaneLine>) {
        let setting = |width: u16| Setting {
            cols: usize::from(width.saturating_sub(GUTTER_COLS + 1)),
            limit: self.limit,
            as_text: self.as_text,
            toggled: &self.toggled,
            reader,
        };
        if self.tab == DetailTab::Evals {
            let lines = scores::lines(&self.scores, self.current(), &self.spans, keys, &setting(left));
            return (lines, Vec::new());
        }
        let Some(subject) = self.subject() else { return (Vec::new(), Vec::new()) };
        match right {
            Some(right) => (
                tab_lines(subject, DetailTab::Input, &self.events, &setting(left)),
                result_lines(subject, &self.events, &setting(right)),
            ),
            None => (tab_lines(subject, self.tab, &self.events, &setting(left)), Vec::new()),
        }
    }
}
