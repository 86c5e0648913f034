//! The requests for evaluations and their responses. The actions of the keys are in [`actions`].
//!
//! While the screen is shown, the newest page is requested every two seconds, and a page further
//! down as long as some rows there are not finished.

mod actions;

use api::{
    Timestamp,
    client::calls::{self, Page},
    eval::{Evaluation, EvaluationFilter, EvaluationList},
    filter::when::Clock,
};
use uuid::Uuid;

use crate::{
    dialog::Dialog,
    evaluations::{LOOK_INTERVAL_MICROS, first_page, is_unfinished},
    ids::resolve_suffix,
    keymap::Action,
    net::{Destination, Effect, NetError, Response},
    screen::evals::{
        SCREEN_DIGIT,
        form::{self, FormDefaults},
        line::EvalsLine,
        parts,
        rules::{state::RuleSample, update as rules},
        state::{Evals, EvalsRequest, EvalsSection},
    },
    shell::{
        LineError, LoadedIds, Older, Pending, ScreenActions, ScreenRequests, Shell,
        notice::describe,
        trouble::{backoff, is_new, unauthorized},
    },
};

/// Number of evaluations on a page.
const ROWS_PER_PAGE: u32 = 100;
/// Number of evaluations requested while polling, which happens often.
const NEWEST_ROWS: u32 = 50;
/// Older rows are requested when the cursor is this many rows from the last loaded one.
const PREFETCH_ROWS: usize = 20;
/// Microseconds until the rules are requested again after a failure.
const RULES_RETRY_MICROS: i64 = 30_000_000;

impl ScreenActions for Evals {
    fn enter(&mut self, shell: &mut Shell) -> Vec<Effect> {
        // The records are requested once the project is resolved.
        if shell.is_resolving_project() {
            return Vec::new();
        }
        let mut effects = look(self, shell);
        effects.extend(rules::load(self, shell));
        if !shell.evaluators.loaded {
            effects.extend(shell.load_evaluators());
        }
        // The view of a rule names its project.
        effects.extend(shell.need_projects());
        effects
    }

    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        match self.part {
            EvalsSection::List => actions::act(self, shell, action),
            EvalsSection::Rules => rules::act(self, shell, action),
        }
    }

    fn tick(&mut self, shell: &mut Shell) -> Vec<Effect> {
        if shell.screen != SCREEN_DIGIT || shell.overlay.is_some() || shell.is_unauthorized() {
            return Vec::new();
        }
        let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= shell.now);
        let (rows, list) = (due(self.next), due(self.rules.next));
        let mut effects = if rows { look(self, shell) } else { Vec::new() };
        if list {
            effects.extend(rules::load(self, shell));
        }
        effects
    }

    fn project_changed(&mut self, shell: &mut Shell) -> Vec<Effect> {
        self.rules = crate::screen::evals::rules::state::Rules::default();
        self.pending.abandon(|it| matches!(it, EvalsRequest::Rules | EvalsRequest::RuleSample(_)));
        forget(self);
        if shell.screen == SCREEN_DIGIT { self.enter(shell) } else { Vec::new() }
    }

    fn reconnected(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let failed = self.error.is_some() || self.rules.list.error.is_some();
        let asked = self.pending.has(|it| matches!(it, EvalsRequest::First | EvalsRequest::Newest));
        if shell.screen == SCREEN_DIGIT && failed && !asked { self.enter(shell) } else { Vec::new() }
    }
}

impl ScreenRequests for Evals {
    type Purpose = EvalsRequest;

    fn pending(&self) -> &Pending<EvalsRequest> {
        &self.pending
    }

    fn pending_mut(&mut self) -> &mut Pending<EvalsRequest> {
        &mut self.pending
    }

    fn fill(
        &mut self,
        shell: &mut Shell,
        purpose: EvalsRequest,
        sent: Timestamp,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        match purpose {
            EvalsRequest::First => self.extend(response.decoded()?, sent),
            EvalsRequest::Older(at) => self.extend(response.decoded()?, at),
            EvalsRequest::Newest => {
                let replaced = self.refresh(response.decoded()?, sent);
                if replaced {
                    // An open request continues from rows that were replaced.
                    self.pending.abandon(|it| matches!(it, EvalsRequest::Older(_)));
                }
            }
            EvalsRequest::Visible => self.revise(response.decoded::<EvaluationList>()?.evaluations),
            EvalsRequest::Opened(_) => self.revise(vec![response.decoded()?]),
            EvalsRequest::Baseline(id) => {
                self.baselines.insert(id, response.decoded::<Evaluation>()?.score);
            }
            EvalsRequest::RuleSample(id) => {
                self.rules.samples.insert(id, RuleSample::of(&response.decoded()?, shell.now));
                return Ok(rules::sample(self, shell));
            }
            EvalsRequest::Decisions(_) => rules::decided(self, shell, Ok(response.decoded()?)),
            EvalsRequest::Rules => {
                self.rules.fill(response.decoded()?);
                self.rules.next = shell.after(rules::REFRESH_INTERVAL_MICROS);
                return Ok(rules::sample(self, shell));
            }
        }
        if matches!(purpose, EvalsRequest::First | EvalsRequest::Newest) {
            self.heard = Some(shell.now);
            self.next = shell.after(LOOK_INTERVAL_MICROS);
        }
        Ok(baseline(self, shell))
    }

