//! How the list of traces stays current.
//!
//! New traces arrive over the stream, or by polling every two seconds while there is none.

use api::{
    Timestamp,
    client::{
        Call, HEARTBEAT_INTERVAL,
        calls::{self, Page},
    },
    trace::TraceList,
};

use crate::{
    net::{Effect, RequestId, StreamEvent, TraceQuery},
    shell::{Link, Older, Shell, trouble},
};

use super::{
    detail,
    state::{TraceRows, Traces, TracesRequest},
};

/// Number of traces on a page.
const TRACES_PER_PAGE: u32 = 100;
/// Microseconds between two polls.
const POLL_INTERVAL_MICROS: i64 = 2_000_000;
/// Maximum wait until a broken stream is opened again, in microseconds.
const MAX_STREAM_RETRY_MICROS: i64 = 15_000_000;
/// How long the live stream may send nothing, in microseconds: then a heartbeat is overdue, and requests take the
/// place of the stream until it is open again.
const MAX_STREAM_SILENCE_MICROS: i64 = HEARTBEAT_INTERVAL.as_secs() as i64 * 1_000_000 + 5_000_000;

/// Applies another filter and loads the list again.
pub fn set_filter(traces: &mut Traces, shell: &mut Shell, text: String) -> Vec<Effect> {
    traces.filter.text = text;
    reload(traces, shell)
}

/// Discards the rows and loads the list again.
pub fn reload(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    let find = traces.list.find().map(str::to_owned);
    traces.list = TraceRows::new();
    traces.list.set_find(find);
    forget_refusal(shell);
    // Pages of the previous filter would mix with those of the new one.
    traces.pending.abandon(|it| it.is_of_feed() || matches!(it, TracesRequest::Older(_)));
    shell.stream = None;
    shell.next_stream = None;
    vec![Effect::CloseStream, Effect::RefreshList]
}

/// Resets the refusal of the list, because another or later request may succeed. An outage of the server
/// lasts until a response ends it.
fn forget_refusal(shell: &mut Shell) {
    if shell.failure().is_some_and(|error| !error.is_transient()) {
        shell.link = Link::Connecting;
    }
}

/// Sends the requests at once because the user asks for it.
pub fn retry(shell: &mut Shell) -> Vec<Effect> {
    forget_refusal(shell);
    let mut effects = Vec::new();
    if shell.me.is_none() {
        effects.push(shell.load_me());
    }
    effects.push(Effect::RefreshList);
    effects
}

/// Returns the call for a page of the list; the first one without a cursor.
pub fn page_of(query: &TraceQuery, cursor: Option<String>) -> Call<TraceList> {
    let page = Page { limit: Some(TRACES_PER_PAGE), cursor };
    calls::traces(&query.filter, query.project, &page)
}

/// Requests the first page, or the newest one if the list is loaded.
pub fn refresh(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    shell.next_poll = None;
    let purpose = if traces.list.loaded { TracesRequest::Newest } else { TracesRequest::First };
    vec![traces.pending.send(shell.ticket(), purpose, page_of(&traces.query(shell), None))]
}

/// Polls the list and opens the stream when they are due.
pub fn tick(traces: &Traces, shell: &mut Shell) -> Vec<Effect> {
    let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= shell.now);
    let (poll, stream) = (due(shell.next_poll), due(shell.next_stream));
    let mut effects = Vec::new();
    if shell.link == Link::Streaming && is_stream_silent(shell) {
        effects.push(Effect::CloseStream);
        effects.extend(replace_stream(shell, 0));
    }
    if poll {
        // The list is requested once a tick.
        shell.next_poll = None;
        effects.push(Effect::RefreshList);
    }
    if stream && shell.link == Link::Polling && shell.stream.is_none() {
        effects.push(open_stream(traces, shell));
    }
    effects
}

/// Returns whether the live stream sends nothing although a heartbeat is overdue. A connection can break without
/// an end that the stream could report.
fn is_stream_silent(shell: &Shell) -> bool {
    shell.heard.is_some_and(|it| shell.now.micros() - it.micros() >= MAX_STREAM_SILENCE_MICROS)
}

