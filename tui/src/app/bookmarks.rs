//! Marking traces, and the list of marked traces.

use crate::{
    bookmarks::Bookmark,
    keymap::Action,
    layout,
    net::{Destination, Effect},
    shell::Overlay,
    travel,
};

use super::App;

/// Marks the opened or selected trace, or removes its mark.
pub fn toggle(app: &mut App) -> Vec<Effect> {
    let Some((trace, name)) = app.screen().markable() else { return Vec::new() };
    mark(app, trace, name)
}

fn mark(app: &mut App, trace: uuid::Uuid, name: Option<String>) -> Vec<Effect> {
    let bookmark = Bookmark { url: app.shell.target.url.clone(), trace, name, at: app.shell.now };
    let marked = app.shell.bookmarks.toggle(bookmark);
    app.shell.notify(if marked { "marked; M lists the marked traces" } else { "no longer marked" });
    vec![Effect::KeepBookmarks(app.shell.bookmarks.clone())]
}

/// Handles the keys of the list of bookmarks.
pub fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let page = usize::from(layout::frame(app.shell.size).body.height).max(2) - 1;
    let rows: Vec<Bookmark> = app.shell.bookmarks.of(&app.shell.target.url).cloned().collect();
    let Some(Overlay::Bookmarks { selected }) = &mut app.shell.overlay else { return Vec::new() };
    if let Some(to) = travel::to(action, *selected, rows.len().saturating_sub(1), page) {
        *selected = to;
        return Vec::new();
    }
    let current = rows.into_iter().nth(*selected);
    match (action, current) {
        (Action::Back | Action::Bookmarks, _) => app.shell.overlay = None,
        (Action::Open, Some(it)) => {
            app.shell.overlay = None;
            return vec![Effect::Go(Destination::Trace { id: it.trace, span: None, from: None })];
        }
        (Action::Bookmark, Some(it)) => {
            let effects = mark(app, it.trace, it.name);
            let last = app.shell.bookmarks.of(&app.shell.target.url).count().saturating_sub(1);
            if let Some(Overlay::Bookmarks { selected }) = &mut app.shell.overlay {
                *selected = (*selected).min(last);
            }
            return effects;
        }
        _ => {}
    }
    Vec::new()
}
