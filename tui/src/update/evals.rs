//! When evaluations are asked for, and what becomes of the answers. The keys are in [`keys`].
//!
//! While the screen is in sight the newest page is asked for every two seconds, and a page further
//! down as long as some rows there are not finished.

mod keys;

use api::{Timestamp, client::calls::EvaluationFilter, filter::when::Clock};
use uuid::Uuid;

use crate::{
    dialog::{Dialog, Form, Given},
    evals::{Line, Part, Sample, unfinished},
    ids::ending,
    keymap::{Action, Scope},
    msg::{Effect, NetError, Reply},
    state::{EVALS, Older, Place, Purpose, State},
};

pub(super) use keys::act;

use super::{detail, go, known, network, rules, trouble};

/// Evaluations asked for at once.
const PAGE: u32 = 100;
/// The same while looking for what is new: it is done often.
const NEWEST: u32 = 50;
/// The most of them: of one trace, or of one rule in a day.
pub(super) const WIDE: u32 = 200;
/// Rows before the end of the loaded ones at which older ones are asked for.
const AHEAD: usize = 20;
/// Microseconds between two looks.
pub(super) const LOOK: i64 = 2_000_000;
/// The longest wait after failures, in the same.
const LONGEST: i64 = 30_000_000;

/// Going to the screen: what it shows is asked for.
pub(super) fn enter(state: &mut State) -> Vec<Effect> {
    // The project asked for by its name is still being looked up; what is of it comes after.
    if state.target.project.is_some() && state.project.is_none() {
        return Vec::new();
    }
    let mut effects = look(state);
    effects.extend(rules::load(state));
    if !state.evals.evaluators.loaded && !state.awaits(|it| *it == Purpose::Evaluators) {
        effects.push(Effect::LoadEvaluators(state.request(Purpose::Evaluators)));
    }
    // Rules name them.
    if !state.manage.projects.loaded && !state.awaits(|it| *it == Purpose::Projects) {
        effects.push(Effect::LoadProjects(state.request(Purpose::Projects)));
    }
    effects
}

/// The clock moved on.
pub(super) fn tick(state: &mut State) -> Vec<Effect> {
    if state.screen != EVALS || state.overlay.is_some() || state.is_unauthorized() {
        return Vec::new();
    }
    let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= state.now);
    let (rows, list) = (due(state.evals.next), due(state.evals.rules.next));
    let mut effects = if rows { look(state) } else { Vec::new() };
    if list {
        effects.extend(rules::load(state));
    }
    effects
}

/// Another project, or all of them, was chosen: evaluations and rules are of others.
pub(super) fn reload(state: &mut State) -> Vec<Effect> {
    state.evals.rules = crate::evals::Rules::default();
    state.open.retain(|_, (it, _)| !matches!(it, Purpose::Rules | Purpose::RuleSample(_)));
    forget(state);
    if state.screen == EVALS { enter(state) } else { Vec::new() }
}

/// Forgets the rows, and answers that are still under way.
fn forget(state: &mut State) {
    state.evals.forget();
    let of_rows = |it: &Purpose| {
        matches!(
            it,
            Purpose::Evals
                | Purpose::EvalsMore(_)
                | Purpose::EvalsPoll
                | Purpose::EvalsSeen
                | Purpose::EvalRead(_)
        )
    };
    state.open.retain(|_, (it, _)| !of_rows(it));
}

