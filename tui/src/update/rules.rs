//! Keys of the rules, what they decided, and how they fared.

use api::{
    client::calls::EvaluationFilter,
    eval::EvaluationStatus,
    eval_rule::{RuleDecisionList, RuleTest},
    project::ProjectStatus,
};
use uuid::Uuid;

use crate::{
    change::Change,
    dialog::{Dialog, Form},
    evals::{HOURS, Part, Side},
    ids::{Unknown, ending, is_end},
    input::{Input, Purpose as LinePurpose},
    keymap::Action,
    msg::{Effect, NetError},
    state::{EVALS, Purpose, State},
};

use super::{evals, known, travel, typing};

/// Microseconds between two looks at the rules: they pause by themselves.
pub(super) const REFRESH: i64 = 15_000_000;
/// Microseconds after which it is looked again how a rule fared.
const SAMPLED: i64 = 60_000_000;
/// Microseconds of an hour.
const HOUR: i64 = 3_600_000_000;

/// The project whose rules are shown.
pub(super) fn project(state: &State) -> Option<Uuid> {
    state.project.as_ref().map(|project| project.id)
}

/// Asks for the rules.
pub(super) fn load(state: &mut State) -> Vec<Effect> {
    state.evals.rules.next = None;
    vec![Effect::LoadRules { request: state.request(Purpose::Rules), project: project(state) }]
}

/// Asks how one of the rules in sight fared of late, one after the other.
pub(super) fn sample(state: &mut State) -> Vec<Effect> {
    let rules = &state.evals.rules;
    let shown = state.evals_parts().rules.height > 0;
    if state.screen != EVALS || !shown || state.awaits(|it| matches!(it, Purpose::RuleSample(_))) {
        return Vec::new();
    }
    let rows = state.evals_parts().rule_rows();
    let top = crate::widgets::table::first_visible(rules.list.selected, rules.list.items.len(), rows);
    let old = |id: &Uuid| {
        rules.samples.get(id).is_none_or(|known| state.now.micros() - known.at.micros() >= SAMPLED)
    };
    let due = rules.list.items.iter().skip(top).take(rows).map(|rule| rule.id).find(old);
    let Some(id) = due else { return Vec::new() };
    let day = i64::try_from(HOURS).unwrap_or(24) * HOUR;
    let filter = EvaluationFilter {
        rule_id: Some(id),
        status: Some(EvaluationStatus::Complete),
        from: Some(api::Timestamp::from_micros(state.now.micros() - day)),
        ..EvaluationFilter::default()
    };
    let request = state.request(Purpose::RuleSample(id));
    vec![Effect::LoadEvaluations { request, filter, limit: evals::WIDE, cursor: None }]
}

pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    if matches!(action, Action::PageUp | Action::PageDown) {
        // The rules are few; what is to be said of one of them may be long.
        let rows = usize::from(state.evals_parts().pane.height.saturating_sub(1));
        let last = crate::screens::evals::rule_len(state).saturating_sub(rows);
        let told = state.evals.rules.told();
        if !told && (rows == 0 || last == 0) {
            return walk(state, action).unwrap_or_default();
        }
        let at = state.evals.rules.top.min(last);
        if let Some(to) = travel::to(action, at, last, rows.max(2) - 1) {
            state.evals.rules.top = to;
        }
        return Vec::new();
    }
    if let Some(effects) = walk(state, action) {
        return effects;
    }
    let (now, protected) = (state.now, state.target.protected);
    match action {
        Action::Rules => state.evals.part = Part::List,
        Action::Back if state.evals.rules.told() => {
            state.evals.rules.side = Side::Facts;
            state.evals.rules.top = 0;
        }
        Action::Back => state.evals.part = Part::List,
        Action::Refresh => return evals::refresh(state),
        Action::NewRule => return add(state),
        Action::Open | Action::Enable | Action::DeleteRule | Action::TestRule | Action::Why => {
            let Some(rule) = state.evals.rules.current().cloned() else {
                state.tell("no rule is selected");
                return Vec::new();
            };
            let (id, name) = (rule.id, rule.metric_name);
            match action {
                Action::Open => return evals::of(state, "rule", id),
                Action::Enable => {
                    let paused = rule.enabled && rule.paused_reason.is_some();
                    let change = Change::SetEnabled { id, name, on: paused || !rule.enabled, paused };
                    state.dialog = Some(Dialog::confirm(change, protected, now));
                }
                Action::DeleteRule => {
                    let change = Change::DeleteRule { id, name };
                    state.dialog = Some(Dialog::confirm(change, protected, now));
                }
                Action::TestRule => {
                    let form = Form::test(id, name, known::at_hand(state));
                    state.dialog = Some(Dialog::form(form, now));
                }
                _ => {
                    let trace = known::at_hand(state).map(|id| id.to_string()).unwrap_or_default();
                    typing::begin(state, Input::new(LinePurpose::Why, &trace));
                }
            }
        }
        _ => {}
    }
    Vec::new()
}

