//! What `y` puts on the clipboard. Never a credential.

use api::client::{
    Body,
    calls::{self, Page},
};

use crate::{
    content::Subject,
    detail::Focus,
    evals::Part,
    keymap::Action,
    manage::Tab,
    msg::Effect,
    screens::notice::first_steps,
    state::{EVALS, MANAGE, METRICS, SEARCH, State},
};

/// Bytes that a terminal can be expected to take as one escape sequence.
const LARGEST: usize = 512 * 1024;

pub(super) fn copy(state: &mut State, action: Action) -> Vec<Effect> {
    let Some((what, text)) = chosen(state, action) else {
        state.tell("nothing to copy here");
        return Vec::new();
    };
    if text.len() > LARGEST {
        state.tell(format!("{what} is too long for the clipboard; loupe traces get prints it"));
        return Vec::new();
    }
    state.tell(format!(
        "copied {what}, {} bytes",
        crate::format::thousands(i64::try_from(text.len()).unwrap_or(0))
    ));
    vec![Effect::Copy(text)]
}

/// The key or project under the cursor of Keys & Projects. A key's record holds no secret.
fn managed(state: &State, action: Action) -> Option<(&'static str, String)> {
    let (id, record, what, whole) = match state.manage.tab {
        Tab::Keys => {
            let key = state.manage.key()?;
            (key.id, serde_json::to_string_pretty(key).ok()?, "the key's id", "the key's record")
        }
        Tab::Projects => {
            let project = state.manage.project()?;
            let record = serde_json::to_string_pretty(project).ok()?;
            (project.id, record, "the project's id", "the project's record")
        }
        Tab::Plan => return None,
    };
    match action {
        Action::CopyId => Some((what, id.to_string())),
        Action::CopyJson => Some((whole, record)),
        _ => None,
    }
}

/// The request whose answer the screen shows.
fn measured(state: &State, action: Action) -> Option<(&'static str, String)> {
    let query = state.metrics.stretch.query(state.project.as_ref(), state.now);
    let url = format!("{}{}", state.target.url, calls::metrics(&query).target());
    (action == Action::CopyCurl).then(|| ("the curl command", curl(state, &url)))
}

/// The evaluation or the rule under the cursor of Evals, or the request for them.
fn judged(state: &State, action: Action) -> Option<(&'static str, String)> {
    let project = state.project.as_ref().map(|project| project.id);
    let address = |target: String| curl(state, &format!("{}{target}", state.target.url));
    if state.evals.part == Part::Rules {
        if action == Action::CopyCurl {
            let call = calls::eval_rules(project, &Page::default());
            return Some(("the curl command", address(call.target())));
        }
        let rule = state.evals.rules.current()?;
        return match action {
            Action::CopyId => Some(("the rule's id", rule.id.to_string())),
            Action::CopyJson => Some(("the rule", serde_json::to_string_pretty(rule).ok()?)),
            _ => None,
        };
    }
    if action == Action::CopyCurl {
        let call = calls::evaluations(&super::evals::filter(state), &Page::default());
        return Some(("the curl command", address(call.target())));
    }
    let it = state.evals.current()?;
    match action {
        Action::CopyId => Some(("the evaluation's id", it.id.to_string())),
        Action::CopyUrl => Some(("the address", format!("{}/v1/traces/{}", state.target.url, it.trace_id))),
        Action::CopyJson => Some(("the evaluation", serde_json::to_string_pretty(it).ok()?)),
        Action::CopyText => {
            let texts = [it.reasoning.as_deref(), it.error.as_deref()];
            let text = texts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
            Some(("the reasoning", text)).filter(|(_, text)| !text.is_empty())
        }
        _ => None,
    }
}

/// The span under the cursor of Search, or the request that found it.
fn found(state: &State, action: Action) -> Option<(&'static str, String)> {
    if action == Action::CopyCurl {
        let call = state.search.wanted.as_ref()?.call(None);
        let command = curl(state, &format!("{}{}", state.target.url, call.target()));
        // Ids and words of the API only, so that nothing in it could end the quotes.
        let body = match &call.body {
            Body::Json(body) => format!(" -H 'Content-Type: application/json' -d '{body}'"),
            Body::Empty | Body::Bytes { .. } => String::new(),
        };
        return Some(("the curl command", command + &body));
    }
    let span = state.search.span()?;
    let subject = Subject::Span(span, None);
    match action {
        Action::CopyId => Some(("the span's id", span.id.to_string())),
        Action::CopyUrl => Some(("the address", format!("{}/v1/traces/{}", state.target.url, span.trace_id))),
        Action::CopyJson => Some(("the record", subject.record())),
        Action::CopyText => Some(("input and output", texts(subject))),
        _ => None,
    }
}

/// A command that asks for an address, with the credential left to the shell.
fn curl(state: &State, url: &str) -> String {
    let variable = state.target.variable;
    format!("curl -sS -H \"Authorization: Bearer ${variable}\" '{url}'")
}

fn texts(subject: Subject<'_>) -> String {
    let parts = [subject.input(), subject.error(), subject.output()];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

fn chosen(state: &State, action: Action) -> Option<(&'static str, String)> {
    match state.screen {
        MANAGE => return managed(state, action),
        EVALS => return judged(state, action),
        METRICS => return measured(state, action),
        SEARCH => return found(state, action),
        _ => {}
    }
    let trace = match &state.detail {
        Some(detail) => Some(detail.id),
        None => state.list.current().map(|row| row.id),
    };
    if trace.is_none() || state.screen != 1 {
        return (action == Action::CopyCurl && state.screen == 1)
            .then(|| ("the curl command", first_steps(state).join("\n")));
    }
    let url = format!("{}/v1/traces/{}", state.target.url, trace?);
    let subject = match &state.detail {
        Some(detail) => detail.subject(),
        None => state.list.current().map(|row| Subject::Trace(row)),
    };
    match action {
        Action::CopyUrl => Some(("the address", url)),
        Action::CopyCurl => Some(("the curl command", curl(state, &url))),
        Action::CopyId => Some(match state.detail.as_ref().and_then(|detail| detail.current()) {
            Some(span) => ("the span's id", span.id.to_string()),
            None => ("the trace's id", trace?.to_string()),
        }),
        Action::CopyJson => Some(("the record", subject?.record())),
        Action::CopyText => {
            let subject = subject?;
            Some(match state.detail.as_ref().map(|detail| (detail.focus, detail.tab)) {
                Some((Focus::Left, crate::content::Tab::Input)) => ("the input", subject.input()?.to_owned()),
                Some((Focus::Right, _) | (Focus::Left, crate::content::Tab::Output)) => {
                    ("the output", subject.output().or_else(|| subject.error())?.to_owned())
                }
                _ => ("input and output", texts(subject)),
            })
        }
        _ => None,
    }
}
