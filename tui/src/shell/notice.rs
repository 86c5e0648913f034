//! Panels in place of a list: nothing there yet, nothing found, refused, or no server.

use api::Timestamp;
use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    Link, Shell, freshness,
    freshness::{Cause, Stale},
};
use crate::{
    keymap::{Action, Scope},
    net::{FailureKind, NetError},
    theme::Tone,
    widgets::table::put_panel,
};
use present::format::{capital, elapsed};

/// Returns an error in one line: status, code, sentence and request id.
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

/// Returns the status line during find: the number of the match, the number of matches, and the keys.
pub fn found(shell: &Shell, scope: Scope, words: &str, (at, hits): (usize, usize)) -> String {
    let glyphs = &shell.theme.glyphs;
    let ((open, close), dot) = (glyphs.quotes, glyphs.dot);
    let (next, before) = (shell.key(scope, Action::FindNext), shell.key(scope, Action::FindPrevious));
    format!("find {open}{words}{close} {at} of {hits} {dot} {next} next {dot} {before} previous")
}

/// Returns a shell command that sends a first trace, ready to paste.
pub fn first_steps(shell: &Shell) -> Vec<String> {
    let (url, variable) = (&shell.target.url, shell.target.variable);
    vec![
        format!("curl -sS {url}/v1/ingest \\"),
        format!("  -H \"Authorization: Bearer ${variable}\" \\"),
        "  -H 'Content-Type: application/json' \\".to_owned(),
        "  -d '{\"name\":\"hello\",\"input\":\"Hi\",\"output\":\"Hello!\"}'".to_owned(),
    ]
}

/// Suggests next steps for a failure, one sentence a line; none for a failure that clears by itself.
pub fn advice(shell: &Shell, error: &NetError) -> Vec<String> {
    let url = &shell.target.url;
    let scope = shell.scope;
    match error.kind() {
        FailureKind::Unreachable | FailureKind::RateLimited | FailureKind::ServerFault => Vec::new(),
        FailureKind::Unauthorized => vec![
            "`loupe auth status` shows which credential is used; `loupe auth login` replaces it.".to_owned(),
        ],
        FailureKind::Plan => {
            let yours =
                shell.me.as_ref().map(|me| format!("; yours is {}", capital(me.tenant.plan.as_str())));
            let yours = yours.unwrap_or_default();
            let needed = match &error.required_plan {
                Some(plan) => format!("This requires the plan {}{yours}.", capital(plan)),
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
                "This requires another role or API key; `loupe auth status` shows yours, {} goes to another context.",
                shell.key(scope, Action::Contexts)
            ),
        }],
        FailureKind::NotFound => vec![format!(
            "The project may be gone ({} shows another), or the server is older than this console.",
            shell.key(scope, Action::Projects)
        )],
        FailureKind::NotApi => vec![
            format!("{url} is answered by a proxy, a login page or another server."),
            format!("Check the address: curl -i {url}/healthz"),
        ],
        FailureKind::Rejected => {
            let words = shell.keymap.key_of(scope, Action::EditSearch).map(|_| (Action::EditSearch, "words"));
            let filter =
                shell.keymap.key_of(scope, Action::EditFilter).map(|_| (Action::EditFilter, "filter"));
            let edit = words.or(filter);
            edit.map(|(action, what)| format!("{} changes the {what}.", shell.key(scope, action)))
                .into_iter()
                .collect()
        }
    }
}

/// Builds the panel of a failed request: what failed, what to do, and when the next request follows.
pub fn failure(shell: &Shell, error: &NetError, next: Option<Timestamp>) -> Vec<(Tone, String)> {
    let mut lines = vec![(Tone::Bad, describe(error)), (Tone::Plain, String::new())];
    lines.extend(advice(shell, error).into_iter().map(|advice| (Tone::Plain, advice)));
    let scope = shell.scope;
    let (again, log) = (shell.key(scope, Action::Refresh), shell.key(scope, Action::Problems));
    let wait = match next {
        Some(at) if at > shell.now => format!("The console retries in {}s; ", shell.seconds_until(at)),
        Some(_) => format!("The console retries now{} ", shell.theme.glyphs.ellipsis),
        None => String::new(),
    };
    lines.push((Tone::Plain, format!("{wait}{again} retries now, {log} shows the log.")));
    lines
}

