//! Tests of the key map: the default table, and tables with the user's own keys.

use crate::{
    keymap::*,
    screen::{default_keymap, keymap as configured, traces::keys::LIST_SCOPE},
};

fn action(keymap: &Keymap, scope: Scope, sequence: &str) -> Option<Action> {
    match keymap.lookup(scope, sequence) {
        Lookup::Action(binding) => Some(binding.action),
        Lookup::Prefix | Lookup::Nothing => None,
    }
}

fn rebound(name: &str, keys: &[&str]) -> Result<Keymap, KeymapError> {
    let keys = keys.iter().map(|it| (*it).to_owned()).collect();
    configured(&[(name.to_owned(), keys)].into())
}

#[test]
fn no_two_rows_of_a_scope_clash() {
    assert_eq!(default_keymap().clash(), None);
}

#[test]
fn every_key_of_the_table_can_be_pressed() {
    let keymap = default_keymap();
    assert!(keymap.rows.iter().flat_map(|it| it.binding.keys).all(|key| names::is_sequence(key)));
}

#[test]
fn movement_copy_and_quit_mean_the_same_everywhere() {
    let keymap = default_keymap();
    for scope in &default_keymap().scopes {
        assert_eq!(action(&keymap, *scope, "j"), Some(Action::Down));
        assert_eq!(action(&keymap, *scope, "ctrl-c"), Some(Action::Quit));
        assert_eq!(action(&keymap, *scope, "esc"), Some(Action::Back));
    }
}

#[test]
fn key_sequence_is_found_after_its_prefix() {
    let keymap = default_keymap();
    assert!(matches!(keymap.lookup(LIST_SCOPE, "y"), Lookup::Prefix));
    assert_eq!(action(&keymap, LIST_SCOPE, "y i"), Some(Action::CopyId));
    assert!(matches!(keymap.lookup(LIST_SCOPE, "y q"), Lookup::Nothing));
    assert!(keymap.continuations(LIST_SCOPE, "y").iter().any(|(key, _)| *key == "c"));
}

#[test]
fn every_row_of_a_footer_fits_a_word() {
    let keymap = default_keymap();
    assert!(
        keymap.rows.iter().filter_map(|it| it.binding.footer).all(|word| word.len() <= 8 && word.is_ascii())
    );
}

#[test]
fn names_are_unique_and_the_printed_table_can_be_used() {
    let keymap = default_keymap();
    let toml = keymap.to_toml();
    assert!(toml.contains("\"detail.split\" = [\"\\\\\"]"), "{toml}");
    for binding in keymap.rows.iter().map(|row| row.binding) {
        assert_eq!(toml.matches(&format!("\"{}\" = ", binding.name)).count(), 1, "{}", binding.name);
    }
    let all = keymap.rows.iter().map(|row| (row.binding.name.to_owned(), row.keys.clone())).collect();
    assert_eq!(configured(&all).unwrap().to_toml(), toml);
}

#[test]
fn configured_key_replaces_the_default_keys() {
    let keymap = rebound("list.pause", &["ctrl-f", "g p"]).unwrap();
    assert_eq!(action(&keymap, LIST_SCOPE, "ctrl-f"), Some(Action::Pause));
    assert_eq!(action(&keymap, LIST_SCOPE, "g p"), Some(Action::Pause));
    assert_eq!(action(&keymap, LIST_SCOPE, "space"), None);
    assert!(keymap.to_toml().contains("\"list.pause\" = [\"ctrl-f\", \"g p\"]"));
    assert_eq!(action(&rebound("list.pause", &[]).unwrap(), LIST_SCOPE, "space"), None);
}

#[test]
fn conflicting_or_unknown_keys_are_refused() {
    for (name, key, why) in [
        ("list.pause", "s", "`s` of `list.sort` clash in Traces"),
        ("list.pause", "y", "`y i` of `copy.id` clash in Traces"),
        ("list.puase", "s", "there is no action `list.puase`"),
        ("list.pause", "ctlr-f", "`ctlr-f` of `list.pause` is not a key"),
        ("list.pause", "", "is not a key"),
        ("nav.up", "n", "clash in Traces"),
    ] {
        let error = rebound(name, &[key]).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