/// Asks for the newest page, and for what is in sight and may have changed.
fn look(state: &mut State) -> Vec<Effect> {
    state.evals.next = None;
    let first = if state.evals.loaded { Purpose::EvalsPoll } else { Purpose::Evals };
    let limit = if first == Purpose::EvalsPoll { NEWEST } else { PAGE };
    let newest = filter(state);
    let request = state.request(first);
    let mut effects = vec![Effect::LoadEvaluations { request, filter: newest, limit, cursor: None }];
    // The newest page says nothing of the rows once it no longer reaches them.
    let polled = if state.evals.newer { 0 } else { usize::try_from(NEWEST).unwrap_or(0) };
    let polled = state.evals.rows.len().min(polled);
    if let Some(id) = state.evals.stray().filter(|it| unfinished(it)).map(|it| it.id) {
        effects.push(Effect::LoadEvaluation { request: state.request(Purpose::EvalRead(id)), id });
    }
    // Those in sight come first; one page is enough for the others, look after look.
    let seen = visible(state);
    let (rows, first) = (&state.evals.rows, seen.start.max(polled));
    let mut below = rows[first.min(rows.len())..].iter().chain(&rows[polled..first.min(rows.len())]);
    let late = below.find(|row| unfinished(row)).map(|row| row.created_at);
    if let Some(at) = late {
        let filter = EvaluationFilter { to: Some(at), ..filter(state) };
        let request = state.request(Purpose::EvalsSeen);
        effects.push(Effect::LoadEvaluations { request, filter, limit: PAGE, cursor: None });
    }
    effects
}

/// What the line selects, in the project shown.
pub(super) fn filter(state: &State) -> EvaluationFilter {
    filter_at(state, state.now)
}

/// The same, with times reckoned from another instant. The line was read before, so it reads again.
fn filter_at(state: &State, at: Timestamp) -> EvaluationFilter {
    let line = Line::parse(&state.evals.text, &Clock::of(&state.zone.of(at))).unwrap_or_default();
    // A trace or a rule is of one project, which need not be the one shown.
    let named = line.filter.trace_id.is_some() || line.filter.rule_id.is_some();
    let project = state.project.as_ref().filter(|_| !named);
    EvaluationFilter { project_id: project.map(|project| project.id), ..line.filter }
}

/// The rows in sight.
fn visible(state: &State) -> std::ops::Range<usize> {
    let rows = state.evals_parts().rows();
    let count = state.evals.rows.len();
    let top = crate::widgets::table::first_visible(state.evals.selected, count, rows);
    top..(top + rows).min(count)
}

/// An evaluation was asked for: it is looked for at once, where it can be seen.
pub(super) fn began(state: &mut State) -> Vec<Effect> {
    let opened = state.detail.as_ref().filter(|_| state.screen == 1).map(|open| open.id);
    match (state.screen, opened) {
        (EVALS, _) => look(state),
        (_, Some(_)) => detail::show_evals(state),
        _ => {
            let all = state.key(Scope::List, Action::TraceEvals);
            state.tell(format!("the evaluation was asked for; {all} shows it"));
            Vec::new()
        }
    }
}

/// Takes in the answer to what was asked at this instant.
pub(super) fn fill(state: &mut State, purpose: &Purpose, asked: Timestamp, reply: Reply) -> Vec<Effect> {
    match (purpose, reply) {
        (Purpose::Evals, Reply::Evaluations(page)) => state.evals.extend(page, asked),
        (Purpose::EvalsMore(at), Reply::Evaluations(page)) => state.evals.extend(page, *at),
        (Purpose::EvalsPoll, Reply::Evaluations(page)) => {
            let replaced = state.evals.refresh(page, asked);
            if replaced {
                // A page under way goes on from rows that are no longer there.
                state.open.retain(|_, (it, _)| !matches!(it, Purpose::EvalsMore(_)));
            }
        }
        (Purpose::EvalsSeen, Reply::Evaluations(page)) => state.evals.revise(page.evaluations),
        (Purpose::EvalRead(_), Reply::Evaluation(found)) => state.evals.revise(vec![*found]),
        (Purpose::Baseline(id), Reply::Evaluation(found)) => {
            state.evals.baselines.insert(*id, found.score);
        }
        (Purpose::TraceEvals(id), Reply::Evaluations(page)) => {
            detail::fill_evals(state, *id, Ok(page));
            return Vec::new();
        }
        (Purpose::RuleSample(id), Reply::Evaluations(page)) => {
            state.evals.rules.samples.insert(*id, Sample::of(&page, state.now));
            return rules::sample(state);
        }
        (Purpose::TraceRules(id), Reply::Rules(list)) => return detail::fill_rules(state, *id, Ok(list)),
        (Purpose::TraceDecision(id), Reply::Decisions(list)) => {
            return detail::fill_decision(state, *id, Ok(list));
        }
        (Purpose::Decisions(_), Reply::Decisions(list)) => rules::decided(state, Ok(list)),
        (Purpose::Rules, Reply::Rules(list)) => {
            state.evals.rules.fill(list);
            state.evals.rules.next = network::after(state, rules::REFRESH);
            return rules::sample(state);
        }
        (Purpose::Evaluators, Reply::Evaluators(list)) => evaluators(state, list),
        _ => {}
    }
    if matches!(purpose, Purpose::Evals | Purpose::EvalsPoll) {
        state.evals.heard = Some(state.now);
        state.evals.next = network::after(state, LOOK);
    }
    baseline(state)
}

