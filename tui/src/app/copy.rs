//! Copies to the clipboard. Never a credential.

use crate::{keymap::Action, net::Effect};

use super::App;

/// Maximum size of a copied text in bytes; terminals ignore longer escape sequences.
const MAX_CLIPBOARD_BYTES: usize = 512 * 1024;

/// Performs a copy action on the current screen.
pub fn copy(app: &mut App, action: Action) -> Vec<Effect> {
    let Some((name, text)) = app.screen().copy(&app.shell, action) else {
        app.shell.notify("nothing to copy here");
        return Vec::new();
    };
    if text.len() > MAX_CLIPBOARD_BYTES {
        app.shell.notify(format!("{name} is too long for the clipboard; loupe traces get prints it"));
        return Vec::new();
    }
    let bytes = present::format::thousands(text.len());
    app.shell.notify(format!("copied {name}, {bytes} bytes"));
    vec![Effect::Copy(text)]
}
