//! The request of a dialog: it is sent once, and a lost response is replaced by reading the list that shows the change.

use api::{
    Timestamp,
    client::calls,
    eval::{Evaluation, EvaluationFilter, EvaluationList},
    eval_rule::EvalRule,
};
use uuid::Uuid;

use crate::{
    change::{Change, ChangeOutcome, Lists, Touches},
    dialog::{Body, Dialog, Phase, Stop},
    evaluations::first_page,
    net::{Effect, NetError, Response},
    screen::{evals, manage, traces},
    shell::Purpose,
    shell::notice::describe,
};
use present::format::short_id;

use super::{
    super::{App, connection},
    request::{self, StoredChange},
};

/// Number of evaluations that are read to find the one whose response was lost.
const MAX_CHECKED_ROWS: u32 = 50;
/// Microseconds by which this machine's clock may be before the server's, generously.
const MAX_CLOCK_SKEW_MICROS: i64 = 120_000_000;

/// Sends the request.
pub fn send(app: &mut App) -> Vec<Effect> {
    let loaded = app.loaded_ids();
    let Some(dialog) = &mut app.shell.dialog else { return Vec::new() };
    if !dialog.armed() {
        dialog.complaint = Some(match dialog.body {
            Body::Confirm { .. } => "type the characters first".to_owned(),
            _ => "a name is needed".to_owned(),
        });
        return Vec::new();
    }
    let change = match &dialog.body {
        Body::Form(form) => match form.change(&loaded) {
            Ok(change) => change,
            Err((line, why)) => {
                dialog.complaint = Some(why);
                dialog.focus = Stop::Field(line);
                return Vec::new();
            }
        },
        _ => match dialog.change() {
            Some(change) => change,
            None => return Vec::new(),
        },
    };
    let before = match change.touches() {
        Touches::Keys => app.screens.manage.keys.items.iter().map(|key| key.id).collect(),
        Touches::Projects => app.shell.projects.items.iter().map(|project| project.id).collect(),
        Touches::Rules => app.screens.evals.rules.list.items.iter().map(|rule| rule.id).collect(),
        Touches::Evaluations => {
            let opened = app.screens.traces.detail.iter().flat_map(|open| open.scores.rows());
            app.screens.evals.rows.iter().chain(opened).map(|row| row.id).collect()
        }
        Touches::Nothing => Vec::new(),
    };
    dialog.complaint = None;
    dialog.sent = app.shell.now;
    dialog.phase = Phase::Sending { change: change.clone(), before };
    vec![request::send(&mut app.shell, &change)]
}

/// Handles the end of the request.
pub fn sent(app: &mut App, result: Result<Response, NetError>) -> Vec<Effect> {
    let now = app.shell.now;
    let Some(dialog) = &mut app.shell.dialog else { return Vec::new() };
    let Phase::Sending { change, before } = &dialog.phase else { return Vec::new() };
    let (change, before) = (change.clone(), before.clone());
    let outcome = result.and_then(|response| request::stored(&change, response));
    match outcome {
        Ok(StoredChange::Key(key)) => {
            let (name, access) = (key.name.clone(), manage::access(&key));
            let secret = app.screens.manage.add_key(*key);
            match secret {
                Some(secret) => app.shell.dialog = Some(Dialog::secret(name, access, secret, now)),
                None => {
                    app.shell.dialog = None;
                    app.shell.report(format!("{}, but the response contains no secret", change.done()));
                }
            }
            manage::update::load(&mut app.screens.manage, &mut app.shell)
        }
        Ok(StoredChange::Tested(result)) => {
            app.shell.dialog = None;
            evals::rules::update::tested(&mut app.screens.evals, &mut app.shell, &change, result);
            Vec::new()
        }
        Ok(stored) => {
            app.shell.dialog = None;
            app.shell.notify(change.done());
            match stored {
                StoredChange::Evaluation(id) => app.screens.evals.wanted = Some(id),
                StoredChange::Rule(id) => app.screens.evals.rules.wanted = Some(id),
                _ => {}
            }
            renew(app, &change)
        }
        // A test stores nothing that a list could show.
        Err(error) if change.touches() == Touches::Nothing && error.status.is_none() => {
            app.shell.dialog = None;
            app.shell.report(format!("no result of the test: {}; nothing was stored", describe(&error)));
            Vec::new()
        }
        // Without a conclusive response, the list shows whether the change happened.
        Err(error) if matches!(error.status, None | Some(200..=299 | 500..=599)) => {
            dialog.phase = Phase::Checking { change, before, why: describe(&error), stuck: None };
            check(app)
        }
        Err(error) => {
            refused(app, &error);
            renew(app, &change)
        }
    }
}

