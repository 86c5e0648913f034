//! Key handling of the list of evaluations, and of an evaluation that fills the screen.

use crate::screen::evals::keys::EVALS_SCOPE;
use crate::{
    input::{Input, InputKind},
    keymap::Action,
    layout::frame,
    net::{Destination, Effect},
    screen::evals::{
        FILTER_LINE, SCREEN_DIGIT, parts,
        rules::update as rules,
        state::{Evals, EvalsSection},
        view::pane_len,
    },
    shell::Shell,
    travel,
};

use super::{baseline, look, more, refresh, rerun_form, set_filter};

/// Performs an action of the list of evaluations.
pub fn act(evals: &mut Evals, shell: &mut Shell, action: Action) -> Vec<Effect> {
    if let Some(top) = evals.zoom
        && let Some(effects) = zoomed(evals, shell, action, top)
    {
        return effects;
    }
    let page = parts(evals, shell).rows().max(2) - 1;
    let last = evals.rows.len().saturating_sub(1);
    if let Some(to) = travel::to(action, evals.selected, last, page) {
        evals.select(to, to > 0);
        evals.wanted = None;
        if to == 0 && evals.newer {
            return look(evals, shell);
        }
        let mut effects = more(evals, shell);
        effects.extend(baseline(evals, shell));
        return effects;
    }
    match action {
        Action::Open if evals.current().is_some() => evals.zoom = Some(0),
        Action::EditFilter => shell.edit(Input::new(InputKind::Screen(FILTER_LINE), &evals.text)),
        Action::WidenTime => return widen(evals, shell),
        Action::Rules => {
            evals.part = EvalsSection::Rules;
            return rules::sample(evals, shell);
        }
        Action::FindNext | Action::FindPrevious => return find(evals, shell, action == Action::FindNext),
        Action::OpenTrace => return open_trace(evals, shell),
        Action::Baseline => return open_baseline(evals, shell),
        Action::Evaluate => return rerun_form(evals, shell),
        Action::Refresh => return refresh(evals, shell),
        Action::Back if evals.find().is_some() => evals.set_find(None),
        Action::Back if !evals.text.is_empty() => return set_filter(evals, shell, String::new()),
        Action::Back => return vec![Effect::Go(Destination::Screen(1))],
        _ => {}
    }
    Vec::new()
}

/// Goes to the next row that find matches, or to the one before.
fn find(evals: &mut Evals, shell: &mut Shell, forward: bool) -> Vec<Effect> {
    let Some(at) = evals.find_from(forward) else {
        let none = evals.find().is_none();
        let find = shell.key(EVALS_SCOPE, Action::Find);
        shell.notify(if none {
            format!("no search text; press {find} to enter it")
        } else {
            "not found in the loaded rows".to_owned()
        });
        return Vec::new();
    };
    evals.select(at, true);
    evals.wanted = None;
    evals.zoom = evals.zoom.map(|_| 0);
    let mut effects = more(evals, shell);
    effects.extend(baseline(evals, shell));
    effects
}

/// Handles an action while one evaluation fills the screen: movements scroll its text. Returns `None` for actions
/// with the same meaning as in the list.
fn zoomed(evals: &mut Evals, shell: &mut Shell, action: Action, top: usize) -> Option<Vec<Effect>> {
    let rows = usize::from(frame(shell.size).body.height.saturating_sub(1)).max(1);
    let last = pane_len(evals, shell).saturating_sub(rows);
    if let Some(to) = travel::to(action, top.min(last), last, rows.max(2) - 1) {
        evals.zoom = Some(to);
        return Some(Vec::new());
    }
    matches!(action, Action::Open | Action::Back).then(|| {
        let strayed = std::mem::take(&mut evals.strayed);
        evals.zoom = None;
        if strayed || evals.wanted.is_some() { look(evals, shell) } else { Vec::new() }
    })
}

/// Removes the time bounds from the filter.
fn widen(evals: &mut Evals, shell: &mut Shell) -> Vec<Effect> {
    let terms = evals.text.split_whitespace();
    let kept: Vec<&str> =
        terms.filter(|term| !term.starts_with("from:") && !term.starts_with("to:")).collect();
    let text = kept.join(" ");
    if text == evals.text {
        shell.notify("the filter has no time bounds");
        return Vec::new();
    }
    set_filter(evals, shell, text)
}

/// Opens the trace that was judged, with the cursor on the judged span, if it was one.
fn open_trace(evals: &mut Evals, shell: &mut Shell) -> Vec<Effect> {
    let Some((trace, span)) = evals.current().map(|it| (it.trace_id, it.span_id)) else {
        shell.notify("no evaluation is selected");
        return Vec::new();
    };
    vec![Effect::Go(Destination::Trace { id: trace, span, from: Some(SCREEN_DIGIT) })]
}

/// Goes to the baseline of the selected evaluation, if it has one.
fn open_baseline(evals: &mut Evals, shell: &mut Shell) -> Vec<Effect> {
    let Some(it) = evals.current() else { return Vec::new() };
    let Some(id) = it.original_evaluation_id else {
        shell.notify("this evaluation has no baseline");
        return Vec::new();
    };
    let line = format!("metric:{} trace:{}", it.metric_name, it.trace_id);
    evals.zoom = None;
    if let Some(at) = evals.rows.iter().position(|row| row.id == id) {
        evals.select(at, true);
        return Vec::new();
    }
    // The baseline belongs to the same trace and is older than the loaded rows.
    let effects = set_filter(evals, shell, line);
    evals.wanted = Some(id);
    effects
}
