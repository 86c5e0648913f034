//! What the server's answers, its silence and the clock do.
//!
//! Two ways of hearing of new traces run side by side: the stream, and asking every two
//! seconds while there is none. Failures are in [`super::trouble`].

use api::{
    Timestamp,
    client::HEARTBEAT_INTERVAL,
    project::{Project, ProjectStatus},
    trace::{Trace, TraceList},
};

use crate::{
    Options,
    ids::Unknown,
    msg::{Effect, NetError, Reply, RequestId, StreamEvent},
    screens::placeholder::SCREENS,
    state::{EVALS, Link, MANAGE, METRICS, Older, Purpose, State},
};

use super::{detail, enter, evals, manage, metrics, outcome, search, trouble, typing};

/// Microseconds between two polls.
const POLL: i64 = 2_000_000;
/// Limits the wait until a broken stream is opened again, in microseconds.
const STREAM_AGAIN: i64 = 15_000_000;
/// How long the live stream may send nothing, in microseconds: then a heartbeat is overdue, and requests take the
/// place of the stream until it is open again.
const MAX_STREAM_SILENCE_MICROS: i64 = HEARTBEAT_INTERVAL.as_secs() as i64 * 1_000_000 + 5_000_000;
/// Microseconds between two checks of the identity, the refused session and the current project.
const CHECK_INTERVAL: i64 = 30_000_000;
/// Microseconds before the end of a session at which it is announced.
const EXPIRES_SOON: i64 = 300_000_000;

/// What the options ask for, and the first effects of a console.
pub fn start(state: &mut State, options: &Options) -> Vec<Effect> {
    state.tell("enter opens, / filters, ? lists the keys, q quits");
    if let Some(screen) = &options.screen {
        match screen_of(screen) {
            Some(digit) => state.screen = digit,
            None => state.complain(format!("there is no screen {screen}")),
        }
    }
    if let Some(filter) = &options.filter {
        match state.parse(filter) {
            Ok(_) => filter.trim().clone_into(&mut state.filter.text),
            Err(error) => typing::refuse(state, filter, error),
        }
    }
    let mut effects = begin(state);
    if let Some(trace) = &options.trace {
        match trace.parse() {
            Ok(id) => {
                state.screen = 1;
                effects.extend(detail::open(state, id));
            }
            Err(_) => state.complain(format!("{trace} is not the id of a trace")),
        }
    }
    effects
}

/// The first requests to a server.
pub(super) fn begin(state: &mut State) -> Vec<Effect> {
    let mut effects = if state.screen == MANAGE { Vec::new() } else { vec![load_me(state)] };
    effects.extend(enter(state));
    effects.extend(ask(state));
    effects
}

pub(super) fn load_me(state: &mut State) -> Effect {
    let session = state.has_session();
    Effect::LoadMe { request: state.request(Purpose::Me), session }
}

/// A screen by its digit, or by the beginning of its title.
fn screen_of(name: &str) -> Option<u8> {
    let name = name.to_lowercase();
    (1..=super::SCREENS).zip(&SCREENS).find_map(|(digit, screen)| {
        let fits = !name.is_empty() && screen.title.to_lowercase().starts_with(&name);
        (fits || name == digit.to_string()).then_some(digit)
    })
}

/// Puts another filter in force and loads the list anew.
pub(super) fn set_filter(state: &mut State, text: String) -> Vec<Effect> {
    state.filter.text = text;
    reload(state)
}

/// Shows another project, or all of them, and loads the list anew.
pub(super) fn set_project(state: &mut State, project: Option<Project>) -> Vec<Effect> {
    state.target.project = None;
    state.project = project;
    let mut effects = metrics::reload(state);
    effects.extend(evals::reload(state));
    effects.extend(search::reload(state));
    effects.extend(reload(state));
    effects
}

fn reload(state: &mut State) -> Vec<Effect> {
    let find = state.list.find().map(str::to_owned);
    state.list = crate::list::List::new();
    state.list.set_find(find);
    forget_refusal(state);
    // Pages of the other filter that are still under way would mix with this one's.
    let of_list = |it: &Purpose| {
        matches!(it, Purpose::Lookup | Purpose::First | Purpose::More(_) | Purpose::Poll | Purpose::Fill(_))
    };
    state.open.retain(|_, (it, _)| !of_list(it));
    state.stream = None;
    state.next_stream = None;
    let mut effects = vec![Effect::CloseStream];
    effects.extend(ask(state));
    effects
}