/// Requests the lists that a change affects.
fn renew(app: &mut App, change: &Change) -> Vec<Effect> {
    match change.touches() {
        Touches::Keys | Touches::Projects => manage::update::load(&mut app.screens.manage, &mut app.shell),
        Touches::Rules => evals::rules::update::load(&mut app.screens.evals, &mut app.shell),
        Touches::Evaluations => {
            // The quota that is shown moves with it.
            let mut effects = vec![app.shell.load_me()];
            effects.extend(show_new(app));
            effects
        }
        Touches::Nothing => Vec::new(),
    }
}

/// Shows the evaluation that was just created where it can be seen.
fn show_new(app: &mut App) -> Vec<Effect> {
    if app.shell.screen == evals::SCREEN_DIGIT {
        return evals::update::created(&mut app.screens.evals, &mut app.shell);
    }
    if app.shell.screen == traces::SCREEN_DIGIT && app.screens.traces.detail.is_some() {
        return traces::detail::update::show_evals(&mut app.screens.traces, &mut app.shell);
    }
    let key = app.shell.key_named("trace.evals");
    app.shell.notify(format!("the evaluation was requested; {key} shows it"));
    Vec::new()
}

/// Handles a refused change.
fn refused(app: &mut App, error: &NetError) {
    let now = app.shell.now;
    let Some(dialog) = &mut app.shell.dialog else { return };
    match &dialog.body {
        // The form stays open, so that the input can be corrected.
        Body::NewKey { .. } | Body::NewProject { .. } | Body::Form(_) if !error.is_unauthorized() => {
            dialog.ask_again(describe(error), now);
        }
        Body::Confirm { change, .. } if error.status == Some(404) => {
            let name = change.name().to_owned();
            app.shell.dialog = None;
            app.shell.report(format!("{name} no longer exists: it was deleted elsewhere"));
        }
        _ => {
            app.shell.dialog = None;
            app.shell.report(describe(error));
        }
    }
}

/// Requests the list that shows whether the change happened.
pub fn check(app: &mut App) -> Vec<Effect> {
    let Some(Dialog { phase: Phase::Checking { change, stuck, .. }, sent, .. }) = &mut app.shell.dialog
    else {
        return Vec::new();
    };
    *stuck = None;
    let since = Timestamp::from_micros(sent.micros() - MAX_CLOCK_SKEW_MICROS);
    let change = change.clone();
    vec![match &change {
        Change::Evaluate(new) => {
            let filter = EvaluationFilter {
                trace_id: Some(new.trace_id),
                metric_name: Some(new.metric_name.clone()),
                from: Some(since),
                ..EvaluationFilter::default()
            };
            app.shell.send(Purpose::Check, first_page(&filter, MAX_CHECKED_ROWS))
        }
        change => match change.touches() {
            Touches::Keys => app.shell.send_all(Purpose::Check, calls::api_keys),
            Touches::Rules => {
                let project = listed_in(app, change);
                app.shell.send_all(Purpose::Check, move |page| calls::eval_rules(project, page))
            }
            _ => app.shell.request_projects(Purpose::Check),
        },
    }]
}