    fn fail(&mut self, shell: &mut Shell, purpose: EvalsRequest, error: NetError) -> Vec<Effect> {
        let effects = unauthorized(shell, &error);
        match purpose {
            EvalsRequest::First | EvalsRequest::Newest => {
                let failures = self.failures.saturating_add(1);
                let wait = backoff(shell, LOOK_INTERVAL_MICROS, failures, &error);
                self.failures = failures;
                // The request is repeated automatically, so each problem is logged once.
                let new = is_new(self.error.as_ref(), &error);
                self.error = Some(error.clone());
                self.next = shell.after(wait);
                if new {
                    shell.report(describe(&error));
                }
            }
            EvalsRequest::Older(_) => shell.report(describe(&error)),
            // A deleted baseline is not requested again. A baseline that could not be read is requested with
            // the next page.
            EvalsRequest::Baseline(id) if !error.is_transient() => {
                self.baselines.insert(id, None);
            }
            EvalsRequest::Rules => {
                let rules = &mut self.rules;
                let new = is_new(rules.list.error.as_ref(), &error);
                rules.list.error = Some(error.clone());
                self.rules.next = shell.after(RULES_RETRY_MICROS);
                if new {
                    shell.report(describe(&error));
                }
            }
            EvalsRequest::Decisions(_) => rules::decided(self, shell, Err(error)),
            _ => {}
        }
        effects
    }
}

/// Discards the rows and abandons their open requests.
fn forget(evals: &mut Evals) {
    evals.forget();
    let of_rows = |it: &EvalsRequest| {
        matches!(
            it,
            EvalsRequest::First
                | EvalsRequest::Older(_)
                | EvalsRequest::Newest
                | EvalsRequest::Visible
                | EvalsRequest::Opened(_)
        )
    };
    evals.pending.abandon(of_rows);
}

/// Requests the newest page and the visible rows that may have changed.
fn look(evals: &mut Evals, shell: &mut Shell) -> Vec<Effect> {
    evals.next = None;
    let first = if evals.loaded { EvalsRequest::Newest } else { EvalsRequest::First };
    let limit = if first == EvalsRequest::Newest { NEWEST_ROWS } else { ROWS_PER_PAGE };
    let newest = filter(evals, shell);
    let mut effects = vec![evals.pending.send(shell.ticket(), first, first_page(&newest, limit))];
    // The newest page does not contain these rows if it ends before them.
    let polled = if evals.newer { 0 } else { usize::try_from(NEWEST_ROWS).unwrap_or(0) };
    let polled = evals.rows.len().min(polled);
    if let Some(id) = evals.stray().filter(|it| is_unfinished(it)).map(|it| it.id) {
        effects.push(evals.pending.send(shell.ticket(), EvalsRequest::Opened(id), calls::evaluation(id)));
    }
    // Visible rows come first; one page per poll is enough for the others.
    let seen = visible(evals, shell);
    let (rows, first) = (&evals.rows, seen.start.max(polled));
    let mut below = rows[first.min(rows.len())..].iter().chain(&rows[polled..first.min(rows.len())]);
    let late = below.find(|row| is_unfinished(row)).map(|row| row.created_at);
    if let Some(at) = late {
        let filter = EvaluationFilter { to: Some(at), ..filter(evals, shell) };
        let call = first_page(&filter, ROWS_PER_PAGE);
        effects.push(evals.pending.send(shell.ticket(), EvalsRequest::Visible, call));
    }
    effects
}

/// Returns the filter of the line, in the project shown.
pub fn filter(evals: &Evals, shell: &Shell) -> EvaluationFilter {
    filter_at(evals, shell, shell.now)
}

/// Returns the filter of the line, whose relative times count back from `at`. The line was validated before.
fn filter_at(evals: &Evals, shell: &Shell, at: Timestamp) -> EvaluationFilter {
    let line = EvalsLine::parse(&evals.text, &Clock::of(&shell.zone.of(at))).unwrap_or_default();
    // A trace or a rule belongs to one project, which can differ from the project shown.
    let named = line.filter.trace_id.is_some() || line.filter.rule_id.is_some();
    let project = shell.project.as_ref().filter(|_| !named);
    EvaluationFilter { project_id: project.map(|project| project.id), ..line.filter }
}