/// Forgets that the list was refused, because another or later request may succeed. An outage of the server
/// lasts until a response ends it.
fn forget_refusal(state: &mut State) {
    if state.failure().is_some_and(|error| !error.is_transient()) {
        state.link = Link::Connecting;
    }
}

/// Sends the requests at once when the reader asks for it, whatever failed before.
pub(super) fn retry(state: &mut State) -> Vec<Effect> {
    forget_refusal(state);
    let mut effects = Vec::new();
    if state.me.is_none() {
        effects.push(load_me(state));
    }
    effects.extend(ask(state));
    effects
}

/// Asks for what is missing: the project, the first page, or what is new.
fn ask(state: &mut State) -> Vec<Effect> {
    state.next_poll = None;
    if state.target.project.is_some() && state.project.is_none() {
        return vec![Effect::LoadProjects(state.request(Purpose::Lookup))];
    }
    let purpose = if state.list.loaded { Purpose::Poll } else { Purpose::First };
    let request = state.request(purpose);
    vec![Effect::LoadTraces { request, query: state.query(), cursor: None }]
}

/// The clock moved on.
pub(super) fn tick(state: &mut State) -> Vec<Effect> {
    let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= state.now);
    let (poll, stream, look) = (due(state.next_poll), due(state.next_stream), due(state.next_check));
    warn_of_expiry(state);
    let mut effects = Vec::new();
    if state.link == Link::Streaming && is_silent(state) {
        effects.push(Effect::CloseStream);
        effects.extend(replace_stream(state, 0));
    }
    if poll {
        effects.extend(ask(state));
    }
    if stream && state.link == Link::Polling && state.stream.is_none() {
        effects.extend(open_stream(state));
    }
    if look {
        effects.extend(check(state));
    }
    effects
}

/// Returns whether the live stream sends nothing although a heartbeat is overdue. A connection can break without
/// an end that the stream could report.
fn is_silent(state: &State) -> bool {
    state.heard.is_some_and(|it| state.now.micros() - it.micros() >= MAX_STREAM_SILENCE_MICROS)
}

/// Requests the list in place of a stream that ended, until the stream is opened again after this many seconds or
/// later.
fn replace_stream(state: &mut State, min_wait_seconds: i64) -> Vec<Effect> {
    state.stream = None;
    if state.link == Link::Streaming {
        state.link = Link::Polling;
    }
    let wait = trouble::jittered(state, STREAM_AGAIN).max(min_wait_seconds.saturating_mul(1_000_000));
    state.next_stream = after(state, wait);
    if state.link == Link::Polling { ask(state) } else { Vec::new() }
}

/// Requests data that can change without an event on the stream. While the server is unreachable or
/// refuses, only the list is requested.
fn check(state: &mut State) -> Vec<Effect> {
    state.next_check = after(state, CHECK_INTERVAL);
    if !matches!(state.link, Link::Streaming | Link::Polling) {
        return Vec::new();
    }
    let mut effects = Vec::new();
    if state.screen == MANAGE && state.manage.failed() {
        effects.extend(manage::load(state));
    } else if state.me.is_none() && !state.awaits(|it| *it == Purpose::Me) {
        effects.push(load_me(state));
    }
    if state.refused_session.is_some() {
        let request = state.request(Purpose::RefusedSession);
        effects.push(Effect::LoadMe { request, session: true });
    }
    if let Some(id) = state.project.as_ref().map(|project| project.id) {
        effects.push(Effect::LoadProject { request: state.request(Purpose::Project(id)), id });
    }
    effects
}

/// Stores the current project as the server returned it.
fn renewed(state: &mut State, project: Project) {
    let Some(shown) = state.project.as_mut().filter(|shown| shown.id == project.id) else { return };
    let notice = match (shown.status, project.status) {
        (ProjectStatus::Active, ProjectStatus::Archived) => Some("was archived; it takes no new traces"),
        (ProjectStatus::Archived, ProjectStatus::Active) => Some("was restored; it takes traces again"),
        _ => None,
    };
    *shown = project.clone();
    if let Some(notice) = notice {
        state.tell(format!("{} {notice}", project.name));
    }
}

