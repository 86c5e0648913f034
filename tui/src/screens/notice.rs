//! Panels in place of a list: nothing there yet, nothing found, refused, or no server.

use api::Timestamp;
use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    format::{capital, elapsed},
    freshness::{self, Cause, Stale},
    keymap::{Action, Scope},
    msg::{FailureKind, NetError},
    state::{Link, State},
    theme::Tone,
    widgets::table::put_panel,
};

/// An error in one line: status, code, sentence and request id.
pub fn describe(error: &NetError) -> String {
    let mut text = String::new();
    if let Some(status) = error.status {
        text.push_str(&format!("{status} "));
    }
    if let Some(code) = error.code.as_deref().filter(|code| !code.is_empty()) {
        text.push_str(&format!("{code}: "));
    }
    text.push_str(&error.message);
    if let Some(id) = &error.request_id {
        text.push_str(&format!(" (request {id})"));
    }
    text
}

/// What the status line says while find looks for words: which hit of how many, and the keys.
pub fn found(state: &State, scope: Scope, words: &str, (at, hits): (usize, usize)) -> String {
    let glyphs = &state.theme.glyphs;
    let ((open, close), dot) = (glyphs.quotes, glyphs.dot);
    let (next, before) = (state.key(scope, Action::FindNext), state.key(scope, Action::FindPrevious));
    format!("find {open}{words}{close} {at} of {hits} {dot} {next} next {dot} {before} previous")
}

/// A first trace from the shell, ready to paste.
pub fn first_steps(state: &State) -> Vec<String> {
    let (url, variable) = (&state.target.url, state.target.variable);
    vec![
        format!("curl -sS {url}/v1/ingest \\"),
        format!("  -H \"Authorization: Bearer ${variable}\" \\"),
        "  -H 'Content-Type: application/json' \\".to_owned(),
        "  -d '{\"name\":\"hello\",\"input\":\"Hi\",\"output\":\"Hello!\"}'".to_owned(),
    ]
}

/// Suggests what to do about a failure, one sentence a line; nothing for one that clears without help.
pub fn advice(state: &State, error: &NetError) -> Vec<String> {
    let url = &state.target.url;
    let scope = state.scope_below();
    match error.kind() {
        FailureKind::Unreachable | FailureKind::RateLimited | FailureKind::ServerFault => Vec::new(),
        FailureKind::Unauthorized => vec![
            "`loupe auth status` shows which credential is used; `loupe auth login` replaces it.".to_owned(),
        ],
        FailureKind::Plan => {
            let yours =
                state.me.as_ref().map(|me| format!("; yours is {}", capital(me.tenant.plan.as_str())));
            let yours = yours.unwrap_or_default();
            let needed = match &error.required_plan {
                Some(plan) => format!("This takes the plan {}{yours}.", capital(plan)),
                None => format!("The plan does not include this{yours}."),
            };
            vec![needed, "`loupe auth status` shows the plan, its limits and the usage.".to_owned()]
        }
        FailureKind::Forbidden => vec![match error.code.as_deref() {
            Some("member_removed") => {
                "An owner can restore the membership: `loupe members restore MEMBER`.".to_owned()
            }
            Some("scope_forbidden") => {
                "The API key is restricted; `loupe auth status` shows its scopes.".to_owned()
            }
            _ => format!(
                "This takes another role or API key; `loupe auth status` shows yours, {} goes to another context.",
                state.key(scope, Action::Contexts)
            ),
        }],
        FailureKind::NotFound => vec![format!(
            "The project may be gone ({} shows another), or the server is older than this console.",
            state.key(scope, Action::Projects)
        )],
        FailureKind::NotApi => vec![
            format!("{url} is answered by a proxy, a login page or another server."),
            format!("Check the address: curl -i {url}/healthz"),
        ],
        FailureKind::Rejected => match (scope, state.keymap.key_of(scope, Action::EditFilter)) {
            (Scope::Search, _) => {
                vec![format!("{} changes the words.", state.key(scope, Action::EditSearch))]
            }
            (_, Some(_)) => vec![format!("{} changes the filter.", state.key(scope, Action::EditFilter))],
            (_, None) => Vec::new(),
        },
    }
}

/// Builds the panel of a failed request: what failed, what to do, and when the next request follows.
pub fn failure(state: &State, error: &NetError, next: Option<Timestamp>) -> Vec<(Tone, String)> {
    let mut lines = vec![(Tone::Bad, describe(error)), (Tone::Plain, String::new())];
    lines.extend(advice(state, error).into_iter().map(|advice| (Tone::Plain, advice)));
    let scope = state.scope_below();
    let (again, log) = (state.key(scope, Action::Refresh), state.key(scope, Action::Problems));
    let wait = match next {
        Some(at) if at > state.now => format!("The console asks again in {}s; ", state.seconds_until(at)),
        Some(_) => format!("The console asks again now{} ", state.theme.glyphs.ellipsis),
        None => String::new(),
    };
    lines.push((Tone::Plain, format!("{wait}{again} asks now, {log} shows the log.")));
    lines
}

