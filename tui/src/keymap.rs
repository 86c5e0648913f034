//! The one table of keys: what a key does, what the footer offers, what help lists.
//!
//! A row binds an action to key sequences within scopes. Two rows of one scope never share
//! a sequence, nor is one the beginning of the other; a test walks the table. The keys of
//! the line editor are fixed and live in `input`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::theme::Glyphs;

/// What a key can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the table below says in words what each one does")]
pub enum Action {
    Screen(u8),
    NextScreen,
    PreviousScreen,
    Up,
    Down,
    PageUp,
    PageDown,
    Top,
    Bottom,
    Follow,
    Left,
    Right,
    Open,
    Back,
    LastPlace,
    EditFilter,
    WidenTime,
    Find,
    FindNext,
    FindPrevious,
    Pause,
    Sort,
    Refresh,
    CopyId,
    CopyText,
    CopyUrl,
    CopyJson,
    CopyCurl,
    Zoom,
    Split,
    NextTab,
    PreviousTab,
    TextMode,
    NextTrace,
    PreviousTrace,
    Projects,
    Problems,
    Help,
    Redraw,
    Suspend,
    Quit,
}

/// Where a key is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The list of traces.
    List,
    /// The span tree of the detail.
    Tree,
    /// A pane of the detail.
    Pane,
    /// A screen that this version does not have yet.
    Panel,
    /// Help and the log of problems.
    Overlay,
    /// The choice of a project.
    Picker,
}

impl Scope {
    /// Every scope.
    pub const ALL: &'static [Self] =
        &[Self::List, Self::Tree, Self::Pane, Self::Panel, Self::Overlay, Self::Picker];

    /// What help calls it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::List => "Traces",
            Self::Tree => "Trace detail: spans",
            Self::Pane => "Trace detail: pane",
            Self::Panel => "Screen",
            Self::Overlay => "Help and problems",
            Self::Picker => "Projects",
        }
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Binding {
    /// What it does.
    pub action: Action,
    /// The action's name, `group.verb`.
    pub name: &'static str,
    /// Sequences of keys, single keys separated by a blank within one sequence.
    pub keys: &'static [&'static str],
    /// Where it works.
    pub scopes: &'static [Scope],
    /// One line for help.
    pub help: &'static str,
    /// The word in the footer, if it is offered there.
    pub footer: Option<&'static str>,
}

const LIST: &[Scope] = &[Scope::List];
const DETAIL: &[Scope] = &[Scope::Tree, Scope::Pane];
const FINDABLE: &[Scope] = &[Scope::List, Scope::Tree, Scope::Pane];
const FOUND: &[Scope] = &[Scope::List, Scope::Tree, Scope::Pane, Scope::Overlay];
const SCREENS: &[Scope] = &[Scope::List, Scope::Tree, Scope::Pane, Scope::Panel];
const OPENABLE: &[Scope] = &[Scope::List, Scope::Tree, Scope::Pane, Scope::Picker];
const TABBED: &[Scope] = &[Scope::List, Scope::Panel];
const TEXTS: &[Scope] = &[Scope::Tree, Scope::Pane, Scope::Panel, Scope::Overlay, Scope::Picker];

macro_rules! table {
    ($($action:expr, $name:literal, [$($key:literal),+], $scopes:expr, $help:literal $(, $footer:literal)?);+ $(;)?) => {
        &[$(Binding {
            action: $action, name: $name, keys: &[$($key),+], scopes: $scopes, help: $help,
            footer: table!(@footer $($footer)?),
        }),+]
    };
    (@footer $footer:literal) => { Some($footer) };
    (@footer) => { None };
}