/// Says once that the session is about to end.
fn warn_of_expiry(state: &mut State) {
    let ends = state.me.as_ref().and_then(|me| me.expires_at).filter(|_| !state.warned);
    let left = ends.map(|at| at.micros() - state.now.micros());
    if let Some(left) = left.filter(|left| *left <= EXPIRES_SOON) {
        state.warned = true;
        let left = crate::format::elapsed(left / 1_000_000);
        state.complain(format!("the session ends in {left}; loupe auth login --session renews it"));
    }
}

fn open_stream(state: &mut State) -> Vec<Effect> {
    state.next_stream = None;
    let request = state.request_stream();
    vec![Effect::OpenStream { request, query: state.query() }]
}

pub(super) fn after(state: &State, micros: i64) -> Option<Timestamp> {
    Some(Timestamp::from_micros(state.now.micros() + micros))
}

/// A request came to its end.
pub(super) fn reply(state: &mut State, request: RequestId, result: Result<Reply, NetError>) -> Vec<Effect> {
    let Some((purpose, asked)) = state.open.remove(&request) else { return Vec::new() };
    match (purpose, result) {
        (Purpose::Change, result) => {
            let mut effects = trouble::refused_session(state, result.as_ref().err());
            effects.extend(outcome::sent(state, result));
            effects
        }
        (Purpose::Check, result) => outcome::checked(state, result),
        (purpose, Err(error)) => trouble::failed(state, &purpose, error),
        (Purpose::RefusedSession, Ok(Reply::Me(me))) => {
            state.refused_session = None;
            state.me = Some(*me);
            state.tell("the session token is accepted again");
            if state.screen == MANAGE { manage::load(state) } else { Vec::new() }
        }
        (_, Ok(Reply::Project(project))) => {
            renewed(state, *project);
            Vec::new()
        }
        (_, Ok(Reply::Me(me))) => {
            state.me = Some(*me);
            Vec::new()
        }
        (Purpose::Lookup, Ok(Reply::Projects(projects))) => {
            state.manage.fill_projects(projects);
            pick(state)
        }
        (_, Ok(reply @ (Reply::Projects(_) | Reply::Keys(_)))) => {
            manage::fill(state, reply);
            Vec::new()
        }
        (purpose, Ok(Reply::Traces(page))) => {
            let mut effects = heard(state);
            effects.extend(traces(state, &purpose, asked, page));
            effects
        }
        (Purpose::Search | Purpose::SearchMore, Ok(Reply::Found(page))) => {
            state.search.extend(page);
            Vec::new()
        }
        (
            purpose,
            Ok(
                reply @ (Reply::Evaluations(_)
                | Reply::Evaluation(_)
                | Reply::Rules(_)
                | Reply::Decisions(_)
                | Reply::Evaluators(_)),
            ),
        ) => evals::fill(state, &purpose, asked, reply),
        (purpose, Ok(reply @ (Reply::Metrics(_) | Reply::ProjectMetric(_) | Reply::Feedback(_)))) => {
            metrics::fill(state, &purpose, reply)
        }
        (Purpose::Trace(id), Ok(Reply::Trace(trace))) => loaded(state, id, *trace),
        (Purpose::Spans(id), Ok(Reply::Spans(page))) => {
            let Some(open) = state.detail.as_mut().filter(|open| open.id == id) else { return Vec::new() };
            open.extend(page);
            more_spans(state)
        }
        _ => Vec::new(),
    }
}

/// Handles a response to a request for the list: an unreachable or refusing server is back.
fn heard(state: &mut State) -> Vec<Effect> {
    let known = state.heard.replace(state.now).is_some();
    if state.next_check.is_none() {
        state.next_check = after(state, CHECK_INTERVAL);
    }
    let refused = match &state.link {
        Link::Down(outage) => {
            let gone = (state.now.micros() - outage.since.micros()) / 1_000_000;
            let refused = !outage.error.is_transient();
            let gone = crate::format::elapsed(gone);
            state.tell(if known {
                format!("back after {gone}; what came meanwhile is filled in")
            } else {
                format!("connected after {gone}")
            });
            refused
        }
        Link::Connecting => false,
        Link::Streaming | Link::Polling => return Vec::new(),
    };
    state.link = Link::Polling;
    // A stream from before the outage may never say that it is dead.
    state.stream = None;
    state.next_stream = None;
    // The role or the plan may have changed during the refusal.
    let missing = (state.me.is_none() || refused) && !state.awaits(|it| *it == Purpose::Me);
    let mut effects = Vec::new();
    if state.screen == MANAGE {
        effects.extend(manage::load(state));
    } else if missing {
        effects.push(load_me(state));
    }
    if state.screen == METRICS && !state.awaits(|it| *it == Purpose::Metrics) {
        effects.extend(metrics::load(state));
    }
    effects.extend(evals::back(state));
    effects.extend(detail::back(state));
    if state.detail.as_ref().is_some_and(|open| !open.loaded) {
        effects.extend(detail::reload(state));
    }
    effects
}

