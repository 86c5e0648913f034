//! Panels in place of a list: nothing there yet, nothing found, refused, or no server.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    format::elapsed,
    keymap::{Action, Scope},
    msg::NetError,
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

/// Draws the panel that stands for the list when there are no rows.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
    put_panel(buffer, area, &state.theme, &lines(state));
}

fn lines(state: &State) -> Vec<(Tone, String)> {
    let key = |action| state.key(Scope::List, action);
    let (again, filter, log) = (key(Action::Refresh), key(Action::EditFilter), key(Action::Problems));
    match (&state.link, &state.refused_list) {
        (Link::Refused(error), _) => unauthorized(state, error),
        (_, Some(error)) => vec![
            (Tone::Bad, describe(error)),
            (Tone::Plain, String::new()),
            (Tone::Plain, format!("{again} tries again, {filter} changes the filter, {log} shows the log.")),
        ],
        (Link::Away { since, status: None, .. }, _) => no_server(state, state.now.micros() - since.micros()),
        (Link::Away { status: Some(status), .. }, _) => vec![
            (Tone::Bad, format!("The server answers {status}.")),
            (
                Tone::Plain,
                format!("The list appears when it answers again; {again} tries now, {log} shows the log."),
            ),
        ],
        _ if !state.filter.text.is_empty() => vec![
            (Tone::Strong, format!("Nothing matches  {}", state.filter.text)),
            (Tone::Plain, String::new()),
            (Tone::Plain, format!("{}  drop the time bounds", key(Action::WidenTime))),
            (Tone::Plain, format!("{}  clear the filter", key(Action::Back))),
            (Tone::Plain, format!("{filter}  change it")),
        ],
        _ => empty(state),
    }
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
                "{} tries again with the same credential, {} quits.",
                state.key(Scope::List, Action::Refresh),
                state.key(Scope::List, Action::Quit)
            ),
        ),
    ]
}

fn no_server(state: &State, micros: i64) -> Vec<(Tone, String)> {
    vec![
        (Tone::Bad, format!("No answer from {} for {}.", state.target.url, elapsed(micros / 1_000_000))),
        (
            Tone::Plain,
            format!(
                "It is asked again by itself; {} asks now, {} shows why.",
                state.key(Scope::List, Action::Refresh),
                state.key(Scope::List, Action::Problems)
            ),
        ),
        (Tone::Plain, String::new()),
        (Tone::Field, "loupe-server                        start a server on this machine".to_owned()),
        (Tone::Field, "loupe auth login --url https://...  use another one".to_owned()),
        (Tone::Field, "loupe help                          everything else".to_owned()),
    ]
}
