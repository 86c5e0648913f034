//! Key handling of the eval rules, and the requests for rules, decisions and samples.

use api::{
    client::calls::{self, Page},
    eval::{EvaluationFilter, EvaluationStatus},
    eval_rule::{RuleDecisionList, RuleTest},
    page::MAX_LIMIT,
};
use uuid::Uuid;

use crate::{
    dialog::Dialog,
    evaluations::{MAX_PAGE_ROWS, first_page},
    ids::{IdError, is_suffix, resolve_suffix},
    input::{Input, InputKind},
    keymap::Action,
    net::{Effect, NetError},
    screen::evals::{
        SCREEN_DIGIT, WHY_LINE,
        change::EvalsChange,
        form, parts,
        rules::{
            state::{RulePane, SAMPLE_HOURS},
            view,
        },
        state::{Evals, EvalsRequest, EvalsSection},
        update as evaluations,
    },
    shell::{LineError, LoadedIds, Shell, notice::describe},
    travel,
    widgets::table::first_visible,
};

/// Microseconds between two requests for the rules, which the server can pause.
pub const REFRESH_INTERVAL_MICROS: i64 = 15_000_000;
/// Microseconds after which the recent evaluations of a rule are requested again.
const SAMPLE_MAX_AGE_MICROS: i64 = 60_000_000;
/// Microseconds of an hour.
const HOUR: i64 = 3_600_000_000;

/// Requests the rules.
pub fn load(evals: &mut Evals, shell: &mut Shell) -> Vec<Effect> {
    evals.rules.next = None;
    let project = shell.project_id();
    vec![
        evals
            .pending
            .send_all(shell.ticket(), EvalsRequest::Rules, move |page| calls::eval_rules(project, page)),
    ]
}

/// Requests the recent evaluations of a visible rule, one at a time.
pub fn sample(evals: &mut Evals, shell: &mut Shell) -> Vec<Effect> {
    let rules = &evals.rules;
    let shown = parts(evals, shell).rules.height > 0;
    if shell.screen != SCREEN_DIGIT
        || !shown
        || evals.pending.has(|it| matches!(it, EvalsRequest::RuleSample(_)))
    {
        return Vec::new();
    }
    let rows = parts(evals, shell).rule_rows();
    let top = first_visible(rules.list.selected, rules.list.items.len(), rows);
    let old = |id: &Uuid| {
        rules
            .samples
            .get(id)
            .is_none_or(|known| shell.now.micros() - known.at.micros() >= SAMPLE_MAX_AGE_MICROS)
    };
    let due = rules.list.items.iter().skip(top).take(rows).map(|rule| rule.id).find(old);
    let Some(id) = due else { return Vec::new() };
    let day = i64::try_from(SAMPLE_HOURS).unwrap_or(24) * HOUR;
    let filter = EvaluationFilter {
        rule_id: Some(id),
        status: Some(EvaluationStatus::Complete),
        from: Some(api::Timestamp::from_micros(shell.now.micros() - day)),
        ..EvaluationFilter::default()
    };
    let call = first_page(&filter, MAX_PAGE_ROWS);
    vec![evals.pending.send(shell.ticket(), EvalsRequest::RuleSample(id), call)]
}