/// Takes in a page of traces that was asked for at this instant.
fn traces(state: &mut State, purpose: &Purpose, asked: Timestamp, page: TraceList) -> Vec<Effect> {
    let at = if let Purpose::More(at) | Purpose::Fill(at) = purpose { *at } else { asked };
    let older = Older::of(page.next_cursor, page.has_more, at);
    match purpose {
        Purpose::First => {
            state.list.older = older;
            state.list.extend(page.traces);
            // A server may accept the stream and never open it.
            state.next_poll = after(state, POLL);
            open_stream(state)
        }
        Purpose::More(_) => {
            if !state.list.full {
                state.list.older = older;
                state.list.extend(page.traces);
            }
            Vec::new()
        }
        _ => {
            let was_empty = state.list.is_empty();
            let met = page.traces.iter().any(|trace| state.list.knows(trace.id));
            let fresh = state.list.arrive(page.traces);
            if was_empty && fresh > 0 {
                state.list.older.clone_from(&older);
            }
            // Rows between this page and the known ones are still missing.
            if let (false, false, Some(Older { cursor, at })) = (met, was_empty || state.list.full, older) {
                let request = state.request(Purpose::Fill(at));
                return vec![Effect::LoadTraces { request, query: state.query_at(at), cursor: Some(cursor) }];
            }
            if state.link == Link::Polling {
                state.next_poll = after(state, POLL);
                if state.stream.is_none() && state.next_stream.is_none() {
                    return open_stream(state);
                }
            }
            Vec::new()
        }
    }
}

/// Finds the project asked for by its name or id, or the end of its id.
fn pick(state: &mut State) -> Vec<Effect> {
    let wanted = state.target.project.clone().unwrap_or_default();
    let found = state.manage.told(&wanted).cloned();
    if let Err(unknown) = found {
        let why = match unknown {
            Unknown::Nothing => format!("no project named {wanted}"),
            Unknown::Several => format!("{wanted} is the end of more than one project's id"),
        };
        state.complain(format!("{why}; showing all projects"));
        state.target.project = None;
    }
    state.project = found.ok();
    let mut effects = ask(state);
    if state.screen == METRICS {
        effects.extend(metrics::load(state));
    }
    if state.screen == EVALS {
        effects.extend(evals::enter(state));
    }
    effects
}

fn loaded(state: &mut State, id: uuid::Uuid, trace: Trace) -> Vec<Effect> {
    let Some(open) = state.detail.as_mut().filter(|open| open.id == id) else { return Vec::new() };
    open.load(trace);
    more_spans(state)
}

/// Asks for the next page of the opened trace's spans, if there is one.
fn more_spans(state: &mut State) -> Vec<Effect> {
    let Some((id, cursor)) =
        state.detail.as_ref().and_then(|open| Some((open.id, open.next_cursor.clone()?)))
    else {
        return Vec::new();
    };
    let request = state.request(Purpose::Spans(id));
    vec![Effect::LoadSpans { request, id, cursor }]
}

/// Something arrived on the stream.
pub(super) fn stream(state: &mut State, request: RequestId, event: StreamEvent) -> Vec<Effect> {
    if state.stream != Some(request) {
        return Vec::new();
    }
    if !matches!(event, StreamEvent::Closed(_)) {
        state.heard = Some(state.now);
    }
    match event {
        StreamEvent::Open => {
            state.link = Link::Streaming;
            // One look fills the gap between the first page and the beginning of the stream.
            ask(state)
        }
        StreamEvent::Alive => Vec::new(),
        StreamEvent::Traces(traces) => {
            let opened = state.detail.as_ref().map(|open| open.id);
            let opened = traces.iter().any(|trace| Some(trace.id) == opened);
            state.list.arrive(traces);
            if opened { detail::reload(state) } else { Vec::new() }
        }
        StreamEvent::Closed(error) => {
            state.stream = None;
            if error.unauthorized() {
                return trouble::failed(state, &Purpose::Poll, error);
            }
            replace_stream(state, i64::try_from(trouble::retry_after(&error)).unwrap_or_default())
        }
    }
}