/// Draws the panel that stands for the list when there are no rows.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
    put_panel(buffer, area, &state.theme, &lines(state));
}

fn lines(state: &State) -> Vec<(Tone, String)> {
    let key = |action| state.key(Scope::List, action);
    let stale = freshness::stale(state);
    if let Some(Stale { cause: Cause::Silence(sent), .. }) = stale {
        return no_server(state, state.now.micros() - sent.micros(), true);
    }
    if let Link::Down(outage) = &state.link {
        return match outage.error.kind() {
            FailureKind::Unauthorized => unauthorized(state, &outage.error),
            FailureKind::Unreachable => no_server(state, state.now.micros() - outage.since.micros(), false),
            _ => failure(state, &outage.error, state.next_poll),
        };
    }
    if !state.filter.text.is_empty() {
        return vec![
            (Tone::Strong, format!("Nothing matches  {}", state.filter.text)),
            (Tone::Plain, String::new()),
            (Tone::Plain, format!("{}  drop the time bounds", key(Action::WidenTime))),
            (Tone::Plain, format!("{}  clear the filter", key(Action::Back))),
            (Tone::Plain, format!("{}  change it", key(Action::EditFilter))),
        ];
    }
    if state.is_archived() { archived(state) } else { empty(state) }
}

fn archived(state: &State) -> Vec<(Tone, String)> {
    let name = state.project_name().unwrap_or_default();
    vec![
        (Tone::Strong, format!("No traces in {name}, and none will come: the project is archived.")),
        (Tone::Plain, String::new()),
        (Tone::Plain, "Ingest into it answers 403. An owner can restore it:".to_owned()),
        (Tone::Field, format!("loupe projects unarchive {name}")),
        (
            Tone::Plain,
            format!(
                "Screen 7 does the same; {} shows another project.",
                state.key(Scope::List, Action::Projects)
            ),
        ),
    ]
}

fn empty(state: &State) -> Vec<(Tone, String)> {
    let place = state.project_name().map(|name| format!(" in {name}")).unwrap_or_default();
    let mut lines = vec![
        (Tone::Strong, format!("No traces{place} yet.")),
        (Tone::Plain, "The list is live: the first one appears here by itself. Send one:".to_owned()),
        (Tone::Plain, String::new()),
    ];
    lines.extend(first_steps(state).into_iter().map(|line| (Tone::Field, line)));
    let url = &state.target.url;
    lines.extend([
        (Tone::Dim, format!("{} copies this.", state.key(Scope::List, Action::CopyCurl))),
        (Tone::Plain, String::new()),
        (Tone::Plain, "From an OpenTelemetry SDK (OpenInference, OpenLLMetry, GenAI and others):".to_owned()),
        (Tone::Field, format!("export OTEL_EXPORTER_OTLP_ENDPOINT={url}")),
        (
            Tone::Field,
            format!(
                "export OTEL_EXPORTER_OTLP_HEADERS=\"Authorization=Bearer%20${}\"",
                state.target.variable
            ),
        ),
        (Tone::Field, "export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf".to_owned()),
    ]);
    lines
}

fn unauthorized(state: &State, error: &NetError) -> Vec<(Tone, String)> {
    let used = match &state.target.credential {
        Some(credential) => format!("The server refused this credential: {credential}"),
        None => "There is no credential to show the server.".to_owned(),
    };
    let place = state.target.context.as_ref().map(|name| format!(" of context {name}")).unwrap_or_default();
    vec![
        (Tone::Bad, used),
        (Tone::Dim, describe(error)),
        (Tone::Plain, String::new()),
        (Tone::Plain, format!("It came from the environment or the stored credentials{place}.")),
        (Tone::Plain, "In another terminal, one of these, then start the console again:".to_owned()),
        (Tone::Field, "loupe auth status     which credential is used, and from where".to_owned()),
        (Tone::Field, format!("loupe auth login --url {}", state.target.url)),
        (Tone::Field, "export LOUPE_API_KEY=...  or  LOUPE_SESSION_TOKEN=...".to_owned()),
        (Tone::Plain, String::new()),
        (
            Tone::Plain,
            format!(
                "The same credential is tried again every 30 s; {} tries now, {} quits.",
                state.key(Scope::List, Action::Refresh),
                state.key(Scope::List, Action::Quit)
            ),
        ),
    ]
}

fn no_server(state: &State, micros: i64, waiting: bool) -> Vec<(Tone, String)> {
    let (again, log) = (state.key(Scope::List, Action::Refresh), state.key(Scope::List, Action::Problems));
    vec![
        (Tone::Bad, format!("No answer from {} for {}.", state.target.url, elapsed(micros / 1_000_000))),
        (
            Tone::Plain,
            if waiting {
                format!("The server took the request and has not answered it yet; {again} asks again.")
            } else {
                format!("It is asked again by itself; {again} asks now, {log} shows why.")
            },
        ),
        (Tone::Plain, String::new()),
        (Tone::Field, "loupe-server                        start a server on this machine".to_owned()),
        (Tone::Field, "loupe auth login --url https://...  use another one".to_owned()),
        (Tone::Field, "loupe help                          everything else".to_owned()),
    ]
}