/// The table. Its order is the order of the footer and of help.
pub const BINDINGS: &[Binding] = table! {
    Action::Open, "nav.open", ["enter"], OPENABLE, "open, go into the pane, fold or unfold, choose", "open";
    Action::Up, "nav.up", ["up", "k"], Scope::ALL, "one up";
    Action::Down, "nav.down", ["down", "j"], Scope::ALL, "one down";
    Action::EditFilter, "list.filter", ["/"], LIST, "edit the server filter; tab completes, up recalls", "filter";
    Action::Pause, "list.pause", ["space"], LIST, "pause or resume the live list", "pause";
    Action::Left, "nav.left", ["left", "h"], DETAIL, "fold", "fold";
    Action::Right, "nav.right", ["right", "l"], DETAIL, "unfold";
    Action::Zoom, "detail.zoom", ["z"], DETAIL, "zoom the pane over the whole body", "zoom";
    Action::NextTab, "detail.next-tab", ["]", "tab"], DETAIL, "next tab of the pane", "tab";
    Action::PreviousTab, "detail.previous-tab", ["[", "shift-tab"], DETAIL, "previous tab of the pane";
    Action::Find, "find.start", ["f"], FOUND, "find in what is loaded", "find";
    Action::FindNext, "find.next", ["n"], FINDABLE, "next hit";
    Action::FindPrevious, "find.previous", ["N"], FINDABLE, "previous hit";
    Action::CopyId, "copy.id", ["y i", "y y"], FINDABLE, "copy the id of the trace or span", "copy";
    Action::CopyText, "copy.text", ["y d"], FINDABLE, "copy the input and output, or the text of the pane";
    Action::CopyUrl, "copy.url", ["y u"], FINDABLE, "copy the address of the trace";
    Action::CopyJson, "copy.json", ["y j"], FINDABLE, "copy the record as JSON";
    Action::CopyCurl, "copy.curl", ["y c"], SCREENS, "copy a curl command, without the credential";
    Action::NextTrace, "detail.next-trace", ["J"], DETAIL, "next trace of the list";
    Action::PreviousTrace, "detail.previous-trace", ["K"], DETAIL, "previous trace of the list";
    Action::Split, "detail.split", ["\\"], DETAIL, "one pane or two, where the width allows two";
    Action::TextMode, "detail.text-mode", ["t"], DETAIL, "show JSON as a tree or as plain text";
    Action::Sort, "list.sort", ["s"], LIST, "sort the loaded rows by the next column", "sort";
    Action::Projects, "app.project", ["p"], LIST, "show another project, or all", "project";
    Action::Refresh, "nav.refresh", ["R"], FINDABLE, "ask the server again now", "refresh";
    Action::WidenTime, "list.widen", ["w"], LIST, "drop the filter's time bounds";
    Action::PageUp, "nav.page-up", ["pgup", "ctrl-u"], Scope::ALL, "one page up";
    Action::PageDown, "nav.page-down", ["pgdn", "ctrl-d"], Scope::ALL, "one page down";
    Action::Top, "nav.top", ["g g", "home"], Scope::ALL, "to the first";
    Action::Bottom, "nav.bottom", ["end"], LIST, "to the last loaded row";
    Action::Bottom, "nav.bottom", ["G", "end"], TEXTS, "to the last";
    Action::Follow, "list.follow", ["G"], LIST, "to the newest, and follow";
    Action::Back, "nav.back", ["esc"], Scope::ALL, "back; never quits", "back";
    Action::LastPlace, "nav.last-place", ["-"], SCREENS, "the place before this one";
    Action::Screen(1), "screen.traces", ["1"], SCREENS, "Traces";
    Action::Screen(2), "screen.evals", ["2"], SCREENS, "Evals";
    Action::Screen(3), "screen.metrics", ["3"], SCREENS, "Metrics";
    Action::Screen(4), "screen.failures", ["4"], SCREENS, "Failures";
    Action::Screen(5), "screen.approvals", ["5"], SCREENS, "Approvals";
    Action::Screen(6), "screen.webhooks", ["6"], SCREENS, "Webhooks";
    Action::Screen(7), "screen.keys", ["7"], SCREENS, "Keys & Projects";
    Action::Screen(8), "screen.search", ["8"], SCREENS, "Search";
    Action::NextScreen, "screen.next", ["tab"], TABBED, "next screen";
    Action::PreviousScreen, "screen.previous", ["shift-tab"], TABBED, "previous screen";
    Action::Problems, "app.problems", ["!"], Scope::ALL, "log of the last problems";
    Action::Help, "app.help", ["?"], Scope::ALL, "the keys of this place", "help";
    Action::Redraw, "app.redraw", ["ctrl-l"], Scope::ALL, "draw the screen afresh";
    Action::Suspend, "app.suspend", ["ctrl-z"], Scope::ALL, "suspend to the shell";
    Action::Quit, "app.quit", ["q", "ctrl-c"], Scope::ALL, "quit", "quit";
};

/// What a key sequence means in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// An action.
    Action(Action),
    /// The beginning of longer sequences.
    Prefix,
    /// Nothing.
    Nothing,
}

/// Looks a sequence up, single keys separated by a blank.
pub fn lookup(scope: Scope, sequence: &str) -> Lookup {
    let mut found = Lookup::Nothing;
    for binding in of_scope(scope) {
        for key in binding.keys {
            if *key == sequence {
                return Lookup::Action(binding.action);
            }
            if key.strip_prefix(sequence).is_some_and(|rest| rest.starts_with(' ')) {
                found = Lookup::Prefix;
            }
        }
    }
    found
}

