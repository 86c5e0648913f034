//! What the palette offers: actions of the place, projects, contexts, saved filters, and the
//! trace whose id is typed. Narrowed down by fuzzy search.

use api::project::ProjectStatus;
use uuid::Uuid;

use crate::{
    keymap::{Action, Binding, key_label},
    state::State,
};

/// Something to choose.
#[derive(Clone, Debug)]
pub struct Item {
    /// What kind of thing it is.
    pub kind: &'static str,
    /// What it is called.
    pub label: String,
    /// Its key, or what else helps to know it.
    pub note: String,
    /// What choosing it does.
    pub pick: Pick,
}

/// What choosing an item does.
#[derive(Clone, Debug)]
pub enum Pick {
    /// What a row of the table says.
    Do(&'static Binding),
    /// Shows a project, or all of them.
    Project(Option<Uuid>),
    /// Goes to the context of this number.
    Context(usize),
    /// Puts a filter in force.
    Filter(String),
    /// Opens a trace.
    Trace(Uuid),
}

/// The items that fit the words, best first.
pub fn items(state: &State, words: &str) -> Vec<Item> {
    let mut fitting: Vec<(i32, Item)> = all(state)
        .into_iter()
        .filter_map(|item| Some((score(words, &format!("{} {}", item.label, item.kind))?, item)))
        .collect();
    // Stable, so that equals stay in the order of the table.
    fitting.sort_by_key(|(score, _)| -score);
    let mut items: Vec<Item> = fitting.into_iter().map(|(_, item)| item).collect();
    if let Ok(id) = words.trim().parse::<Uuid>() {
        let label = format!("open {id}");
        items.insert(0, Item { kind: "trace", label, note: String::new(), pick: Pick::Trace(id) });
    }
    items
}

fn all(state: &State) -> Vec<Item> {
    let glyphs = &state.theme.glyphs;
    let rows = state.keymap.of_scope(state.scope_below()).filter(|row| {
        let hidden = state.target.read_only && row.binding.needs.is_some();
        !hidden && !moves(row.binding.action)
    });
    let mut items: Vec<Item> = rows
        .map(|row| Item {
            kind: if matches!(row.binding.action, Action::Screen(_)) { "screen" } else { "action" },
            label: row.binding.help.to_owned(),
            note: row.keys.first().map(|keys| key_label(keys, glyphs)).unwrap_or_default(),
            pick: Pick::Do(row.binding),
        })
        .collect();
    let projects = state.manage.projects.items.iter().map(|project| {
        let archived = project.status == ProjectStatus::Archived;
        Item {
            kind: "project",
            label: project.name.clone(),
            note: if archived { "archived".to_owned() } else { String::new() },
            pick: Pick::Project(Some(project.id)),
        }
    });
    let every = Item {
        kind: "project",
        label: "all projects".to_owned(),
        note: String::new(),
        pick: Pick::Project(None),
    };
    items.extend(std::iter::once(every).chain(projects));
    items.extend(state.contexts.iter().enumerate().map(|(number, target)| Item {
        kind: "context",
        label: target.context.clone().unwrap_or_default(),
        note: target.url.clone(),
        pick: Pick::Context(number),
    }));
    items.extend(state.saved.iter().map(|(name, filter)| Item {
        kind: "filter",
        label: format!("@{name}"),
        note: filter.clone(),
        pick: Pick::Filter(format!("@{name}")),
    }));
    items
}

/// Actions that only make sense as keys.
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

/// How well a text fits the words, if it does: the letters of each word have to occur in their
/// order. Letters in a row and at the beginnings of words count more.
pub fn score(words: &str, text: &str) -> Option<i32> {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    words.split_whitespace().map(|word| score_word(&word.to_lowercase(), &text)).sum()
}

fn score_word(word: &str, text: &[char]) -> Option<i32> {
    // The best of the places where the word may begin.
    let first = word.chars().next()?;
    let starts = text.iter().enumerate().filter(|(_, c)| **c == first).map(|(at, _)| at);
    starts.filter_map(|start| score_from(word, text, start)).max()
}

fn score_from(word: &str, text: &[char], start: usize) -> Option<i32> {
    let mut total = 0;
    let mut at = start;
    let mut last = None;
    for c in word.chars() {
        at += text[at..].iter().position(|it| *it == c)?;
        let begins = at == 0 || !text[at - 1].is_alphanumeric();
        let follows = last.is_some_and(|last| last + 1 == at);
        total += 1 + if follows { 6 } else { 0 } + if begins { 4 } else { 0 };
        last = Some(at);
        at += 1;
    }
    // Of two that fit alike, the one that is met earlier.
    Some(total * 100 - i32::try_from(start.min(99)).unwrap_or(99))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn letters_count_in_their_order() {
        assert!(score("arch", "archive the selected project").is_some());
        assert!(score("asp", "archive the selected project").is_some());
        assert!(score("pva", "archive").is_none());
        assert!(score("", "anything").is_some());
        assert!(score("é", "aé").is_some());
    }

    #[test]
    fn whole_words_and_beginnings_come_first() {
        let better = |words: &str, one: &str, other: &str| {
            assert!(score(words, one).unwrap() > score(words, other).unwrap(), "{words}: {one}, {other}");
        };
        better("proj", "show another project", "put rows of all jobs");
        better("key", "make an API key", "monkey business");
        better("new key", "new key", "next monkey now");
        better("tr", "Traces", "filter");
    }
}
