//! The line of keys.

use crate::{
    keymap::{Action, Row, Scope, key_label},
    screens::dialog,
    state::{EVALS, State},
    text::width,
    theme::Tone,
    widgets::table::Pieces,
};

/// A key, the word for what it does, and whether it takes more than the reader has.
type Offer = (String, String, bool);

/// As many of the scope's offers as there is room for, in the table's order, and help at the
/// end of them. What takes another role than the reader's is named, but dimmed.
pub fn keys(state: &State, cols: usize) -> Pieces {
    let glyphs = &state.theme.glyphs;
    let fixed = |words: &[(&str, &str)]| {
        words
            .iter()
            .map(|(key, word)| (key_label(key, glyphs), (*word).to_owned(), false))
            .collect::<Vec<_>>()
    };
    if let Some(open) = &state.dialog {
        return line(&fixed(dialog::keys(open))).cut(cols, &state.theme);
    }
    if state.input.is_some() {
        return line(&fixed(&[("enter", "use"), ("esc", "cancel"), ("ctrl-u", "clear")]));
    }
    let rows = state.keymap.of_scope(state.scope());
    let mut offers: Vec<Offer> = rows.filter_map(|row| offer(state, row)).collect();
    let last = offers.iter().position(|(_, word, _)| word == "help").map(|at| offers.remove(at));
    let room = cols.saturating_sub(8);
    let mut used = 0;
    offers.retain(|(key, word, _)| {
        used += width(key) + word.len() + 3;
        used <= room
    });
    offers.extend(last);
    line(&offers).cut(cols, &state.theme)
}

/// Whether one evaluation fills the screen.
fn zoomed(state: &State) -> bool {
    state.screen == EVALS && state.scope() == Scope::Evals && state.evals.zoom.is_some()
}

fn offer(state: &State, row: &Row) -> Option<Offer> {
    let (binding, glyphs) = (row.binding, &state.theme.glyphs);
    let word = match (binding.action, state.list.paused) {
        (Action::Pause, true) => "resume",
        // There the line is full without it.
        (Action::Find, _) if state.scope() == Scope::Evals => return None,
        (Action::Bookmark, _) if state.scope() == Scope::List => return None,
        (Action::Open, _) if state.overlay.is_some() => "choose",
        (Action::Open, _) if zoomed(state) => "list",
        (Action::Open, _) if state.detail.is_some() && state.screen == 1 => "pane",
        _ => binding.footer?,
    };
    let mut label = key_label(row.keys.first()?.split(' ').next()?, glyphs);
    if binding.action == Action::Left {
        if glyphs.ascii {
            label.push('/');
        }
        label.push_str(&key_label("right", glyphs));
    }
    let Some(needed) = binding.needs else { return Some((label, word.to_owned(), false)) };
    if state.target.read_only {
        return None;
    }
    let missing = if binding.scopes.contains(&Scope::Keys) && !state.has_session() {
        Some("session")
    } else {
        state.me.as_ref().filter(|me| me.role < needed).map(|_| needed.as_str())
    };
    let word = missing.map_or_else(|| word.to_owned(), |missing| format!("{word} ({missing})"));
    Some((label, word, missing.is_some()))
}

fn line(offers: &[Offer]) -> Pieces {
    let mut line = Pieces::new();
    for (at, (key, word, short)) in offers.iter().enumerate() {
        let (strong, plain) = if *short { (Tone::Dim, Tone::Dim) } else { (Tone::Strong, Tone::Plain) };
        line = line
            .plain(if at == 0 { " " } else { "  " })
            .add(strong, key.clone())
            .add(plain, format!(" {word}"));
    }
    line
}
