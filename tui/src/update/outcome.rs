//! What becomes of the one request of a dialog: sent once, and looked up when its answer is lost.

use api::{Timestamp, client::calls::EvaluationFilter};
use uuid::Uuid;

use crate::{
    change::{Change, Landed, Lists, Touches},
    dialog::{Body, Dialog, Loaded, Phase, Stop},
    format::short_id,
    msg::{Effect, NetError, Reply},
    screens::{manage::access, notice::describe},
    state::{Purpose, State},
};

use super::{evals, known, manage, network, rules};

/// Evaluations that are read to see whether one of them is the one asked for.
const CHECKED: u32 = 50;
/// Microseconds by which this machine's clock may be before the server's, generously.
const SKEW: i64 = 120_000_000;

/// Sends the one request.
pub(super) fn send(state: &mut State) -> Vec<Effect> {
    let loaded = Loaded { traces: known::traces(state), spans: known::spans(state) };
    let Some(dialog) = &mut state.dialog else { return Vec::new() };
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
        Touches::Keys => state.manage.keys.items.iter().map(|key| key.id).collect(),
        Touches::Projects => state.manage.projects.items.iter().map(|project| project.id).collect(),
        Touches::Rules => state.evals.rules.list.items.iter().map(|rule| rule.id).collect(),
        Touches::Evaluations => {
            let opened = state.detail.iter().flat_map(|open| open.scores.rows());
            state.evals.rows.iter().chain(opened).map(|row| row.id).collect()
        }
        Touches::Nothing => Vec::new(),
    };
    dialog.complaint = None;
    dialog.sent = state.now;
    dialog.phase = Phase::Sending { change: change.clone(), before };
    let session = state.has_session();
    let request = state.request(Purpose::Change);
    vec![Effect::Send { request, change, session }]
}

/// The request came to its end.
pub(super) fn sent(state: &mut State, result: Result<Reply, NetError>) -> Vec<Effect> {
    let now = state.now;
    let Some(dialog) = &mut state.dialog else { return Vec::new() };
    let Phase::Sending { change, before } = &dialog.phase else { return Vec::new() };
    let (change, before) = (change.clone(), before.clone());
    match result {
        Ok(Reply::Key(key)) => {
            let (name, access) = (key.name.clone(), access(&key));
            let secret = state.manage.add_key(*key);
            match secret {
                Some(secret) => state.dialog = Some(Dialog::secret(name, access, secret, now)),
                None => {
                    state.dialog = None;
                    state.complain(format!("{}, but the answer holds no secret", change.done()));
                }
            }
            manage::load(state)
        }
        Ok(Reply::Tested(result)) => {
            state.dialog = None;
            rules::tested(state, &change, result);
            Vec::new()
        }
        Ok(reply) => {
            state.dialog = None;
            state.tell(change.done());
            match reply {
                Reply::Evaluation(begun) => state.evals.wanted = Some(begun.id),
                Reply::RuleMade(id) => state.evals.rules.wanted = Some(id),
                _ => {}
            }
            renew(state, &change)
        }
        // A test leaves nothing behind that could be looked for.
        Err(error) if change.touches() == Touches::Nothing && error.status.is_none() => {
            state.dialog = None;
            state.complain(format!("no result of the test: {}; nothing was stored", describe(&error)));
            Vec::new()
        }
        // No answer, or one that leaves open what happened: the lists tell.
        Err(error) if matches!(error.status, None | Some(200..=299 | 500..=599)) => {
            dialog.phase = Phase::Checking { change, before, why: describe(&error), stuck: None };
            check(state)
        }
        Err(error) => {
            refused(state, &error);
            renew(state, &change)
        }
    }
}

/// Reads again what a change touches.
fn renew(state: &mut State, change: &Change) -> Vec<Effect> {
    match change.touches() {
        Touches::Keys | Touches::Projects => manage::load(state),
        Touches::Rules => rules::load(state),
        Touches::Evaluations => {
            // The quota that is shown moves with it.
            let mut effects = vec![network::load_me(state)];
            effects.extend(evals::began(state));
            effects
        }
        Touches::Nothing => Vec::new(),
    }
}