fn evaluators(state: &mut State, list: Vec<api::evaluator::Evaluator>) {
    if let Some(Dialog { body: crate::dialog::Body::Form(form), .. }) = &mut state.dialog {
        form.fill_evaluators(&list);
    }
    state.evals.evaluators =
        crate::manage::Rows { items: list, loaded: true, ..crate::manage::Rows::default() };
}

/// Asks for a score that one in sight is compared with, one after the other.
fn baseline(state: &mut State) -> Vec<Effect> {
    if state.awaits(|it| matches!(it, Purpose::Baseline(_))) {
        return Vec::new();
    }
    let Some(id) = state.evals.missing_baseline(&state.evals.rows[visible(state)]) else { return Vec::new() };
    vec![Effect::LoadEvaluation { request: state.request(Purpose::Baseline(id)), id }]
}

/// Returns the wait after this many consecutive failures, in microseconds.
pub(super) fn backoff(state: &mut State, failures: u32, error: &NetError) -> i64 {
    if !error.is_transient() {
        return trouble::PROBE_INTERVAL;
    }
    let asked = i64::try_from(trouble::retry_after(error)).unwrap_or_default();
    let backoff = trouble::jittered(state, (LOOK << failures.min(4)).min(LONGEST));
    backoff.max(asked.saturating_mul(1_000_000))
}

/// The server is back: what had failed is asked for at once.
pub(super) fn back(state: &mut State) -> Vec<Effect> {
    let failed = state.evals.error.is_some() || state.evals.rules.list.error.is_some();
    let asked = state.awaits(|it| matches!(it, Purpose::Evals | Purpose::EvalsPoll));
    if state.screen == EVALS && failed && !asked { enter(state) } else { Vec::new() }
}

/// A request failed; what can be asked again is, later and later.
pub(super) fn failed(state: &mut State, purpose: &Purpose, error: NetError) -> Vec<Effect> {
    match purpose {
        Purpose::Evals | Purpose::EvalsPoll => {
            let failures = state.evals.failures.saturating_add(1);
            let wait = backoff(state, failures, &error);
            let evals = &mut state.evals;
            evals.failures = failures;
            // It is asked again by itself; the log needs each trouble only once.
            let new = evals.error.as_ref().is_none_or(|known| known.message != error.message);
            evals.error = Some(error.clone());
            state.evals.next = network::after(state, wait);
            if new {
                state.complain(crate::screens::notice::describe(&error));
            }
        }
        Purpose::EvalsMore(_) => state.complain(crate::screens::notice::describe(&error)),
        // What is gone is not asked for again; what could not be had is, with the next page.
        Purpose::Baseline(id) if !error.is_transient() => {
            state.evals.baselines.insert(*id, None);
        }
        Purpose::TraceEvals(id) => detail::fill_evals(state, *id, Err(error)),
        Purpose::TraceRules(id) => return detail::fill_rules(state, *id, Err(error)),
        Purpose::TraceDecision(id) => return detail::fill_decision(state, *id, Err(error)),
        Purpose::Rules => {
            let rules = &mut state.evals.rules;
            let new = rules.list.error.as_ref().is_none_or(|known| known.message != error.message);
            rules.list.error = Some(error.clone());
            state.evals.rules.next = network::after(state, LONGEST);
            if new {
                state.complain(crate::screens::notice::describe(&error));
            }
        }
        Purpose::Decisions(_) => rules::decided(state, Err(error)),
        Purpose::Evaluators => {
            state.evals.evaluators.error = Some(error.clone());
            // Those of before can be chosen from.
            if state.dialog.is_some() && !state.evals.evaluators.loaded {
                let why = crate::screens::notice::describe(&error);
                state.complain(format!("the evaluators can't be listed, type the name: {why}"));
            }
        }
        _ => {}
    }
    Vec::new()
}

