//! Switches to another context: its server, its credentials, and none of the loaded records.

use crate::{
    keymap::Action,
    layout,
    net::Effect,
    shell::{Overlay, Shell},
    travel,
};

use super::{App, connection};

/// Opens the list of contexts, with the cursor on the current one.
pub fn open(shell: &mut Shell) {
    if shell.contexts.is_empty() {
        shell.notify("there is no other context; loupe context set NAME --url URL creates one");
        return;
    }
    let here = shell.contexts.iter().position(|it| it.context == shell.target.context);
    shell.overlay = Some(Overlay::Contexts { selected: here.unwrap_or(0) });
}

pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let page = usize::from(layout::frame(app.shell.size).body.height).max(2) - 1;
    let last = app.shell.contexts.len().saturating_sub(1);
    let Some(Overlay::Contexts { selected }) = &mut app.shell.overlay else { return Vec::new() };
    if let Some(to) = travel::to(action, *selected, last, page) {
        *selected = to;
        return Vec::new();
    }
    match action {
        Action::Back => app.shell.overlay = None,
        Action::Open => {
            let number = *selected;
            app.shell.overlay = None;
            return go(app, number);
        }
        _ => {}
    }
    Vec::new()
}

/// Switches to another context, on the same screen.
pub fn go(app: &mut App, number: usize) -> Vec<Effect> {
    let Some(target) = app.shell.contexts.get(number).cloned() else { return Vec::new() };
    let name = target.context.clone().unwrap_or_default();
    if target.context == app.shell.target.context {
        app.shell.notify(format!("{name} is the context in use"));
        return Vec::new();
    }
    app.shell.switch(target);
    for screen in app.screens.all_mut() {
        screen.reset();
    }
    let mut effects = vec![Effect::Connect(number)];
    effects.extend(connection::begin(app));
    app.shell.notify(format!("context {name}: {}", app.shell.target.url));
    effects
}