/// The server answered that it did nothing.
fn refused(state: &mut State, error: &NetError) {
    let now = state.now;
    let Some(dialog) = &mut state.dialog else { return };
    match &dialog.body {
        // What was typed can be mended.
        Body::NewKey { .. } | Body::NewProject { .. } | Body::Form(_) if !error.unauthorized() => {
            dialog.ask_again(describe(error), now);
        }
        Body::Confirm { change, .. } if error.status == Some(404) => {
            let name = change.name().to_owned();
            state.dialog = None;
            state.complain(format!("{name} is gone: someone else was first"));
        }
        _ => {
            state.dialog = None;
            state.complain(describe(error));
        }
    }
}

/// Reads the list that tells whether the change happened.
pub(super) fn check(state: &mut State) -> Vec<Effect> {
    let Some(Dialog { phase: Phase::Checking { change, stuck, .. }, sent, .. }) = &mut state.dialog else {
        return Vec::new();
    };
    *stuck = None;
    let since = Timestamp::from_micros(sent.micros() - SKEW);
    let change = change.clone();
    let request = state.request(Purpose::Check);
    vec![match &change {
        Change::Evaluate(new) => {
            let filter = EvaluationFilter {
                trace_id: Some(new.trace_id),
                metric_name: Some(new.metric_name.clone()),
                from: Some(since),
                ..EvaluationFilter::default()
            };
            Effect::LoadEvaluations { request, filter, limit: CHECKED, cursor: None }
        }
        change => match change.touches() {
            Touches::Keys => Effect::LoadKeys(request),
            Touches::Rules => Effect::LoadRules { request, project: listed_in(state, change) },
            _ => Effect::LoadProjects(request),
        },
    }]
}

/// The project whose rules tell what happened: a rule can be made in another than the one shown.
fn listed_in(state: &State, change: &Change) -> Option<Uuid> {
    match (change, rules::project(state)) {
        (Change::CreateRule(new), Some(_)) => Some(new.project_id),
        (_, shown) => shown,
    }
}

/// The list is here that tells whether the change happened, or can't be had either.
pub(super) fn checked(state: &mut State, result: Result<Reply, NetError>) -> Vec<Effect> {
    let (mut evaluations, mut listed) = (Vec::new(), Vec::new());
    match result {
        Ok(Reply::Evaluations(page)) => evaluations = page.evaluations,
        Ok(Reply::Rules(list)) => listed = list,
        Ok(reply) => manage::fill(state, reply),
        Err(error) => {
            if let Some(Dialog { phase: Phase::Checking { stuck, .. }, .. }) = &mut state.dialog {
                *stuck = Some(describe(&error));
            }
            return Vec::new();
        }
    }
    let now = state.now;
    let Some(dialog) = &state.dialog else { return Vec::new() };
    let Phase::Checking { change, before, why, .. } = &dialog.phase else { return Vec::new() };
    let lists = Lists {
        keys: &state.manage.keys.items,
        projects: &state.manage.projects.items,
        rules: &listed,
        evaluations: &evaluations,
        sent: dialog.sent,
    };
    let landed = change.landed(before, lists);
    let (change, why) = (change.clone(), why.clone());
    if change.touches() == Touches::Rules && listed_in(state, &change) == rules::project(state) {
        state.evals.rules.fill(listed);
    }
    let record = match landed {
        Landed::No => {
            if let Some(dialog) = &mut state.dialog {
                dialog.ask_again(format!("it did not happen: {why}"), now);
            }
            return Vec::new();
        }
        Landed::Yes(_) if matches!(change, Change::CreateKey { .. }) => {
            state.dialog = None;
            state.complain(format!(
                "{}, but its secret was lost with the answer; revoke it and make another",
                change.done()
            ));
            return Vec::new();
        }
        Landed::Yes(record) => {
            state.dialog = None;
            state.tell(format!("{}; its answer was lost", change.done()));
            record
        }
        Landed::Perhaps(record) => {
            state.dialog = None;
            let (name, id) = (change.name(), short_id(record));
            let what = "may be the one that was asked for, or another's";
            state.complain(format!("{name}: the answer was lost; evaluation {id} {what}"));
            Some(record)
        }
    };
    match change.touches() {
        Touches::Evaluations => {
            state.evals.wanted = record;
            renew(state, &change)
        }
        Touches::Rules => {
            let rules = &mut state.evals.rules.list;
            if let Some(at) = rules.items.iter().position(|rule| Some(rule.id) == record) {
                rules.selected = at;
            }
            Vec::new()
        }
        // Their lists were read just now.
        _ => Vec::new(),
    }
}
