//! Key handling and requests of an opened trace.

use api::{
    Timestamp,
    client::calls::{self, Page},
    eval::{EvaluationFilter, EvaluationList},
    eval_rule::{EvalRule, RuleDecisionList},
    page::MAX_LIMIT,
};
use uuid::Uuid;

use crate::screen::traces::keys::TREE_SCOPE;
use crate::{
    evaluations::{LOOK_INTERVAL_MICROS, MAX_PAGE_ROWS, first_page, is_unfinished},
    keymap::Action,
    layout::SPLIT_COLS,
    net::{Destination, Effect, NetError, Response},
    screen::traces::{
        SCREEN_DIGIT,
        detail::{Detail, Focus, RuleVerdict, TraceRules, content::DetailTab, layout::parts},
        state::{Traces, TracesRequest},
    },
    shell::{
        Shell,
        notice::describe,
        trouble::{PROBE_INTERVAL_MICROS, backoff},
    },
};

/// Maximum number of rules whose decisions on a trace are requested; each takes a request.
const MAX_RULES: usize = 20;

/// Opens a trace. The row of the list is shown until the response arrives.
pub fn open(traces: &mut Traces, shell: &mut Shell, id: Uuid) -> Vec<Effect> {
    let row = traces.list.position(id).and_then(|at| traces.list.get(at).cloned());
    let mut detail = Detail::new(id, row);
    if let Some(before) = &traces.detail {
        detail.split = before.split;
        detail.zoomed = before.zoomed;
        detail.from = before.from;
        detail.find.clone_from(&before.find);
        // The tab of the evaluations stays open from trace to trace.
        if before.tab == DetailTab::Evals {
            detail.tab = DetailTab::Evals;
        }
    }
    let judged = detail.tab == DetailTab::Evals;
    traces.detail = Some(detail);
    let mut effects = load(traces, shell, id);
    if judged {
        effects.extend(load_evals(traces, shell));
    }
    effects
}

/// Requests the evaluations of the opened trace.
pub fn load_evals(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    let Some(open) = &mut traces.detail else { return Vec::new() };
    open.scores.next = None;
    let id = open.id;
    let filter = EvaluationFilter { trace_id: Some(id), ..EvaluationFilter::default() };
    let call = first_page(&filter, MAX_PAGE_ROWS);
    vec![traces.pending.send(shell.ticket(), TracesRequest::TraceEvals(id), call)]
}

/// Shows the evaluations of the opened trace and requests them again.
pub fn show_evals(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    if let Some(open) = &mut traces.detail {
        open.tab = DetailTab::Evals;
        open.touch();
    }
    load_evals(traces, shell)
}

