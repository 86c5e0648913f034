//! The items of the palette: actions of the key scope, projects, contexts, saved filters, and the
//! trace whose id is typed, filtered by fuzzy search.

use api::project::ProjectStatus;
use uuid::Uuid;

use crate::{
    fuzzy::score,
    keymap::{Action, Binding, key_label},
    shell::Shell,
};

/// An entry of the palette.
#[derive(Clone, Debug)]
pub struct PaletteItem {
    /// The kind of the item.
    pub kind: &'static str,
    /// The label.
    pub label: String,
    /// The key, or another short description.
    pub note: String,
    /// The effect of choosing it.
    pub pick: PaletteChoice,
}

/// The effect of choosing an item.
#[derive(Clone, Debug)]
pub enum PaletteChoice {
    /// Performs the action of a binding.
    Do(&'static Binding),
    /// Shows a project, or all of them.
    Project(Option<Uuid>),
    /// Goes to the context of this number.
    Context(usize),
    /// Applies a filter to the list of traces.
    Filter(String),
    /// Opens a trace.
    Trace(Uuid),
}

/// Returns the items that match the words, best match first.
pub fn items(shell: &Shell, words: &str) -> Vec<PaletteItem> {
    let mut fitting: Vec<(i32, PaletteItem)> = all(shell)
        .into_iter()
        .filter_map(|item| Some((score(words, &format!("{} {}", item.label, item.kind))?, item)))
        .collect();
    // A stable sort keeps equal matches in the order of the table.
    fitting.sort_by_key(|(score, _)| -score);
    let mut items: Vec<PaletteItem> = fitting.into_iter().map(|(_, item)| item).collect();
    if let Ok(id) = words.trim().parse::<Uuid>() {
        let label = format!("open {id}");
        items.insert(
            0,
            PaletteItem { kind: "trace", label, note: String::new(), pick: PaletteChoice::Trace(id) },
        );
    }
    items
}

fn all(shell: &Shell) -> Vec<PaletteItem> {
    let glyphs = &shell.theme.glyphs;
    let rows = shell.keymap.of_scope(shell.scope).filter(|row| {
        let hidden = shell.target.read_only && row.binding.role.is_some();
        !hidden && !moves(row.binding.action)
    });
    let mut items: Vec<PaletteItem> = rows
        .map(|row| PaletteItem {
            kind: if matches!(row.binding.action, Action::Screen(_)) { "screen" } else { "action" },
            label: row.binding.help.to_owned(),
            note: row.keys.first().map(|keys| key_label(keys, glyphs)).unwrap_or_default(),
            pick: PaletteChoice::Do(row.binding),
        })
        .collect();
    let projects = shell.projects.items.iter().map(|project| {
        let archived = project.status == ProjectStatus::Archived;
        PaletteItem {
            kind: "project",
            label: project.name.clone(),
            note: if archived { "archived".to_owned() } else { String::new() },
            pick: PaletteChoice::Project(Some(project.id)),
        }
    });
    let every = PaletteItem {
        kind: "project",
        label: "all projects".to_owned(),
        note: String::new(),
        pick: PaletteChoice::Project(None),
    };
    items.extend(std::iter::once(every).chain(projects));
    items.extend(shell.contexts.iter().enumerate().map(|(number, target)| PaletteItem {
        kind: "context",
        label: target.context.clone().unwrap_or_default(),
        note: target.url.clone(),
        pick: PaletteChoice::Context(number),
    }));
    items.extend(shell.saved.iter().map(|(name, filter)| PaletteItem {
        kind: "filter",
        label: format!("@{name}"),
        note: filter.clone(),
        pick: PaletteChoice::Filter(format!("@{name}")),
    }));
    items
}

/// Returns whether an action is useful only as a key.
const fn moves(action: Action) -> bool {
    matches!(
        action,
        Action::Up
            | Action::Down
            | Action::PageUp
            | Action::PageDown
            | Action::Top
            | Action::Bottom
            | Action::Left
            | Action::Right
            | Action::Back
            | Action::Palette
    )
}
