//! The names of keys in tables and configurations, and their labels on the screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::theme::Glyphs;

/// The names of keys that do not stand for a character.
const KEY_NAMES: &[(&str, KeyCode)] = &[
    ("space", KeyCode::Char(' ')),
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("shift-tab", KeyCode::BackTab),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("pgup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
];

/// Returns the name of a pressed key as the table writes it; none for a key without a name.
pub fn key_name(key: KeyEvent) -> Option<String> {
    let named = KEY_NAMES.iter().find(|(_, code)| *code == key.code);
    let base = match (named, key.code) {
        (Some((name, _)), _) => (*name).to_owned(),
        (None, KeyCode::Char(c)) => c.to_string(),
        _ => return None,
    };
    let modified = if key.modifiers.contains(KeyModifiers::CONTROL) { format!("ctrl-{base}") } else { base };
    Some(if key.modifiers.contains(KeyModifiers::ALT) { format!("alt-{modified}") } else { modified })
}

/// Returns whether a sequence consists of names that [`key_name`] returns, separated by one blank.
pub fn is_sequence(text: &str) -> bool {
    text.split(' ').all(|key| {
        let base = key.strip_prefix("alt-").unwrap_or(key);
        let base = base.strip_prefix("ctrl-").unwrap_or(base);
        let mut chars = base.chars();
        let single = matches!((chars.next(), chars.next()), (Some(c), None) if !c.is_control());
        single || KEY_NAMES.iter().any(|(name, _)| *name == base)
    })
}

/// Returns the label of a key.
pub fn key_label(key: &str, glyphs: &Glyphs) -> String {
    let labels: &[(&str, &str)] = if glyphs.ascii {
        &[]
    } else {
        &[("enter", "↵"), ("up", "↑"), ("down", "↓"), ("left", "←"), ("right", "→")]
    };
    let one =
        |key: &str| labels.iter().find(|(name, _)| *name == key).map_or(key, |(_, label)| label).to_owned();
    key.split(' ').map(one).collect::<Vec<_>>().join(" ")
}