/// Stores the evaluations of the opened trace, or the error of the request.
pub fn fill_evals(
    traces: &mut Traces,
    shell: &mut Shell,
    id: Uuid,
    result: Result<EvaluationList, NetError>,
) {
    let now = shell.now;
    let failures = traces.detail.as_ref().map_or(0, |open| open.scores.failures).saturating_add(1);
    let backoff = result.as_ref().err().map(|error| backoff(shell, LOOK_INTERVAL_MICROS, failures, error));
    let Some(open) = traces.opened(id) else { return };
    let young = open.young(now);
    let scores = &mut open.scores;
    let wait = match result {
        Ok(list) => {
            let more = young || list.evaluations.iter().any(is_unfinished);
            scores.list = Some(list);
            scores.error = None;
            scores.failures = 0;
            more.then_some(LOOK_INTERVAL_MICROS)
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

/// Requests the decisions of the project's rules on the opened trace.
fn why(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    let Some(open) = &mut traces.detail else { return Vec::new() };
    let Some(project) = open.trace.as_ref().map(|trace| trace.project_id) else {
        shell.notify("the trace is not there yet");
        return Vec::new();
    };
    let (id, fresh) = (open.id, open.scores.list.is_none());
    open.tab = DetailTab::Evals;
    open.left.cursor = 0;
    open.scores.rules = Some(TraceRules::default());
    open.touch();
    let mut effects = if fresh { load_evals(traces, shell) } else { Vec::new() };
    let call = move |page: &Page| calls::eval_rules(Some(project), page);
    effects.push(traces.pending.send_all(shell.ticket(), TracesRequest::TraceRules(id), call));
    effects
}

/// Stores the rules of the opened trace's project, or the error of the request, and requests their decisions one
/// after the other.
pub fn fill_rules(
    traces: &mut Traces,
    shell: &mut Shell,
    id: Uuid,
    result: Result<Vec<EvalRule>, NetError>,
) -> Vec<Effect> {
    let open = traces.opened(id);
    let Some(rules) = open.and_then(|open| open.scores.rules.as_mut()) else { return Vec::new() };
    rules.loaded = true;
    match result {
        Ok(list) => {
            rules.more = list.len().saturating_sub(MAX_RULES);
            let asked = list.into_iter().take(MAX_RULES);
            rules.asked = asked
                .map(|rule| RuleVerdict { rule: rule.id, metric: rule.metric_name, answer: None })
                .collect();
        }
        Err(error) => rules.error = Some(error),
    }
    next_rule(traces, shell)
}

/// Stores the decision of a rule on the opened trace, or the error of the request.
pub fn fill_decision(
    traces: &mut Traces,
    shell: &mut Shell,
    id: Uuid,
    result: Result<RuleDecisionList, NetError>,
) -> Vec<Effect> {
    let open = traces.opened(id);
    let Some(rules) = open.and_then(|open| open.scores.rules.as_mut()) else { return Vec::new() };
    if let Some(asked) = rules.asked.iter_mut().find(|it| it.answer.is_none()) {
        asked.answer = Some(result.map(|list| list.decisions.into_iter().next()));
    }
    next_rule(traces, shell)
}

/// Requests the decision of the next rule.
fn next_rule(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    let Some(open) = &mut traces.detail else { return Vec::new() };
    open.touch();
    let trace = open.id;
    let asked = open.scores.rules.as_ref().map(|rules| rules.asked.as_slice()).unwrap_or_default();
    let Some(rule) = asked.iter().find(|it| it.answer.is_none()).map(|it| it.rule) else {
        return Vec::new();
    };
    let call = calls::rule_decisions(rule, Some(trace), &Page { limit: Some(MAX_LIMIT), cursor: None });
    vec![traces.pending.send(shell.ticket(), TracesRequest::TraceDecision(trace), call)]
}

/// Handles a tick: visible evaluations are requested again while they may change, and a trace that could
/// not be read is requested again.
pub fn tick(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    if shell.overlay.is_some() || shell.is_unauthorized() {
        return Vec::new();
    }
    let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= shell.now);
    let scores = due(judged(traces, shell).and_then(|open| open.scores.next));
    let missing = traces.detail.as_ref().filter(|open| shell.screen == SCREEN_DIGIT && open.error.is_some());
    let missing = due(missing.and_then(|open| open.next));
    let mut effects = Vec::new();
    if missing {
        effects.extend(reload(traces, shell));
    }
    if scores {
        effects.extend(load_evals(traces, shell));
    }
    effects
}

/// Repeats a failed request for the evaluations of the opened trace after an outage.
pub fn back(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    let failed = judged(traces, shell).is_some_and(|open| open.scores.error.is_some());
    let asked = traces.pending.has(|it| matches!(it, TracesRequest::TraceEvals(_)));
    if failed && !asked { load_evals(traces, shell) } else { Vec::new() }
}

/// Returns the opened trace if its evaluations are visible.
fn judged<'a>(traces: &'a Traces, shell: &Shell) -> Option<&'a Detail> {
    traces.detail.as_ref().filter(|open| shell.screen == SCREEN_DIGIT && open.tab == DetailTab::Evals)
}

fn load(traces: &mut Traces, shell: &mut Shell, id: Uuid) -> Vec<Effect> {
    vec![traces.pending.send(shell.ticket(), TracesRequest::Trace(id), calls::trace(&id.to_string()))]
}

/// Requests the opened trace again unless a request is open.
pub fn reload(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    match &traces.detail {
        Some(detail)
            if !traces.pending.has(|it| matches!(it, TracesRequest::Trace(_) | TracesRequest::Spans(_))) =>
        {
            let id = detail.id;
            if let Some(open) = &mut traces.detail {
                open.next = None;
            }
            load(traces, shell, id)
        }
        _ => Vec::new(),
    }
}

