//! The permission check before an action.

use crate::{keymap::Binding, net::NetError, screen::manage::keys::API_KEYS, shell::Shell};

/// Returns why the user may not perform an action; none if they may.
pub fn refusal(shell: &Shell, binding: &Binding) -> Option<String> {
    let needed = binding.role?;
    if shell.target.read_only {
        return Some("this console is read-only: it changes nothing".to_owned());
    }
    if shell.failure().is_some_and(NetError::is_transient) {
        return Some("the server does not respond; nothing was sent".to_owned());
    }
    if binding.group == API_KEYS && !shell.has_session() {
        return Some("keys are managed with a session token, and there is none".to_owned());
    }
    let me = shell.me.as_ref()?;
    // The role of a key counts only without a session.
    if me.subject.is_none() && me.api_key.as_ref().is_some_and(|key| !key.scopes.is_empty()) {
        return Some(
            "this API key may only read; a session or a key with full access changes things".to_owned(),
        );
    }
    let role = me.role;
    (role < needed).then(|| format!("this requires the role {needed}; yours is {role}"))
}
