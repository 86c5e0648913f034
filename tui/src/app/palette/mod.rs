//! Keys of the palette.

pub mod items;
pub mod view;

use crossterm::event::{KeyCode, KeyEvent};

use crate::{
    input::{Edit, Input, InputKind},
    layout,
    net::{Destination, Effect},
    shell::{Overlay, Shell},
};

use super::{App, connection, context, update::perform};
use items::{PaletteChoice, items};

/// Opens the palette and requests the projects in it.
pub fn open(shell: &mut Shell) -> Vec<Effect> {
    shell.overlay = Some(Overlay::Palette { selected: 0 });
    shell.input = Some(Input::new(InputKind::Palette, ""));
    vec![shell.load_projects()]
}

/// Handles a key: movement keys move the cursor, all others edit the words.
pub fn key(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    let page = usize::from(layout::frame(app.shell.size).body.height).max(2) - 1;
    let words = app.shell.input.as_ref().map(|input| input.text().to_owned()).unwrap_or_default();
    let last = items(&app.shell, &words).len().saturating_sub(1);
    let (Some(Overlay::Palette { selected }), Some(input)) = (&mut app.shell.overlay, &mut app.shell.input)
    else {
        app.shell.input = None;
        return Vec::new();
    };
    match key.code {
        KeyCode::Up | KeyCode::BackTab => *selected = selected.saturating_sub(1),
        KeyCode::Down | KeyCode::Tab => *selected = (*selected + 1).min(last),
        KeyCode::PageUp => *selected = selected.saturating_sub(page),
        KeyCode::PageDown => *selected = (*selected + page).min(last),
        _ => match input.key(key, &[]) {
            Edit::Stay | Edit::Complete => *selected = 0,
            Edit::Cancel => close(app),
            Edit::Accept => {
                let at = *selected;
                let picked = items(&app.shell, &words).into_iter().nth(at).map(|item| item.pick);
                close(app);
                return picked.map(|pick| choose(app, pick)).unwrap_or_default();
            }
        },
    }
    Vec::new()
}

fn close(app: &mut App) {
    app.shell.overlay = None;
    app.shell.input = None;
}

fn choose(app: &mut App, pick: PaletteChoice) -> Vec<Effect> {
    match pick {
        PaletteChoice::Do(binding) => perform(app, binding),
        PaletteChoice::Project(id) => {
            let project = id.and_then(|id| app.shell.projects.get(id).cloned());
            connection::set_project(app, project)
        }
        PaletteChoice::Context(number) => context::go(app, number),
        PaletteChoice::Filter(text) => {
            // A filter that no longer parses is reported on the list.
            match app.shell.parse(&text) {
                Ok(_) => vec![Effect::Go(Destination::Traces { filter: text })],
                Err((_, message)) => {
                    app.shell.report(format!("filter {text}: {message}"));
                    vec![Effect::Go(Destination::Screen(1))]
                }
            }
        }
        PaletteChoice::Trace(id) => vec![Effect::Go(Destination::Trace { id, span: None, from: None })],
    }
}