pub fn act(traces: &mut Traces, shell: &mut Shell, action: Action) -> Vec<Effect> {
    let size = shell.size;
    match action {
        Action::Why => return why(traces, shell),
        Action::RemediationDiff => return remediation_diff(traces, shell),
        Action::NextTrace => return neighbour(traces, shell, true),
        Action::PreviousTrace => return neighbour(traces, shell, false),
        Action::Refresh => {
            let mut effects = reload(traces, shell);
            if traces.detail.as_ref().is_some_and(|open| open.tab == DetailTab::Evals) {
                effects.extend(load_evals(traces, shell));
            }
            return effects;
        }
        Action::FindNext | Action::FindPrevious => {
            find(traces, shell, action == Action::FindNext);
            return Vec::new();
        }
        _ => {}
    }
    let Some(detail) = &mut traces.detail else { return Vec::new() };
    let areas = parts(size, detail.shown());
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
            let split = detail.split && size.0 >= SPLIT_COLS;
            let before = detail.tab;
            // In the split, the tab keys also go from one side to the other.
            let forward = action == Action::NextTab;
            if forward && areas.right.is_some() && detail.focus == Focus::Left {
                detail.focus = Focus::Right;
            } else {
                detail.turn(split, forward);
            }
            if detail.tab == DetailTab::Evals && before != DetailTab::Evals {
                return load_evals(traces, shell);
            }
        }
        Action::TextMode => {
            detail.as_text = !detail.as_text;
            detail.touch();
        }
        Action::Back => match detail.focus {
            Focus::Tree => {
                return vec![Effect::Go(Destination::Screen(detail.from))];
            }
            Focus::Left | Focus::Right => {
                detail.focus = Focus::Tree;
                detail.zoomed = false;
                detail.touch();
            }
        },
        Action::Open if detail.focus == Focus::Tree => {
            let failed = detail.tab == DetailTab::Error && areas.right.is_some();
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

/// Goes to the remediation diff of the span under the cursor.
fn remediation_diff(traces: &Traces, shell: &mut Shell) -> Vec<Effect> {
    let Some(open) = &traces.detail else { return Vec::new() };
    let Some((action, span)) = open.current_action().zip(open.current().map(|span| span.id)) else {
        shell.notify("no action repeated this span");
        return Vec::new();
    };
    vec![Effect::Go(Destination::Remediation { action, trace: open.id, span })]
}

/// Opens the next or the previous trace of the list.
fn neighbour(traces: &mut Traces, shell: &mut Shell, next: bool) -> Vec<Effect> {
    let Some(at) = traces.detail.as_ref().and_then(|detail| traces.list.position(detail.id)) else {
        shell.notify("this trace is not among the loaded rows");
        return Vec::new();
    };
    let to = if next { Some(at + 1) } else { at.checked_sub(1) };
    let Some(id) = to.and_then(|to| traces.list.get(to)).map(|row| row.id) else {
        shell.notify(if next { "this is the last loaded trace" } else { "this is the first trace" });
        return Vec::new();
    };
    traces.list.select_id(id);
    open(traces, shell, id)
}

/// Goes to the next hit of find: among the lines of the pane, or the names of the spans.
fn find(traces: &mut Traces, shell: &mut Shell, forward: bool) {
    let find = shell.key(TREE_SCOPE, Action::Find);
    let Some(detail) = &mut traces.detail else { return };
    let Some(needle) = detail.find.clone() else {
        shell.notify(format!("no search text; press {find} to enter it"));
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
        (None, _) => shell.notify("not found here"),
    }
}

/// Stores the response to one of the requests for the opened trace.
///
/// # Errors
/// Fails when the response has another type than the purpose.
pub fn fill(
    traces: &mut Traces,
    shell: &mut Shell,
    purpose: TracesRequest,
    response: Response,
) -> Result<Vec<Effect>, NetError> {
    match purpose {
        TracesRequest::Trace(id) => {
            let trace = response.decoded()?;
            let Some(open) = traces.opened(id) else { return Ok(Vec::new()) };
            open.load(trace);
            Ok(load_more_spans(traces, shell))
        }
        TracesRequest::Spans(id) => {
            let page = response.decoded()?;
            let Some(open) = traces.opened(id) else { return Ok(Vec::new()) };
            open.extend(page);
            Ok(load_more_spans(traces, shell))
        }
        TracesRequest::TraceEvals(id) => {
            fill_evals(traces, shell, id, Ok(response.decoded()?));
            Ok(Vec::new())
        }
        TracesRequest::TraceRules(id) => Ok(fill_rules(traces, shell, id, Ok(response.decoded()?))),
        TracesRequest::TraceDecision(id) => Ok(fill_decision(traces, shell, id, Ok(response.decoded()?))),
        TracesRequest::First | TracesRequest::Older(_) | TracesRequest::Newest | TracesRequest::Gap(_) => {
            Ok(Vec::new())
        }
    }
}

/// Handles a failed request for the opened trace.
pub fn failed(
    traces: &mut Traces,
    shell: &mut Shell,
    purpose: TracesRequest,
    error: NetError,
) -> Vec<Effect> {
    match purpose {
        TracesRequest::Trace(_) => {
            shell.report(describe(&error));
            let next = shell.after(PROBE_INTERVAL_MICROS);
            if let Some(open) = &mut traces.detail {
                open.error = Some(error);
                open.next = next;
            }
        }
        TracesRequest::Spans(_) => {
            shell.report(describe(&error));
            if let Some(open) = &mut traces.detail {
                open.next_cursor = None;
            }
        }
        TracesRequest::TraceEvals(id) => fill_evals(traces, shell, id, Err(error)),
        TracesRequest::TraceRules(id) => return fill_rules(traces, shell, id, Err(error)),
        TracesRequest::TraceDecision(id) => return fill_decision(traces, shell, id, Err(error)),
        TracesRequest::First | TracesRequest::Older(_) | TracesRequest::Newest | TracesRequest::Gap(_) => {}
    }
    Vec::new()
}

/// Requests the next page of the opened trace's spans, if there is one.
fn load_more_spans(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    let open = traces.detail.as_ref();
    let Some((id, cursor)) = open.and_then(|open| Some((open.id, open.next_cursor.clone()?))) else {
        return Vec::new();
    };
    let page = Page { limit: Some(MAX_LIMIT), cursor: Some(cursor) };
    let call = calls::spans(&id.to_string(), &page);
    vec![traces.pending.send(shell.ticket(), TracesRequest::Spans(id), call)]
}