/// Moves the cursor among the rules; nothing for what is no movement.
fn walk(state: &mut State, action: Action) -> Option<Vec<Effect>> {
    let page = state.evals_parts().rule_rows().max(2) - 1;
    let last = state.evals.rules.list.items.len().saturating_sub(1);
    let to = travel::to(action, state.evals.rules.list.selected, last, page)?;
    state.evals.rules.list.selected = to;
    state.evals.rules.top = 0;
    Some(sample(state))
}

/// Asks for the parts of a new rule.
fn add(state: &mut State) -> Vec<Effect> {
    let projects = active(state);
    let chosen = state.project.as_ref().map(|project| project.id);
    let form = Form::rule(chosen, projects, &state.evals.evaluators.items);
    state.dialog = Some(Dialog::form(form, state.now));
    let mut effects = evals::evaluators_for_form(state);
    if !state.manage.projects.loaded {
        effects.push(Effect::LoadProjects(state.request(Purpose::Projects)));
    }
    effects
}

/// The projects that a rule can be made in.
pub(super) fn active(state: &State) -> Vec<(Uuid, String)> {
    let projects = state.manage.projects.items.iter().chain(
        // The one that is shown is known before all of them are.
        state.project.as_ref().filter(|_| !state.manage.projects.loaded),
    );
    let active = projects.filter(|it| it.status == ProjectStatus::Active);
    active.map(|it| (it.id, it.name.clone())).collect()
}

/// Asks what the selected rule decided about a trace, or of late.
///
/// # Errors
/// The character that is wrong, from 0, and what is wrong with it.
pub(super) fn why(state: &mut State, text: &str) -> Result<Vec<Effect>, (usize, String)> {
    let trace = match text {
        "" => None,
        text => {
            let whole = text.parse().ok().map(Ok);
            let found = whole.unwrap_or_else(|| ending(known::traces(state), text));
            let wrong = |unknown: Unknown| {
                let why = if is_end(text) {
                    unknown.why("trace", text)
                } else {
                    "the id of a trace, or nothing for the newest decisions".to_owned()
                };
                (0, why)
            };
            Some(found.map_err(wrong)?)
        }
    };
    let Some(rule) = state.evals.rules.current().map(|rule| rule.id) else { return Ok(Vec::new()) };
    state.evals.rules.top = 0;
    state.evals.rules.side = Side::Decisions { rule, trace, answer: None };
    let request = state.request(Purpose::Decisions(rule));
    Ok(vec![Effect::LoadDecisions { request, rule, trace }])
}

/// What a rule decided is here.
pub(super) fn decided(state: &mut State, result: Result<RuleDecisionList, NetError>) {
    if let Err(error) = &result {
        state.complain(crate::screens::notice::describe(error));
    }
    if let Side::Decisions { answer, .. } = &mut state.evals.rules.side {
        *answer = Some(result);
    }
}

/// What a test brought is here.
pub(super) fn tested(state: &mut State, change: &Change, result: Box<RuleTest>) {
    let Some(rule) = change.id() else { return };
    state.evals.rules.top = 0;
    state.evals.rules.side = Side::Tested { rule, result };
    state.tell(change.done());
}
