//! The vocabulary of key bindings: actions, scopes, groups, and the bindings that several scopes share.

use api::Role;

/// The effect of a key.
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
    FailuresOnly,
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
    EditSearch,
    Evaluate,
    Rules,
    OpenTrace,
    Baseline,
    TraceEvals,
    TraceApproval,
    RemediationDiff,
    NewRule,
    Enable,
    DeleteRule,
    TestRule,
    Why,
    NextTrace,
    PreviousTrace,
    NewKey,
    RevokeKey,
    NewProject,
    Archive,
    Unarchive,
    Autoship,
    ShowArchived,
    Projects,
    Contexts,
    Palette,
    Export,
    Bookmark,
    Bookmarks,
    Problems,
    Help,
    Redraw,
    Suspend,
    Quit,
    /// An action that only one screen has, by its name.
    Custom(&'static str),
}

/// Bindings that belong together. A scope takes groups as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name, unique among all groups.
    pub name: &'static str,
    /// The position of the bindings in footer, help and palette, lower first. Bindings of groups with equal
    /// positions keep the order of their tables.
    pub position: u8,
}

/// The key scope of a place: its title in help, and the groups of bindings that work there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The title.
    pub title: &'static str,
    is_screen: bool,
    groups: &'static [Group],
}

impl Scope {
    /// Returns the scope of a screen. It includes the keys that every screen has.
    pub const fn screen(title: &'static str, groups: &'static [Group]) -> Self {
        Self { title, is_screen: true, groups }
    }

    /// Returns the scope of an overlay.
    pub const fn overlay(title: &'static str, groups: &'static [Group]) -> Self {
        Self { title, is_screen: false, groups }
    }

    /// Returns whether a binding works in the scope.
    pub fn includes(&self, binding: &Binding) -> bool {
        let group = &binding.group;
        COMMON_GROUPS.contains(group)
            || (self.is_screen && SCREEN_GROUPS.contains(group))
            || self.groups.contains(group)
    }
}

/// The effect of a key sequence.
#[derive(Debug)]
pub struct Binding {
    /// The action.
    pub action: Action,
    /// The action's name, `group.verb`.
    pub name: &'static str,
    /// Key sequences; the keys of one sequence are separated by a blank.
    pub keys: &'static [&'static str],
    /// The group.
    pub group: Group,
    /// One line for help.
    pub help: &'static str,
    /// The word in the footer, if the footer offers the action.
    pub footer: Option<&'static str>,
    /// The lowest role of an action that changes the server.
    pub role: Option<Role>,
}

/// Builds a table of bindings. Each has an action, a name, keys, a group and a help text. Two parts are optional: the word
/// in the footer and, after `=>`, the role that the action requires.
macro_rules! bindings {
    ($($action:expr, $name:literal, [$($key:literal),+], $group:expr, $help:literal
        $(, $footer:literal)? $(=> $role:expr)?);+ $(;)?) => {
        &[$($crate::keymap::Binding {
            action: $action, name: $name, keys: &[$($key),+], group: $group, help: $help,
            footer: $crate::keymap::bindings!(@optional $($footer)?),
            role: $crate::keymap::bindings!(@optional $($role)?),
        }),+]
    };
    (@optional $value:expr) => { Some($value) };
    (@optional) => { None };
}

pub(crate) use bindings;

/// Movement by a row; part of every scope.
pub const MOVEMENT_KEYS: Group = Group { name: "movement", position: 0 };
/// Opening the row under the cursor.
pub const OPEN_KEYS: Group = Group { name: "open", position: 0 };
/// Showing archived projects.
pub const ARCHIVED_KEYS: Group = Group { name: "archived", position: 12 };
/// Find.
pub const FIND_KEYS: Group = Group { name: "find", position: 20 };
/// The next and the previous match of find.
pub const FIND_STEP_KEYS: Group = Group { name: "find steps", position: 20 };
/// Marking a trace.
pub const MARK_KEYS: Group = Group { name: "mark", position: 20 };
/// Copying a record.
pub const COPY_KEYS: Group = Group { name: "copy", position: 20 };
/// Copying texts and the address of a trace.
pub const COPY_TEXT_KEYS: Group = Group { name: "copy texts", position: 20 };
/// Copying a request.
pub const COPY_CURL_KEYS: Group = Group { name: "copy curl", position: 20 };
/// Writing the records to a file.
pub const EXPORT_KEYS: Group = Group { name: "export", position: 40 };
/// The palette; part of every screen.
pub const COMMAND_KEYS: Group = Group { name: "commands", position: 40 };
/// Projects, contexts and marked traces; part of every screen.
pub const PLACE_KEYS: Group = Group { name: "places", position: 60 };
/// Repeating the requests.
pub const REFRESH_KEYS: Group = Group { name: "refresh", position: 60 };
/// Movement by a page; part of every scope.
pub const PAGE_KEYS: Group = Group { name: "pages", position: 80 };
/// Movement to the last row.
pub const END_STEP_KEYS: Group = Group { name: "end", position: 90 };
/// Back; part of every scope.
pub const BACK_KEYS: Group = Group { name: "back", position: 98 };
/// The screens by digit, in the order of their digits; part of every screen. Each screen binds its own digit.
pub const SCREEN_KEYS: Group = Group { name: "screens", position: 99 };
/// Help, the log and quitting; part of every scope.
pub const CONSOLE_KEYS: Group = Group { name: "console", position: 100 };
/// The next and the previous screen.
pub const SCREEN_STEP_KEYS: Group = Group { name: "screen steps", position: 100 };