/// Returns the project whose rules show the change: a rule can be created in a project that is not shown.
fn listed_in(app: &App, change: &Change) -> Option<Uuid> {
    match (change, app.shell.project_id()) {
        (Change::CreateRule(new), Some(_)) => Some(new.project_id),
        (_, shown) => shown,
    }
}

/// Stores the list that shows whether a change happened. Returns evaluations and rules, which no list of the console
/// takes over.
fn fill(
    app: &mut App,
    touched: Touches,
    response: Response,
) -> Result<(Vec<Evaluation>, Vec<EvalRule>), NetError> {
    match touched {
        Touches::Evaluations => {
            return Ok((response.decoded::<EvaluationList>()?.evaluations, Vec::new()));
        }
        Touches::Rules => return Ok((Vec::new(), response.decoded()?)),
        Touches::Keys => app.screens.manage.fill_keys(response.decoded()?),
        Touches::Projects => connection::fill_projects(&mut app.shell, response.decoded()?),
        Touches::Nothing => {}
    }
    Ok((Vec::new(), Vec::new()))
}

/// Handles the list that shows whether the change happened, or the error of reading it.
pub fn checked(app: &mut App, result: Result<Response, NetError>) -> Vec<Effect> {
    let Some(Dialog { phase: Phase::Checking { change, .. }, .. }) = &app.shell.dialog else {
        return Vec::new();
    };
    let touched = change.touches();
    let (evaluations, listed) = match result.and_then(|response| fill(app, touched, response)) {
        Ok(lists) => lists,
        Err(error) => {
            if let Some(Dialog { phase: Phase::Checking { stuck, .. }, .. }) = &mut app.shell.dialog {
                *stuck = Some(describe(&error));
            }
            return Vec::new();
        }
    };
    let now = app.shell.now;
    let Some(dialog) = &app.shell.dialog else { return Vec::new() };
    let Phase::Checking { change, before, why, .. } = &dialog.phase else { return Vec::new() };
    let lists = Lists {
        keys: &app.screens.manage.keys.items,
        projects: &app.shell.projects.items,
        rules: &listed,
        evaluations: &evaluations,
        sent: dialog.sent,
    };
    let landed = change.landed(before, lists);
    let (change, why) = (change.clone(), why.clone());
    if change.touches() == Touches::Rules && listed_in(app, &change) == app.shell.project_id() {
        app.screens.evals.rules.fill(listed);
    }
    let record = match landed {
        ChangeOutcome::No => {
            if let Some(dialog) = &mut app.shell.dialog {
                dialog.ask_again(format!("the change was not made: {why}"), now);
            }
            return Vec::new();
        }
        ChangeOutcome::Yes(_) if matches!(change, Change::CreateKey { .. }) => {
            app.shell.dialog = None;
            app.shell.report(format!(
                "{}, but its secret was lost with the response; revoke it and create another",
                change.done()
            ));
            return Vec::new();
        }
        ChangeOutcome::Yes(record) => {
            app.shell.dialog = None;
            app.shell.notify(format!("{}; its response was lost", change.done()));
            record
        }
        ChangeOutcome::Perhaps(record) => {
            app.shell.dialog = None;
            let (name, id) = (change.name(), short_id(record));
            let what = "may be the requested one or another client's";
            app.shell.report(format!("{name}: the response was lost; evaluation {id} {what}"));
            Some(record)
        }
    };
    match change.touches() {
        Touches::Evaluations => {
            app.screens.evals.wanted = record;
            renew(app, &change)
        }
        Touches::Rules => {
            let rules = &mut app.screens.evals.rules.list;
            if let Some(at) = rules.items.iter().position(|rule| Some(rule.id) == record) {
                rules.selected = at;
            }
            Vec::new()
        }
        // Their lists were read just now.
        _ => Vec::new(),
    }
}