/// Asks again at once, on the reader's word, whatever went wrong before.
pub(super) fn refresh(state: &mut State) -> Vec<Effect> {
    state.evals.baselines.retain(|_, score| score.is_some());
    state.evals.rules.samples.clear();
    state.evals.evaluators.loaded = false;
    enter(state)
}

/// Asks for older rows when the cursor comes near the last loaded one.
fn more(state: &mut State) -> Vec<Effect> {
    let near = state.evals.selected + AHEAD >= state.evals.rows.len();
    let Some(Older { cursor, at }) = state.evals.older.clone().filter(|_| near) else { return Vec::new() };
    if state.awaits(|purpose| matches!(purpose, Purpose::EvalsMore(_))) {
        return Vec::new();
    }
    let filter = filter_at(state, at);
    let request = state.request(Purpose::EvalsMore(at));
    vec![Effect::LoadEvaluations { request, filter, limit: PAGE, cursor: Some(cursor) }]
}

/// Puts another filter in force.
///
/// # Errors
/// The character that is wrong, from 0, and what is wrong with it.
pub(super) fn run(state: &mut State, text: &str) -> Result<Vec<Effect>, (usize, String)> {
    let line = Line::parse(text, &Clock::of(&state.zone.of(state.now)))?;
    let mut text = text.to_owned();
    for (field, at, end) in line.short {
        let ids = if field == "rule" { known::rules(state) } else { known::traces(state) };
        let id = ending(ids, &end).map_err(|unknown| (at, unknown.why(field, &end)))?;
        text = text.replacen(&format!("{field}:{end}"), &format!("{field}:{id}"), 1);
    }
    Ok(if text == state.evals.text { look(state) } else { set_filter(state, text) })
}

fn set_filter(state: &mut State, text: String) -> Vec<Effect> {
    state.evals.text = text;
    forget(state);
    look(state)
}

/// Shows the evaluations of one trace, or of one rule.
pub(super) fn of(state: &mut State, term: &str, id: Uuid) -> Vec<Effect> {
    state.evals.text = format!("{term}:{id}");
    state.evals.part = Part::List;
    forget(state);
    if state.screen == EVALS { look(state) } else { go(state, Place { screen: EVALS, trace: None }) }
}

/// Asks what to run on the trace at hand; on an evaluation, the same as that one.
pub(super) fn ask(state: &mut State) -> Vec<Effect> {
    let current = state.evals.current().filter(|_| state.screen == EVALS);
    let given = match current {
        Some(it) => {
            let rule = it.rule_id.and_then(|id| state.evals.rules.get(id));
            let config = rule.map(|rule| rule.config.get().to_owned()).filter(|config| config != "{}");
            Given { config, ..Given::again(it) }
        }
        None => Given { trace: known::at_hand(state), ..Given::default() },
    };
    let form = Form::evaluate(given, &state.evals.evaluators.items);
    state.dialog = Some(Dialog::form(form, state.now));
    evaluators_for_form(state)
}

/// The evaluators to choose from, as they are now: others may have been made meanwhile.
pub(super) fn evaluators_for_form(state: &mut State) -> Vec<Effect> {
    if state.awaits(|it| *it == Purpose::Evaluators) {
        return Vec::new();
    }
    vec![Effect::LoadEvaluators(state.request(Purpose::Evaluators))]
}