/// The groups of every scope.
const COMMON_GROUPS: &[Group] = &[MOVEMENT_KEYS, PAGE_KEYS, BACK_KEYS, CONSOLE_KEYS];
/// The groups of every screen.
const SCREEN_GROUPS: &[Group] = &[COMMAND_KEYS, PLACE_KEYS, SCREEN_KEYS];

/// Help and the log of problems.
pub const HELP_SCOPE: Scope = Scope::overlay("Help and problems", &[FIND_KEYS, END_STEP_KEYS]);
/// The choice of a project.
pub const PROJECTS_SCOPE: Scope =
    Scope::overlay("Choice of a project", &[OPEN_KEYS, ARCHIVED_KEYS, END_STEP_KEYS]);
/// The choice of a context.
pub const CONTEXTS_SCOPE: Scope = Scope::overlay("Choice of a context", &[OPEN_KEYS, END_STEP_KEYS]);
/// The marked traces.
pub const BOOKMARKS_SCOPE: Scope = Scope::overlay("Marked traces", &[OPEN_KEYS, MARK_KEYS, END_STEP_KEYS]);
/// The scopes of the overlays.
pub const OVERLAY_SCOPES: &[Scope] = &[HELP_SCOPE, PROJECTS_SCOPE, CONTEXTS_SCOPE, BOOKMARKS_SCOPE];

/// The bindings that several scopes share.
pub const SHARED_BINDINGS: &[Binding] = bindings! {
    Action::Open, "nav.open", ["enter"], OPEN_KEYS, "open, enter the pane, fold or unfold, choose", "open";
    Action::Up, "nav.up", ["up", "k"], MOVEMENT_KEYS, "one up";
    Action::Down, "nav.down", ["down", "j"], MOVEMENT_KEYS, "one down";
    Action::ShowArchived, "projects.archived", ["h"], ARCHIVED_KEYS, "show or hide archived projects", "archived";
    Action::Find, "find.start", ["f"], FIND_KEYS, "find in the loaded rows", "find";
    Action::FindNext, "find.next", ["n"], FIND_STEP_KEYS, "next hit";
    Action::FindPrevious, "find.previous", ["N"], FIND_STEP_KEYS, "previous hit";
    Action::Bookmark, "bookmark.toggle", ["m"], MARK_KEYS, "mark or unmark the trace", "mark";
    Action::CopyId, "copy.id", ["y i", "y y"], COPY_KEYS, "copy the id of what is selected", "copy";
    Action::CopyText, "copy.text", ["y d"], COPY_TEXT_KEYS, "copy the input and output, or the text of the pane";
    Action::CopyUrl, "copy.url", ["y u"], COPY_TEXT_KEYS, "copy the address of the trace";
    Action::CopyJson, "copy.json", ["y j"], COPY_KEYS, "copy the record as JSON";
    Action::CopyCurl, "copy.curl", ["y c"], COPY_CURL_KEYS, "copy a curl command, without the credential";
    Action::Export, "app.export", ["e"], EXPORT_KEYS, "export the records to a file: ndjson, csv or json", "export";
    Action::Palette, "app.palette", [":", "ctrl-p"], COMMAND_KEYS, "find an action, a screen, a project or a filter by name", "cmd";
    Action::Bookmarks, "bookmark.list", ["M"], PLACE_KEYS, "the marked traces";
    Action::Projects, "app.project", ["p"], PLACE_KEYS, "show another project, or all", "project";
    Action::Contexts, "app.context", ["ctrl-o"], PLACE_KEYS, "go to another context: its server and credential";
    Action::Refresh, "nav.refresh", ["R"], REFRESH_KEYS, "request the records again", "refresh";
    Action::PageUp, "nav.page-up", ["pgup", "ctrl-u"], PAGE_KEYS, "one page up";
    Action::PageDown, "nav.page-down", ["pgdn", "ctrl-d"], PAGE_KEYS, "one page down";
    Action::Top, "nav.top", ["g g", "home"], PAGE_KEYS, "to the first";
    Action::Bottom, "nav.bottom", ["G", "end"], END_STEP_KEYS, "to the last";
    Action::Back, "nav.back", ["esc"], BACK_KEYS, "back, or clear find and the filter; never quits", "back";
    Action::LastPlace, "nav.last-place", ["-"], SCREEN_KEYS, "back to the previous place";
    Action::NextScreen, "screen.next", ["tab"], SCREEN_STEP_KEYS, "next screen";
    Action::PreviousScreen, "screen.previous", ["shift-tab"], SCREEN_STEP_KEYS, "previous screen";
    Action::Problems, "app.problems", ["!"], CONSOLE_KEYS, "log of the last problems";
    Action::Help, "app.help", ["?"], CONSOLE_KEYS, "the keys that work here", "help";
    Action::Redraw, "app.redraw", ["ctrl-l"], CONSOLE_KEYS, "redraw the screen";
    Action::Suspend, "app.suspend", ["ctrl-z"], CONSOLE_KEYS, "suspend to the shell";
    Action::Quit, "app.quit", ["q", "ctrl-c"], CONSOLE_KEYS, "quit", "quit";
};