/// Returns the range of the visible rows.
fn visible(evals: &Evals, shell: &Shell) -> std::ops::Range<usize> {
    let rows = parts(evals, shell).rows();
    let count = evals.rows.len();
    let top = crate::widgets::table::first_visible(evals.selected, count, rows);
    top..(top + rows).min(count)
}

/// Requests the newest page at once, because an evaluation was created.
pub fn created(evals: &mut Evals, shell: &mut Shell) -> Vec<Effect> {
    look(evals, shell)
}

/// Requests the baseline of a visible evaluation, one at a time.
fn baseline(evals: &mut Evals, shell: &mut Shell) -> Vec<Effect> {
    if evals.pending.has(|it| matches!(it, EvalsRequest::Baseline(_))) {
        return Vec::new();
    }
    let Some(id) = evals.missing_baseline(&evals.rows[visible(evals, shell)]) else { return Vec::new() };
    vec![evals.pending.send(shell.ticket(), EvalsRequest::Baseline(id), calls::evaluation(id))]
}

/// Repeats all requests at once because the user asks for it.
pub fn refresh(evals: &mut Evals, shell: &mut Shell) -> Vec<Effect> {
    evals.baselines.retain(|_, score| score.is_some());
    evals.rules.samples.clear();
    shell.evaluators.loaded = false;
    evals.enter(shell)
}

/// Requests older rows when the cursor comes near the last loaded one.
fn more(evals: &mut Evals, shell: &mut Shell) -> Vec<Effect> {
    let near = evals.selected + PREFETCH_ROWS >= evals.rows.len();
    let Some(Older { cursor, at }) = evals.older.clone().filter(|_| near) else { return Vec::new() };
    if evals.pending.has(|purpose| matches!(purpose, EvalsRequest::Older(_))) {
        return Vec::new();
    }
    let filter = filter_at(evals, shell, at);
    let call = calls::evaluations(&filter, &Page { limit: Some(ROWS_PER_PAGE), cursor: Some(cursor) });
    vec![evals.pending.send(shell.ticket(), EvalsRequest::Older(at), call)]
}

/// Applies another filter.
///
/// # Errors
/// Fails with the position of the first wrong character, from 0, and the problem.
pub fn submit(
    evals: &mut Evals,
    shell: &mut Shell,
    text: &str,
    loaded: &LoadedIds,
) -> Result<Vec<Effect>, LineError> {
    let line = EvalsLine::parse(text, &Clock::of(&shell.zone.of(shell.now)))?;
    let mut text = text.to_owned();
    for (field, at, end) in line.short {
        let ids = if field == "rule" { &loaded.rules } else { &loaded.traces };
        let id =
            resolve_suffix(ids.iter().copied(), &end).map_err(|error| (at, error.message(field, &end)))?;
        text = text.replacen(&format!("{field}:{end}"), &format!("{field}:{id}"), 1);
    }
    Ok(if text == evals.text { look(evals, shell) } else { set_filter(evals, shell, text) })
}

fn set_filter(evals: &mut Evals, shell: &mut Shell, text: String) -> Vec<Effect> {
    evals.text = text;
    forget(evals);
    look(evals, shell)
}

/// Shows the evaluations of one trace or of one rule.
pub fn show(evals: &mut Evals, shell: &mut Shell, term: &str, id: Uuid) -> Vec<Effect> {
    evals.text = format!("{term}:{id}");
    evals.part = EvalsSection::List;
    forget(evals);
    if shell.screen == SCREEN_DIGIT {
        look(evals, shell)
    } else {
        vec![Effect::Go(Destination::Screen(SCREEN_DIGIT))]
    }
}

/// Opens the form that runs an evaluation on a trace.
pub fn run_form(shell: &mut Shell, trace: Option<Uuid>) -> Vec<Effect> {
    open_form(shell, FormDefaults { trace, ..FormDefaults::default() })
}

/// Opens the form that runs an evaluation; it begins with the values of the selected one.
fn rerun_form(evals: &Evals, shell: &mut Shell) -> Vec<Effect> {
    let Some(it) = evals.current() else { return run_form(shell, None) };
    let rule = it.rule_id.and_then(|id| evals.rules.get(id));
    let config = rule.map(|rule| rule.config.get().to_owned()).filter(|config| config != "{}");
    open_form(shell, FormDefaults { config, ..FormDefaults::of(it) })
}

fn open_form(shell: &mut Shell, given: FormDefaults) -> Vec<Effect> {
    let form = form::new_evaluation(given, &shell.evaluators.items);
    shell.dialog = Some(Dialog::form(form, shell.now));
    // Evaluators may have been created since the last response.
    shell.load_evaluators().into_iter().collect()
}
