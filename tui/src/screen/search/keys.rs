//! The keys of Search.

use super::SCREEN_DIGIT;
use crate::keymap::{
    Action, Binding, Group, Scope, bindings,
    groups::{
        COPY_CURL_KEYS, COPY_KEYS, COPY_TEXT_KEYS, END_STEP_KEYS, EXPORT_KEYS, MARK_KEYS, OPEN_KEYS,
        REFRESH_KEYS, SCREEN_KEYS, SCREEN_STEP_KEYS,
    },
};

/// Searches for spans like the selected one.
pub const FIND_NEIGHBOURS: Action = Action::Custom("search.near");

/// Searching.
pub const SEARCH_KEYS: Group = Group { name: "search", position: 10 };

/// The spans found.
pub const SEARCH_SCOPE: Scope = Scope::screen(
    "Search",
    &[
        OPEN_KEYS,
        SEARCH_KEYS,
        MARK_KEYS,
        COPY_KEYS,
        COPY_TEXT_KEYS,
        COPY_CURL_KEYS,
        EXPORT_KEYS,
        REFRESH_KEYS,
        END_STEP_KEYS,
        SCREEN_STEP_KEYS,
    ],
);

/// The scopes of the screen.
pub const SCREEN_SCOPES: &[Scope] = &[SEARCH_SCOPE];

/// The bindings of the screen.
pub const SCREEN_BINDINGS: &[Binding] = bindings! {
    Action::Screen(SCREEN_DIGIT), "screen.search", ["8"], SCREEN_KEYS, "Search";
    Action::EditSearch, "search.edit", ["/", "i"], SEARCH_KEYS, "edit the search; tab completes, up recalls", "search";
    FIND_NEIGHBOURS, "search.near", ["x"], SEARCH_KEYS, "spans like the selected one, by its own vector", "like";
};
