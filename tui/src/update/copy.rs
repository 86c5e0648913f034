//! What `y` puts on the clipboard. Never a credential.

use crate::{
    content::Subject,
    detail::Focus,
    keymap::Action,
    manage::Tab,
    msg::Effect,
    screens::notice::first_steps,
    state::{MANAGE, State},
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

fn chosen(state: &State, action: Action) -> Option<(&'static str, String)> {
    if state.screen == MANAGE {
        return managed(state, action);
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
        Action::CopyCurl => {
            let variable = state.target.variable;
            Some(("the curl command", format!("curl -sS -H \"Authorization: Bearer ${variable}\" '{url}'")))
        }
        Action::CopyId => Some(match state.detail.as_ref().and_then(|detail| detail.current()) {
            Some(span) => ("the span's id", span.id.to_string()),
            None => ("the trace's id", trace?.to_string()),
        }),
        Action::CopyJson => Some(("the record", subject?.record())),
        Action::CopyText => {
            let subject = subject?;
            let both = || {
                let parts = [subject.input(), subject.error(), subject.output()];
                parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
            };
            Some(match state.detail.as_ref().map(|detail| (detail.focus, detail.tab)) {
                Some((Focus::Left, crate::content::Tab::Input)) => ("the input", subject.input()?.to_owned()),
                Some((Focus::Right, _) | (Focus::Left, crate::content::Tab::Output)) => {
                    ("the output", subject.output().or_else(|| subject.error())?.to_owned())
                }
                _ => ("input and output", both()),
            })
        }
        _ => None,
    }
}
