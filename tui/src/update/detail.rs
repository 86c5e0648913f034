//! Keys of an opened trace.

use api::{
    Timestamp,
    client::calls::EvaluationFilter,
    eval::EvaluationList,
    eval_rule::{EvalRule, RuleDecisionList},
};
use uuid::Uuid;

use crate::{
    content::Tab,
    detail::{Asked, Detail, Focus, Rules},
    evals::unfinished,
    keymap::{Action, Scope},
    layout,
    msg::{Effect, NetError},
    state::{Place, Purpose, State},
};

use super::{evals, go};

/// Rules that are asked about a trace; each of them takes a request.
const ASKED: usize = 20;

/// Opens a trace; what the list knows of it is shown until the answer comes.
pub(super) fn open(state: &mut State, id: Uuid) -> Vec<Effect> {
    let row = state.list.position(id).and_then(|at| state.list.get(at).cloned());
    let mut detail = Detail::new(id, row);
    if let Some(before) = &state.detail {
        detail.split = before.split;
        detail.zoomed = before.zoomed;
        detail.from = before.from;
        detail.find.clone_from(&before.find);
        // From trace to trace, the scores stay in sight.
        if before.tab == Tab::Evals {
            detail.tab = Tab::Evals;
        }
    }
    let judged = detail.tab == Tab::Evals;
    state.detail = Some(detail);
    let mut effects = load(state, id);
    if judged {
        effects.extend(load_evals(state));
    }
    effects
}

/// Asks how the opened trace was judged.
pub(super) fn load_evals(state: &mut State) -> Vec<Effect> {
    let Some(open) = &mut state.detail else { return Vec::new() };
    open.scores.next = None;
    let id = open.id;
    let filter = EvaluationFilter { trace_id: Some(id), ..EvaluationFilter::default() };
    let request = state.request(Purpose::TraceEvals(id));
    vec![Effect::LoadEvaluations { request, filter, limit: evals::WIDE, cursor: None }]
}

/// Shows how the opened trace was judged, and asks for it afresh.
pub(super) fn show_evals(state: &mut State) -> Vec<Effect> {
    if let Some(open) = &mut state.detail {
        open.tab = Tab::Evals;
        open.touch();
    }
    load_evals(state)
}

/// How the opened trace was judged is here, or why it is not.
pub(super) fn fill_evals(state: &mut State, id: Uuid, result: Result<EvaluationList, NetError>) {
    let now = state.now;
    let failures = state.detail.as_ref().map_or(0, |open| open.scores.failures).saturating_add(1);
    let backoff = result.as_ref().err().map(|error| evals::backoff(state, failures, error));
    let Some(open) = state.detail.as_mut().filter(|open| open.id == id) else { return };
    let young = open.young(now);
    let scores = &mut open.scores;
    let wait = match result {
        Ok(list) => {
            let more = young || list.evaluations.iter().any(unfinished);
            scores.list = Some(list);
            scores.error = None;
            scores.failures = 0;
            more.then_some(evals::LOOK)
        }
        Err(error) => {
            scores.failures = failures;
            scores.error = Some(error);
            backoff
        }
    };
    scores.next = wait.map(|wait| Timestamp::from_micros(now.micros() + wait));
    open.touch();
}

/// Asks what the rules of the project decided about the opened trace.
fn why(state: &mut State) -> Vec<Effect> {
    let Some(open) = &mut state.detail else { return Vec::new() };
    let Some(project) = open.trace.as_ref().map(|trace| trace.project_id) else {
        state.tell("the trace is not there yet");
        return Vec::new();
    };
    let (id, fresh) = (open.id, open.scores.list.is_none());
    open.tab = Tab::Evals;
    open.left.cursor = 0;
    open.scores.rules = Some(Rules::default());
    open.touch();
    let mut effects = if fresh { load_evals(state) } else { Vec::new() };
    let request = state.request(Purpose::TraceRules(id));
    effects.push(Effect::LoadRules { request, project: Some(project) });
    effects
}