pub fn act(evals: &mut Evals, shell: &mut Shell, action: Action) -> Vec<Effect> {
    if matches!(action, Action::PageUp | Action::PageDown) {
        // The list of rules is short, but the pane of one rule can be long.
        let rows = usize::from(parts(evals, shell).pane.height.saturating_sub(1));
        let last = view::len(evals, shell).saturating_sub(rows);
        let told = evals.rules.has_result();
        if !told && (rows == 0 || last == 0) {
            return walk(evals, shell, action).unwrap_or_default();
        }
        let at = evals.rules.top.min(last);
        if let Some(to) = travel::to(action, at, last, rows.max(2) - 1) {
            evals.rules.top = to;
        }
        return Vec::new();
    }
    if let Some(effects) = walk(evals, shell, action) {
        return effects;
    }
    let (now, protected) = (shell.now, shell.target.protected);
    match action {
        Action::Rules => evals.part = EvalsSection::List,
        Action::Back if evals.rules.has_result() => {
            evals.rules.side = RulePane::Facts;
            evals.rules.top = 0;
        }
        Action::Back => evals.part = EvalsSection::List,
        Action::Refresh => return evaluations::refresh(evals, shell),
        Action::NewRule => return add(shell),
        Action::Open | Action::Enable | Action::DeleteRule | Action::TestRule | Action::Why => {
            let Some(rule) = evals.rules.current().cloned() else {
                shell.notify("no rule is selected");
                return Vec::new();
            };
            let (id, name) = (rule.id, rule.metric_name);
            match action {
                Action::Open => return evaluations::show(evals, shell, "rule", id),
                Action::Enable => {
                    let paused = rule.enabled && rule.paused_reason.is_some();
                    let change = EvalsChange::SetEnabled { id, name, on: paused || !rule.enabled, paused };
                    shell.dialog = Some(Dialog::confirm(change, protected, now));
                }
                Action::DeleteRule => {
                    let change = EvalsChange::DeleteRule { id, name };
                    shell.dialog = Some(Dialog::confirm(change, protected, now));
                }
                Action::TestRule => {
                    let form = form::rule_test(id, name, evals.current().map(|it| it.trace_id));
                    shell.dialog = Some(Dialog::form(form, now));
                }
                _ => {
                    let trace =
                        evals.current().map(|it| it.trace_id).map(|id| id.to_string()).unwrap_or_default();
                    shell.edit(Input::new(InputKind::Screen(WHY_LINE), &trace));
                }
            }
        }
        _ => {}
    }
    Vec::new()
}

/// Moves the cursor among the rules; returns none if the action is not a movement.
fn walk(evals: &mut Evals, shell: &mut Shell, action: Action) -> Option<Vec<Effect>> {
    let page = parts(evals, shell).rule_rows().max(2) - 1;
    let last = evals.rules.list.items.len().saturating_sub(1);
    let to = travel::to(action, evals.rules.list.selected, last, page)?;
    evals.rules.list.selected = to;
    evals.rules.top = 0;
    Some(sample(evals, shell))
}

/// Opens the form of a new rule.
fn add(shell: &mut Shell) -> Vec<Effect> {
    let form = form::new_rule(shell.project_id(), shell.active_projects(), &shell.evaluators.items);
    shell.dialog = Some(Dialog::form(form, shell.now));
    let mut effects: Vec<Effect> = shell.load_evaluators().into_iter().collect();
    if !shell.projects.loaded {
        effects.push(shell.load_projects());
    }
    effects
}

/// Requests the decisions of the selected rule, on a trace or the newest ones.
///
/// # Errors
/// Fails with the position of the first wrong character, from 0, and the problem.
pub fn why(
    evals: &mut Evals,
    shell: &mut Shell,
    text: &str,
    loaded: &LoadedIds,
) -> Result<Vec<Effect>, LineError> {
    let trace = match text {
        "" => None,
        text => {
            let whole = text.parse().ok().map(Ok);
            let found = whole.unwrap_or_else(|| resolve_suffix(loaded.traces.iter().copied(), text));
            let wrong = |error: IdError| {
                let problem = if is_suffix(text) {
                    error.message("trace", text)
                } else {
                    "the id of a trace, or nothing for the newest decisions".to_owned()
                };
                (0, problem)
            };
            Some(found.map_err(wrong)?)
        }
    };
    let Some(rule) = evals.rules.current().map(|rule| rule.id) else { return Ok(Vec::new()) };
    evals.rules.top = 0;
    evals.rules.side = RulePane::Decisions { rule, trace, answer: None };
    let call = calls::rule_decisions(rule, trace, &Page { limit: Some(MAX_LIMIT), cursor: None });
    Ok(vec![evals.pending.send(shell.ticket(), EvalsRequest::Decisions(rule), call)])
}

/// Stores the decisions of a rule.
pub fn decided(evals: &mut Evals, shell: &mut Shell, result: Result<RuleDecisionList, NetError>) {
    if let Err(error) = &result {
        shell.report(describe(error));
    }
    if let RulePane::Decisions { answer, .. } = &mut evals.rules.side {
        *answer = Some(result);
    }
}

/// Stores the result of a rule test.
pub fn tested(evals: &mut Evals, rule: Uuid, result: Box<RuleTest>) {
    evals.rules.top = 0;
    evals.rules.side = RulePane::Tested { rule, result };
}
