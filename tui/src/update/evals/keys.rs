//! Keys of the list of evaluations, and of one that fills the screen.

use crate::{
    evals::Part,
    input::{Input, Purpose as LinePurpose},
    keymap::{Action, Scope},
    layout,
    msg::Effect,
    screens::evals::pane_len,
    state::{EVALS, Place, State},
};

use super::{
    super::{go, rules, travel, typing},
    ask, baseline, look, more, refresh, set_filter,
};

/// Performs an action of the list of evaluations.
pub(in crate::update) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    if let Some(top) = state.evals.zoom
        && let Some(effects) = zoomed(state, action, top)
    {
        return effects;
    }
    let page = state.evals_parts().rows().max(2) - 1;
    let last = state.evals.rows.len().saturating_sub(1);
    if let Some(to) = travel::to(action, state.evals.selected, last, page) {
        state.evals.select(to, to > 0);
        state.evals.wanted = None;
        if to == 0 && state.evals.newer {
            return look(state);
        }
        let mut effects = more(state);
        effects.extend(baseline(state));
        return effects;
    }
    match action {
        Action::Open if state.evals.current().is_some() => state.evals.zoom = Some(0),
        Action::EditFilter => typing::begin(state, Input::new(LinePurpose::EvalFilter, &state.evals.text)),
        Action::WidenTime => return widen(state),
        Action::Rules => {
            state.evals.part = Part::Rules;
            return rules::sample(state);
        }
        Action::FindNext | Action::FindPrevious => return find(state, action == Action::FindNext),
        Action::OpenTrace => return open_trace(state),
        Action::Baseline => return open_baseline(state),
        Action::Evaluate => return ask(state),
        Action::Refresh => return refresh(state),
        Action::Back if state.evals.find().is_some() => state.evals.set_find(None),
        Action::Back if !state.evals.text.is_empty() => return set_filter(state, String::new()),
        Action::Back => return go(state, Place { screen: 1, trace: None }),
        _ => {}
    }
    Vec::new()
}

/// Goes to the next row that find matches, or to the one before.
fn find(state: &mut State, forward: bool) -> Vec<Effect> {
    let Some(at) = state.evals.find_from(forward) else {
        let none = state.evals.find().is_none();
        let find = state.key(Scope::Evals, Action::Find);
        state.tell(if none { format!("{find} finds") } else { "not found in the loaded rows".to_owned() });
        return Vec::new();
    };
    state.evals.select(at, true);
    state.evals.wanted = None;
    state.evals.zoom = state.evals.zoom.map(|_| 0);
    let mut effects = more(state);
    effects.extend(baseline(state));
    effects
}

/// Keys while one evaluation fills the screen: they move through its text. Nothing, where they
/// mean what they do in the list.
fn zoomed(state: &mut State, action: Action, top: usize) -> Option<Vec<Effect>> {
    let rows = usize::from(layout::frame(state.size).body.height.saturating_sub(1)).max(1);
    let last = pane_len(state).saturating_sub(rows);
    if let Some(to) = travel::to(action, top.min(last), last, rows.max(2) - 1) {
        state.evals.zoom = Some(to);
        return Some(Vec::new());
    }
    matches!(action, Action::Open | Action::Back).then(|| {
        let strayed = std::mem::take(&mut state.evals.strayed);
        state.evals.zoom = None;
        if strayed || state.evals.wanted.is_some() { look(state) } else { Vec::new() }
    })
}

/// Takes the time bounds out of the filter.
fn widen(state: &mut State) -> Vec<Effect> {
    let terms = state.evals.text.split_whitespace();
    let kept: Vec<&str> =
        terms.filter(|term| !term.starts_with("from:") && !term.starts_with("to:")).collect();
    let text = kept.join(" ");
    if text == state.evals.text {
        state.tell("the filter has no time bounds");
        return Vec::new();
    }
    set_filter(state, text)
}

/// Opens the trace that was judged, with the cursor on the judged span, if it was one.
fn open_trace(state: &mut State) -> Vec<Effect> {
    let Some((trace, span)) = state.evals.current().map(|it| (it.trace_id, it.span_id)) else {
        state.tell("no evaluation is selected");
        return Vec::new();
    };
    let effects = go(state, Place { screen: 1, trace: Some(trace) });
    if let Some(open) = &mut state.detail {
        open.wanted = span;
        open.from = EVALS;
    }
    effects
}

/// Goes to what the selected evaluation is compared with, if it is compared.
fn open_baseline(state: &mut State) -> Vec<Effect> {
    let Some(it) = state.evals.current() else { return Vec::new() };
    let Some(id) = it.original_evaluation_id else {
        state.tell("this one has no baseline");
        return Vec::new();
    };
    let line = format!("metric:{} trace:{}", it.metric_name, it.trace_id);
    state.evals.zoom = None;
    if let Some(at) = state.evals.rows.iter().position(|row| row.id == id) {
        state.evals.select(at, true);
        return Vec::new();
    }
    // It is of the same trace, and older than the loaded rows.
    let effects = set_filter(state, line);
    state.evals.wanted = Some(id);
    effects
}