/// Requests the list in place of a stream that ended, until the stream is opened again after this wait or
/// later.
fn replace_stream(shell: &mut Shell, min_wait_micros: i64) -> Vec<Effect> {
    shell.stream = None;
    if shell.link == Link::Streaming {
        shell.link = Link::Polling;
    }
    let wait = trouble::jittered(shell, MAX_STREAM_RETRY_MICROS).max(min_wait_micros);
    shell.next_stream = shell.after(wait);
    if shell.link == Link::Polling { vec![Effect::RefreshList] } else { Vec::new() }
}

fn open_stream(traces: &Traces, shell: &mut Shell) -> Effect {
    shell.next_stream = None;
    Effect::OpenStream { request: shell.request_stream(), query: traces.query(shell) }
}

/// Records that the list was answered: an unreachable or refusing server is back.
fn record_response(shell: &mut Shell) -> Vec<Effect> {
    let known = shell.heard.replace(shell.now).is_some();
    if shell.next_check.is_none() {
        shell.schedule_check();
    }
    let refused = match &shell.link {
        Link::Down(outage) => {
            let gone = present::format::elapsed((shell.now.micros() - outage.since.micros()) / 1_000_000);
            let refused = !outage.error.is_transient();
            shell.notify(if known {
                format!("back after {gone}; missed traces are filled in")
            } else {
                format!("connected after {gone}")
            });
            refused
        }
        Link::Connecting => false,
        Link::Streaming | Link::Polling => return Vec::new(),
    };
    shell.link = Link::Polling;
    // A stream that was open before the outage may never report its end.
    shell.stream = None;
    shell.next_stream = None;
    vec![Effect::Reconnected { refused }]
}

/// Stores a page of the list that was requested at this instant.
pub fn fill(
    traces: &mut Traces,
    shell: &mut Shell,
    purpose: TracesRequest,
    sent: Timestamp,
    page: TraceList,
) -> Vec<Effect> {
    let mut effects = record_response(shell);
    let at = if let TracesRequest::Older(at) | TracesRequest::Gap(at) = purpose { at } else { sent };
    let older = Older::of(page.next_cursor, page.has_more, at);
    match purpose {
        TracesRequest::First => {
            traces.list.older = older;
            traces.list.extend(page.traces);
            // A server may accept the stream and never open it.
            shell.next_poll = shell.after(POLL_INTERVAL_MICROS);
            effects.push(open_stream(traces, shell));
        }
        TracesRequest::Older(_) => {
            if !traces.list.full {
                traces.list.older = older;
                traces.list.extend(page.traces);
            }
        }
        _ => {
            let was_empty = traces.list.is_empty();
            let met = page.traces.iter().any(|trace| traces.list.knows(trace.id));
            let fresh = traces.list.arrive(page.traces);
            if was_empty && fresh > 0 {
                traces.list.older.clone_from(&older);
            }
            // Rows between this page and the loaded ones are missing.
            if let (false, false, Some(Older { cursor, at })) = (met, was_empty || traces.list.full, older) {
                let call = page_of(&traces.query_at(shell, at), Some(cursor));
                effects.push(traces.pending.send(shell.ticket(), TracesRequest::Gap(at), call));
            } else if shell.link == Link::Polling {
                shell.next_poll = shell.after(POLL_INTERVAL_MICROS);
                if shell.stream.is_none() && shell.next_stream.is_none() {
                    effects.push(open_stream(traces, shell));
                }
            }
        }
    }
    effects
}

/// Handles an event of the stream.
pub fn stream(traces: &mut Traces, shell: &mut Shell, request: RequestId, event: StreamEvent) -> Vec<Effect> {
    if shell.stream != Some(request) {
        return Vec::new();
    }
    if !matches!(event, StreamEvent::Closed(_)) {
        shell.heard = Some(shell.now);
    }
    match event {
        StreamEvent::Open => {
            shell.link = Link::Streaming;
            // One request fills the gap between the first page and the beginning of the stream.
            vec![Effect::RefreshList]
        }
        StreamEvent::Alive => Vec::new(),
        StreamEvent::Traces(changed) => {
            let opened = traces.detail.as_ref().map(|open| open.id);
            let opened = changed.iter().any(|trace| Some(trace.id) == opened);
            traces.list.arrive(changed);
            if opened { detail::update::reload(traces, shell) } else { Vec::new() }
        }
        StreamEvent::Closed(error) => {
            if error.is_unauthorized() {
                shell.stream = None;
                return trouble::outage(shell, error);
            }
            replace_stream(shell, trouble::retry_after(&error))
        }
    }
}