/// Builds the panel in place of records that only a session token can read. `sentence` names them.
pub fn session_needed(shell: &Shell, sentence: &str) -> Vec<(Tone, String)> {
    let mut lines = vec![match &shell.refused_session {
        Some(error) => (Tone::Bad, format!("The session token was refused: {}", describe(error))),
        None => (Tone::Strong, sentence.to_owned()),
    }];
    lines.extend([
        (Tone::Plain, String::new()),
        (Tone::Plain, "In another terminal, one of these, then start the console again:".to_owned()),
        (Tone::Field, format!("loupe auth login --session --url {}", shell.target.url)),
        (Tone::Field, "export LOUPE_SESSION_TOKEN=...".to_owned()),
        (Tone::Plain, String::new()),
        (Tone::Dim, "The operator of the server creates one with loupe-server admin issue-token.".to_owned()),
    ]);
    lines
}

/// Draws the panel of a server that is silent, away or refuses.
pub fn draw(shell: &Shell, buffer: &mut Buffer, area: Rect) {
    put_panel(buffer, area, &shell.theme, &outage_lines(shell));
}

/// Returns the panel of a server that is silent, away or refuses; empty if it is none of these.
pub fn outage_lines(shell: &Shell) -> Vec<(Tone, String)> {
    let stale = freshness::stale(shell);
    if let Some(Stale { cause: Cause::Silence(sent), .. }) = stale {
        return no_server(shell, shell.now.micros() - sent.micros(), true);
    }
    if let Link::Down(outage) = &shell.link {
        return match outage.error.kind() {
            FailureKind::Unauthorized => unauthorized(shell, &outage.error),
            FailureKind::Unreachable => no_server(shell, shell.now.micros() - outage.since.micros(), false),
            _ => failure(shell, &outage.error, shell.next_poll),
        };
    }
    Vec::new()
}

fn unauthorized(shell: &Shell, error: &NetError) -> Vec<(Tone, String)> {
    let used = match &shell.target.credential {
        Some(credential) => format!("The server refused this credential: {credential}"),
        None => "No credentials are configured.".to_owned(),
    };
    let place = shell.target.context.as_ref().map(|name| format!(" of context {name}")).unwrap_or_default();
    vec![
        (Tone::Bad, used),
        (Tone::Dim, describe(error)),
        (Tone::Plain, String::new()),
        (Tone::Plain, format!("It came from the environment or the stored credentials{place}.")),
        (Tone::Plain, "In another terminal, one of these, then start the console again:".to_owned()),
        (Tone::Field, "loupe auth status     which credential is used, and from where".to_owned()),
        (Tone::Field, format!("loupe auth login --url {}", shell.target.url)),
        (Tone::Field, "export LOUPE_API_KEY=...  or  LOUPE_SESSION_TOKEN=...".to_owned()),
        (Tone::Plain, String::new()),
        (
            Tone::Plain,
            format!(
                "The same credential is tried again every 30 s; {} tries now, {} quits.",
                shell.key(shell.scope, Action::Refresh),
                shell.key(shell.scope, Action::Quit)
            ),
        ),
    ]
}

fn no_server(shell: &Shell, micros: i64, waiting: bool) -> Vec<(Tone, String)> {
    let (again, log) = (shell.key(shell.scope, Action::Refresh), shell.key(shell.scope, Action::Problems));
    vec![
        (Tone::Bad, format!("No answer from {} for {}.", shell.target.url, elapsed(micros / 1_000_000))),
        (
            Tone::Plain,
            if waiting {
                format!("The server accepted the request but has not responded yet; {again} retries.")
            } else {
                format!(
                    "The request is repeated automatically; {again} repeats it now, {log} shows the cause."
                )
            },
        ),
        (Tone::Plain, String::new()),
        (Tone::Field, "loupe-server                        start a server on this machine".to_owned()),
        (Tone::Field, "loupe auth login --url https://...  use another one".to_owned()),
        (Tone::Field, "loupe help                          everything else".to_owned()),
    ]
}