/// The rows of a scope, in the table's order.
pub fn of_scope(scope: Scope) -> impl Iterator<Item = &'static Binding> {
    BINDINGS.iter().filter(move |binding| binding.scopes.contains(&scope))
}

/// The continuations of a prefix: the key that follows, and the row.
pub fn continuations(scope: Scope, prefix: &str) -> Vec<(&'static str, &'static Binding)> {
    let keys = of_scope(scope).flat_map(|binding| binding.keys.iter().map(move |key| (*key, binding)));
    keys.filter_map(|(key, binding)| Some((key.strip_prefix(prefix)?.strip_prefix(' ')?, binding))).collect()
}

/// The name of a pressed key as the table writes it, or nothing for keys it can't name.
pub fn key_name(key: KeyEvent) -> Option<String> {
    let base = match key.code {
        KeyCode::Char(' ') => "space".to_owned(),
        KeyCode::Char(c) => c.to_string(),
        KeyCode::Enter => "enter".to_owned(),
        KeyCode::Esc => "esc".to_owned(),
        KeyCode::Tab => "tab".to_owned(),
        KeyCode::BackTab => "shift-tab".to_owned(),
        KeyCode::Up => "up".to_owned(),
        KeyCode::Down => "down".to_owned(),
        KeyCode::Left => "left".to_owned(),
        KeyCode::Right => "right".to_owned(),
        KeyCode::PageUp => "pgup".to_owned(),
        KeyCode::PageDown => "pgdn".to_owned(),
        KeyCode::Home => "home".to_owned(),
        KeyCode::End => "end".to_owned(),
        _ => return None,
    };
    let modified = if key.modifiers.contains(KeyModifiers::CONTROL) { format!("ctrl-{base}") } else { base };
    Some(if key.modifiers.contains(KeyModifiers::ALT) { format!("alt-{modified}") } else { modified })
}

/// How a key of the table is shown.
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

/// The table as TOML: a `[keys]` section of action names and their sequences.
pub fn to_toml() -> String {
    let mut text = String::from(
        "# action = [\"key\", ...]; two keys after each other are separated by a blank\n[keys]\n",
    );
    let mut seen: Vec<&str> = Vec::new();
    for binding in BINDINGS {
        if seen.contains(&binding.name) {
            continue;
        }
        seen.push(binding.name);
        let mut keys: Vec<String> = Vec::new();
        for same in BINDINGS.iter().filter(|it| it.name == binding.name) {
            for key in same.keys {
                // A JSON string is a TOML basic string for every key that the table can name.
                let quoted = serde_json::Value::from(*key).to_string();
                if !keys.contains(&quoted) {
                    keys.push(quoted);
                }
            }
        }
        text.push_str(&format!("\"{}\" = [{}]  # {}\n", binding.name, keys.join(", "), binding.help));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_rows_of_a_scope_clash() {
        for scope in Scope::ALL {
            let keys: Vec<(&str, &str)> =
                of_scope(*scope).flat_map(|it| it.keys.iter().map(move |key| (*key, it.name))).collect();
            for (at, (key, name)) in keys.iter().enumerate() {
                for (other, other_name) in &keys[at + 1..] {
                    let clash = key == other
                        || other.starts_with(&format!("{key} "))
                        || key.starts_with(&format!("{other} "));
                    assert!(!clash, "{scope:?}: `{key}` of {name} and `{other}` of {other_name}");
                }
            }
        }
    }

    #[test]
    fn movement_copy_and_quit_mean_the_same_everywhere() {
        for scope in Scope::ALL {
            assert_eq!(lookup(*scope, "j"), Lookup::Action(Action::Down));
            assert_eq!(lookup(*scope, "ctrl-c"), Lookup::Action(Action::Quit));
            assert_eq!(lookup(*scope, "esc"), Lookup::Action(Action::Back));
        }
    }

    #[test]
    fn a_sequence_is_found_after_its_prefix() {
        assert_eq!(lookup(Scope::List, "y"), Lookup::Prefix);
        assert_eq!(lookup(Scope::List, "y i"), Lookup::Action(Action::CopyId));
        assert_eq!(lookup(Scope::List, "y q"), Lookup::Nothing);
        assert!(continuations(Scope::List, "y").iter().any(|(key, _)| *key == "c"));
    }

    #[test]
    fn every_row_of_a_footer_fits_a_word() {
        assert!(BINDINGS.iter().filter_map(|it| it.footer).all(|word| word.len() <= 8 && word.is_ascii()));
    }

    #[test]
    fn the_toml_names_each_action_once() {
        let toml = to_toml();
        assert_eq!(toml.matches("\"nav.bottom\"").count(), 1);
        assert!(toml.contains("\"detail.split\" = [\"\\\\\"]"), "{toml}");
    }
}
