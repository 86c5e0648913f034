//! Key bindings: lookup, footer, help, and the keys of a configuration.
//!
//! [`table`] binds actions to key sequences within scopes, and a [`Keymap`] is that table with
//! the keys that the user configured. Within a scope, no two rows share a sequence, and no sequence
//! begins another one: a test checks the table, and a configuration that violates this is
//! rejected. The keys of the line editor and of dialogs are fixed and defined there.

mod names;
mod table;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt};

pub use crate::keymap::names::{key_label, key_name};
pub(crate) use table::bindings;
pub use table::{
    Action, BOOKMARKS_SCOPE, Binding, CONTEXTS_SCOPE, Group, HELP_SCOPE, OVERLAY_SCOPES, PROJECTS_SCOPE,
    SHARED_BINDINGS, Scope,
};

/// The groups of bindings that a scope can take.
pub mod groups {
    pub use crate::keymap::table::{
        ARCHIVED_KEYS, COPY_CURL_KEYS, COPY_KEYS, COPY_TEXT_KEYS, END_STEP_KEYS, EXPORT_KEYS, FIND_KEYS,
        FIND_STEP_KEYS, MARK_KEYS, OPEN_KEYS, REFRESH_KEYS, SCREEN_KEYS, SCREEN_STEP_KEYS,
    };
}

/// Keys that a configuration gives to actions: the action's name and its sequences.
pub type Rebinding = BTreeMap<String, Vec<String>>;

/// The error of a configuration of keys, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeymapError(String);

impl fmt::Display for KeymapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[keys] {}; `loupe console --print-keymap` lists names and keys", self.0)
    }
}

impl std::error::Error for KeymapError {}

/// One row of the table, with its current keys: the configured ones, else the defaults.
#[derive(Clone, Debug)]
pub struct Row {
    /// The binding.
    pub binding: &'static Binding,
    /// The current key sequences.
    pub keys: Vec<String>,
}

/// All bindings with their current keys, in the order of footer, help and palette.
#[derive(Clone, Debug)]
pub struct Keymap {
    rows: Vec<Row>,
    /// The scopes within which keys must not be ambiguous.
    scopes: Vec<Scope>,
}

/// The meaning of a key sequence in a scope.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// The binding of the sequence.
    Action(&'static Binding),
    /// The beginning of longer sequences.
    Prefix,
    /// Nothing.
    Nothing,
}

impl Keymap {
    /// Returns the key map of these tables, with the keys of a configuration.
    ///
    /// # Errors
    /// An action that does not exist, a key that no terminal sends, or ambiguous keys within a scope.
    pub fn new(
        tables: &[&'static [Binding]],
        scopes: Vec<Scope>,
        chosen: &Rebinding,
    ) -> Result<Self, KeymapError> {
        let mut keymap = Self::defaults(tables, scopes);
        for (name, keys) in chosen {
            if let Some(bad) = keys.iter().find(|keys| !names::is_sequence(keys)) {
                return Err(KeymapError(format!("`{bad}` of `{name}` is not a key")));
            }
            match keymap.rows.iter_mut().find(|row| row.binding.name == name) {
                Some(row) => row.keys.clone_from(keys),
                None => return Err(KeymapError(format!("there is no action `{name}`"))),
            }
        }
        match keymap.clash() {
            Some(clash) => Err(KeymapError(clash)),
            None => Ok(keymap),
        }
    }

    /// Returns the key map of these tables with their own keys.
    pub fn defaults(tables: &[&'static [Binding]], scopes: Vec<Scope>) -> Self {
        let row = |binding: &'static Binding| Row {
            binding,
            keys: binding.keys.iter().map(|it| (*it).to_owned()).collect(),
        };
        let mut rows: Vec<Row> = tables.iter().flat_map(|table| table.iter()).map(row).collect();
        rows.sort_by_key(|row| {
            let digit = if let Action::Screen(digit) = row.binding.action { digit } else { 0 };
            (row.binding.group.position, digit)
        });
        Self { rows, scopes }
    }

    /// Looks up a sequence of keys separated by a blank.
    pub fn lookup(&self, scope: Scope, sequence: &str) -> Lookup {
        let mut found = Lookup::Nothing;
        for row in self.of_scope(scope) {
            for key in &row.keys {
                if key == sequence {
                    return Lookup::Action(row.binding);
                }
                if key.strip_prefix(sequence).is_some_and(|rest| rest.starts_with(' ')) {
                    found = Lookup::Prefix;
                }
            }
        }
        found
    }

    /// Returns the rows of a scope, in the order of the table.
    pub fn of_scope(&self, scope: Scope) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| scope.includes(row.binding))
    }

    /// Returns the first key of an action; none if it has none.
    pub fn key_of(&self, scope: Scope, action: Action) -> Option<&str> {
        let row = self.of_scope(scope).find(|row| row.binding.action == action)?;
        row.keys.first().map(String::as_str)
    }

    /// Returns the first key of an action by its name.
    pub fn key_named(&self, name: &str) -> Option<&str> {
        let row = self.rows.iter().find(|row| row.binding.name == name)?;
        row.keys.first().map(String::as_str)
    }

    /// Returns the continuations of a prefix: the key that follows, and the row.
    pub fn continuations(&self, scope: Scope, prefix: &str) -> Vec<(&str, &'static Binding)> {
        let keys = self.of_scope(scope).flat_map(|row| row.keys.iter().map(move |key| (key, row.binding)));
        keys.filter_map(|(key, binding)| Some((key.strip_prefix(prefix)?.strip_prefix(' ')?, binding)))
            .collect()
    }

    /// Returns the table as TOML: a `[keys]` section of action names and their sequences.
    pub fn to_toml(&self) -> String {
        let mut text = String::from(
            "# action = [\"key\", ...]; two keys after each other are separated by a blank\n[keys]\n",
        );
        for Row { binding, keys } in &self.rows {
            // A JSON string is a TOML basic string for every key that the table can name.
            let quoted: Vec<String> =
                keys.iter().map(|key| serde_json::Value::from(key.as_str()).to_string()).collect();
            text.push_str(&format!("\"{}\" = [{}]  # {}\n", binding.name, quoted.join(", "), binding.help));
        }
        text
    }

    /// Returns a conflict of two actions of one scope whose keys are ambiguous, as a sentence.
    fn clash(&self) -> Option<String> {
        self.scopes.iter().find_map(|scope| {
            let keys: Vec<(&str, &str)> = self
                .of_scope(*scope)
                .flat_map(|row| row.keys.iter().map(|key| (key.as_str(), row.binding.name)))
                .collect();
            keys.iter().enumerate().find_map(|(at, (key, name))| {
                let (other, other_name) =
                    keys[at + 1..].iter().find(|(other, _)| begins(key, other) || begins(other, key))?;
                Some(format!("`{key}` of `{name}` and `{other}` of `{other_name}` clash in {}", scope.title))
            })
        })
    }
}

/// Returns whether one sequence equals the other or begins it.
fn begins(start: &str, whole: &str) -> bool {
    whole.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}
