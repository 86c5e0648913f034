//! The line of keys.

use crate::{
    app::App,
    app::dialog::view as dialog,
    keymap::{Action, Row, key_label},
    screen::manage::keys::API_KEYS,
    theme::{Glyphs, Tone},
    widgets::table::Pieces,
};
use present::text::width;

/// A key, its word, and whether it requires a role that the user does not have.
type Offer = (String, String, bool);

/// Returns the keys of the scope that there is room for, in the order of the key table, with help at the end. A key that
/// requires another role than the user's is dimmed.
pub fn keys(app: &App, cols: usize) -> Pieces {
    let glyphs = &app.shell.theme.glyphs;
    let fixed = |words: &[(&str, &str)]| {
        words
            .iter()
            .map(|(key, word)| (paired_label(key, glyphs), (*word).to_owned(), false))
            .collect::<Vec<_>>()
    };
    if let Some(open) = &app.shell.dialog {
        return line(&fixed(dialog::keys(open))).cut(cols, &app.shell.theme);
    }
    if app.shell.input.is_some() {
        return line(&fixed(&[("enter", "use"), ("esc", "cancel"), ("ctrl-u", "clear")]));
    }
    let rows = app.shell.keymap.of_scope(app.shell.active_scope());
    let mut offers: Vec<Offer> = rows.filter_map(|row| offer(app, row)).collect();
    let last = offers.iter().position(|(_, word, _)| word == "help").map(|at| offers.remove(at));
    let room = cols.saturating_sub(8);
    let mut used = 0;
    offers.retain(|(key, word, _)| {
        used += width(key) + word.len() + 3;
        used <= room
    });
    offers.extend(last);
    line(&offers).cut(cols, &app.shell.theme)
}

fn offer(app: &App, row: &Row) -> Option<Offer> {
    let (binding, glyphs) = (row.binding, &app.shell.theme.glyphs);
    let word = if binding.action == Action::Open && app.shell.overlay.is_some() {
        "choose"
    } else {
        match app.screen().footer_word(binding.action) {
            Some("") if app.shell.overlay.is_none() => return None,
            Some(word) if app.shell.overlay.is_none() => word,
            _ => binding.footer?,
        }
    };
    let key = row.keys.first()?.split(' ').next()?;
    let label = if binding.action == Action::Left { pair(key, glyphs) } else { key_label(key, glyphs) };
    let Some(needed) = binding.role else { return Some((label, word.to_owned(), false)) };
    if app.shell.target.read_only {
        return None;
    }
    let missing = if binding.group == API_KEYS && !app.shell.has_session() {
        Some("session")
    } else {
        app.shell.me.as_ref().filter(|me| me.role < needed).map(|_| needed.as_str())
    };
    let word = missing.map_or_else(|| word.to_owned(), |missing| format!("{word} ({missing})"));
    Some((label, word, missing.is_some()))
}

/// Returns the label of a key of a dialog; `left` stands for both arrows.
fn paired_label(key: &str, glyphs: &Glyphs) -> String {
    if key == "left" { pair(key, glyphs) } else { key_label(key, glyphs) }
}

/// Returns the label of a key and of the right arrow.
fn pair(key: &str, glyphs: &Glyphs) -> String {
    let between = if glyphs.ascii { "/" } else { "" };
    format!("{}{between}{}", key_label(key, glyphs), key_label("right", glyphs))
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