/// The rules of the opened trace's project are here, or why they are not: they are asked one
/// after the other.
pub(super) fn fill_rules(
    state: &mut State,
    id: Uuid,
    result: Result<Vec<EvalRule>, NetError>,
) -> Vec<Effect> {
    let open = state.detail.as_mut().filter(|open| open.id == id);
    let Some(rules) = open.and_then(|open| open.scores.rules.as_mut()) else { return Vec::new() };
    rules.loaded = true;
    match result {
        Ok(list) => {
            rules.more = list.len().saturating_sub(ASKED);
            let asked = list.into_iter().take(ASKED);
            rules.asked =
                asked.map(|rule| Asked { rule: rule.id, metric: rule.metric_name, answer: None }).collect();
        }
        Err(error) => rules.error = Some(error),
    }
    next_rule(state)
}

/// What one of the rules decided is here, or why it is not.
pub(super) fn fill_decision(
    state: &mut State,
    id: Uuid,
    result: Result<RuleDecisionList, NetError>,
) -> Vec<Effect> {
    let open = state.detail.as_mut().filter(|open| open.id == id);
    let Some(rules) = open.and_then(|open| open.scores.rules.as_mut()) else { return Vec::new() };
    if let Some(asked) = rules.asked.iter_mut().find(|it| it.answer.is_none()) {
        asked.answer = Some(result.map(|list| list.decisions.into_iter().next()));
    }
    next_rule(state)
}

/// Asks the next of the rules.
fn next_rule(state: &mut State) -> Vec<Effect> {
    let Some(open) = &mut state.detail else { return Vec::new() };
    open.touch();
    let trace = open.id;
    let asked = open.scores.rules.as_ref().map(|rules| rules.asked.as_slice()).unwrap_or_default();
    let Some(rule) = asked.iter().find(|it| it.answer.is_none()).map(|it| it.rule) else {
        return Vec::new();
    };
    let request = state.request(Purpose::TraceDecision(trace));
    vec![Effect::LoadDecisions { request, rule, trace: Some(trace) }]
}

/// Handles a tick: visible evaluations are requested again while they may change, and a trace that could
/// not be read is requested again.
pub(super) fn tick(state: &mut State) -> Vec<Effect> {
    if state.overlay.is_some() || state.is_unauthorized() {
        return Vec::new();
    }
    let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= state.now);
    let scores = due(judged(state).and_then(|open| open.scores.next));
    let missing = state.detail.as_ref().filter(|open| state.screen == 1 && open.error.is_some());
    let missing = due(missing.and_then(|open| open.next));
    let mut effects = Vec::new();
    if missing {
        effects.extend(reload(state));
    }
    if scores {
        effects.extend(load_evals(state));
    }
    effects
}

/// The server is back: how the opened trace was judged is asked for again if that had failed.
pub(super) fn back(state: &mut State) -> Vec<Effect> {
    let failed = judged(state).is_some_and(|open| open.scores.error.is_some());
    let asked = state.awaits(|it| matches!(it, Purpose::TraceEvals(_)));
    if failed && !asked { load_evals(state) } else { Vec::new() }
}

/// The opened trace, if its evaluations are in sight.
fn judged(state: &State) -> Option<&Detail> {
    state.detail.as_ref().filter(|open| state.screen == 1 && open.tab == Tab::Evals)
}

fn load(state: &mut State, id: Uuid) -> Vec<Effect> {
    let request = state.request(Purpose::Trace(id));
    vec![Effect::LoadTrace { request, id }]
}

/// Asks for the opened trace again, unless that is under way.
pub(super) fn reload(state: &mut State) -> Vec<Effect> {
    match &state.detail {
        Some(detail) if !state.awaits(|it| matches!(it, Purpose::Trace(_) | Purpose::Spans(_))) => {
            let id = detail.id;
            if let Some(open) = &mut state.detail {
                open.next = None;
            }
            load(state, id)
        }
        _ => Vec::new(),
    }
}

pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    let size = state.size;
    match action {
        Action::Why => return why(state),
        Action::NextTrace => return neighbour(state, true),
        Action::PreviousTrace => return neighbour(state, false),
        Action::Refresh => {
            let mut effects = reload(state);
            if state.detail.as_ref().is_some_and(|open| open.tab == Tab::Evals) {
                effects.extend(load_evals(state));
            }
            return effects;
        }
        Action::FindNext | Action::FindPrevious => {
            find(state, action == Action::FindNext);
            return Vec::new();
        }
        _ => {}
    }
    let Some(detail) = &mut state.detail else { return Vec::new() };
    let areas = layout::detail(size, detail.shown());
    match action {
        Action::Zoom => {
            detail.zoomed = !detail.zoomed;
            if detail.zoomed && detail.focus == Focus::Tree {
                detail.focus = Focus::Left;
            }
            detail.touch();
        }
        Action::Split => {
            detail.split = !detail.split;
            if detail.focus == Focus::Right {
                detail.focus = Focus::Left;
            }
            detail.touch();
        }
        Action::NextTab | Action::PreviousTab => {
            let split = detail.split && size.0 >= layout::SPLIT_COLS;
            let before = detail.tab;
            // In the split, the way from one side to the other is part of the round of tabs.
            let forward = action == Action::NextTab;
            if forward && areas.right.is_some() && detail.focus == Focus::Left {
                detail.focus = Focus::Right;
            } else {
                detail.turn(split, forward);
            }
            if detail.tab == Tab::Evals && before != Tab::Evals {
                return load_evals(state);
            }
        }
        Action::TextMode => {
            detail.as_text = !detail.as_text;
            detail.touch();
        }
        Action::Back => match detail.focus {
            Focus::Tree => {
                let place = Place { screen: detail.from, trace: None };
                return go(state, place);
            }
            Focus::Left | Focus::Right => {
                detail.focus = Focus::Tree;
                detail.zoomed = false;
                detail.touch();
            }
        },
        Action::Open if detail.focus == Focus::Tree => {
            let failed = detail.tab == Tab::Error && areas.right.is_some();
            detail.focus = if failed { Focus::Right } else { Focus::Left };
            detail.touch();
        }
        Action::Open => detail.toggle(None),
        Action::Left => fold(detail, true),
        Action::Right => fold(detail, false),
        _ => travel(detail, action, areas.tree.height, areas.left.height),
    }
    Vec::new()
}

fn fold(detail: &mut Detail, fold: bool) {
    match detail.focus {
        Focus::Tree => {
            detail.fold(fold);
            detail.touch();
        }
        Focus::Left | Focus::Right => detail.toggle(Some(fold)),
    }
}

fn travel(detail: &mut Detail, action: Action, tree: u16, pane: u16) {
    let in_tree = detail.focus == Focus::Tree;
    let page = usize::from(if in_tree { tree.saturating_sub(1) } else { pane }).max(2) - 1;
    let at = detail.pane().map_or(detail.selected, |pane| pane.cursor);
    let to = match action {
        Action::Up => at.saturating_sub(1),
        Action::Down => at + 1,
        Action::PageUp => at.saturating_sub(page),
        Action::PageDown => at + page,
        Action::Top => 0,
        Action::Bottom if !in_tree => return detail.pane_end(),
        Action::Bottom => usize::MAX,
        _ => return,
    };
    match detail.pane_mut() {
        Some(pane) => pane.cursor = to.min(pane.lines.len().saturating_sub(1)),
        None => detail.select(to),
    }
}

/// Opens the next or the previous trace of the list.
fn neighbour(state: &mut State, next: bool) -> Vec<Effect> {
    let Some(at) = state.detail.as_ref().and_then(|detail| state.list.position(detail.id)) else {
        state.tell("this trace is not among the loaded rows");
        return Vec::new();
    };
    let to = if next { Some(at + 1) } else { at.checked_sub(1) };
    let Some(id) = to.and_then(|to| state.list.get(to)).map(|row| row.id) else {
        state.tell(if next { "this is the last loaded trace" } else { "this is the first trace" });
        return Vec::new();
    };
    state.list.select_id(id);
    open(state, id)
}

/// Goes to the next hit of find: among the lines of the pane, or the names of the spans.
fn find(state: &mut State, forward: bool) {
    let find = state.key(Scope::Tree, Action::Find);
    let Some(detail) = &mut state.detail else { return };
    let Some(needle) = detail.find.clone() else {
        state.tell(format!("{find} finds"));
        return;
    };
    let (at, count) = match detail.pane() {
        Some(pane) => (pane.cursor, pane.lines.len()),
        None => (detail.selected, detail.tree.rows.len()),
    };
    let hit = crate::find::next(count, at, forward, |at| detail.hit(at, &needle));
    match (hit, detail.pane_mut()) {
        (Some(hit), Some(pane)) => pane.cursor = hit,
        (Some(hit), None) => detail.select(hit),
        (None, _) => state.tell("not found here"),
    }
}
