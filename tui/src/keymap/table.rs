//! The one table of keys. Its order is the order of the footer, of help and of the palette.

use api::Role;

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
    Numbers,
    Auto,
    EditSearch,
    Evaluate,
    Rules,
    OpenTrace,
    Baseline,
    TraceEvals,
    NewRule,
    Enable,
    DeleteRule,
    TestRule,
    Why,
    Neighbours,
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
    /// The evaluations.
    Evals,
    /// The rules that ask for evaluations.
    Rules,
    /// The metrics.
    Metrics,
    /// The spans that were searched for.
    Search,
    /// The API keys.
    Keys,
    /// The projects.
    Projects,
    /// The plan and its limits.
    Plan,
    /// A screen that this version does not have yet.
    Panel,
    /// Help and the log of problems.
    Overlay,
    /// The choice of a project.
    Picker,
    /// The choice of a context.
    Contexts,
    /// The marked traces.
    Bookmarks,
}

impl Scope {
    /// Every scope.
    pub const ALL: &'static [Self] = &[
        Self::List,
        Self::Tree,
        Self::Pane,
        Self::Evals,
        Self::Rules,
        Self::Metrics,
        Self::Search,
        Self::Keys,
        Self::Projects,
        Self::Plan,
        Self::Panel,
        Self::Overlay,
        Self::Picker,
        Self::Contexts,
        Self::Bookmarks,
    ];

    /// What help calls it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::List => "Traces",
            Self::Tree => "Trace detail: spans",
            Self::Pane => "Trace detail: pane",
            Self::Evals => "Evals: evaluations",
            Self::Rules => "Evals: rules",
            Self::Metrics => "Metrics",
            Self::Search => "Search",
            Self::Keys => "Keys & Projects: keys",
            Self::Projects => "Keys & Projects: projects",
            Self::Plan => "Keys & Projects: plan",
            Self::Panel => "Screen",
            Self::Overlay => "Help and problems",
            Self::Picker => "Choice of a project",
            Self::Contexts => "Choice of a context",
            Self::Bookmarks => "Marked traces",
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
    /// It changes the server, which takes at least this role.
    pub needs: Option<Role>,
}

const LIST: &[Scope] = &[Scope::List];
const DETAIL: &[Scope] = &[Scope::Tree, Scope::Pane];
const KEYS: &[Scope] = &[Scope::Keys];
const PROJECTS: &[Scope] = &[Scope::Projects];
const MANAGE: &[Scope] = &[Scope::Keys, Scope::Projects, Scope::Plan];
const EVALS: &[Scope] = &[Scope::Evals];
const RULES: &[Scope] = &[Scope::Rules];
const OF_EVALS: &[Scope] = &[Scope::Evals, Scope::Rules];
const OF_TRACES: &[Scope] = &[Scope::List, Scope::Tree, Scope::Pane];
const METRICS: &[Scope] = &[Scope::Metrics];
const SEARCH: &[Scope] = &[Scope::Search];
const FINDABLE: &[Scope] = &[Scope::List, Scope::Tree, Scope::Pane, Scope::Evals];
const READ: &[Scope] = &[Scope::List, Scope::Tree, Scope::Pane, Scope::Evals, Scope::Search];
const COPIED: &[Scope] = &[
    Scope::List,
    Scope::Tree,
    Scope::Pane,
    Scope::Evals,
    Scope::Rules,
    Scope::Search,
    Scope::Keys,
    Scope::Projects,
];
const WRITTEN: &[Scope] = &[
    Scope::List,
    Scope::Tree,
    Scope::Pane,
    Scope::Evals,
    Scope::Rules,
    Scope::Metrics,
    Scope::Search,
    Scope::Keys,
    Scope::Projects,
];
const FRESH: &[Scope] = &[
    Scope::List,
    Scope::Tree,
    Scope::Pane,
    Scope::Evals,
    Scope::Rules,
    Scope::Metrics,
    Scope::Search,
    Scope::Keys,
    Scope::Projects,
    Scope::Plan,
];
const FOUND: &[Scope] = &[Scope::List, Scope::Tree, Scope::Pane, Scope::Evals, Scope::Overlay];
const SCREENS: &[Scope] = &[
    Scope::List,
    Scope::Tree,
    Scope::Pane,
    Scope::Evals,
    Scope::Rules,
    Scope::Metrics,
    Scope::Search,
    Scope::Keys,
    Scope::Projects,
    Scope::Plan,
    Scope::Panel,
];
const OPENABLE: &[Scope] = &[
    Scope::List,
    Scope::Tree,
    Scope::Pane,
    Scope::Evals,
    Scope::Rules,
    Scope::Metrics,
    Scope::Search,
    Scope::Projects,
    Scope::Picker,
    Scope::Contexts,
    Scope::Bookmarks,
];
const TABBED: &[Scope] = &[
    Scope::List,
    Scope::Evals,
    Scope::Rules,
    Scope::Metrics,
    Scope::Search,
    Scope::Keys,
    Scope::Projects,
    Scope::Plan,
    Scope::Panel,
];
const TEXTS: &[Scope] = &[
    Scope::Tree,
    Scope::Pane,
    Scope::Evals,
    Scope::Rules,
    Scope::Metrics,
    Scope::Search,
    Scope::Keys,
    Scope::Projects,
    Scope::Plan,
    Scope::Panel,
    Scope::Overlay,
    Scope::Picker,
    Scope::Contexts,
    Scope::Bookmarks,
];
const CURL: &[Scope] = &[
    Scope::List,
    Scope::Tree,
    Scope::Pane,
    Scope::Evals,
    Scope::Rules,
    Scope::Metrics,
    Scope::Search,
    Scope::Panel,
];
const MARKED: &[Scope] = &[Scope::List, Scope::Tree, Scope::Pane, Scope::Search, Scope::Bookmarks];
const ARCHIVED: &[Scope] = &[Scope::Projects, Scope::Picker];

macro_rules! table {
    ($($action:expr, $name:literal, [$($key:literal),+], $scopes:expr, $help:literal
        $(, $footer:literal)? $(=> $needs:expr)?);+ $(;)?) => {
        &[$(Binding {
            action: $action, name: $name, keys: &[$($key),+], scopes: $scopes, help: $help,
            footer: table!(@given $($footer)?),
            needs: table!(@given $($needs)?),
        }),+]
    };
    (@given $value:expr) => { Some($value) };
    (@given) => { None };
}

/// The table, as it is without a configuration.
pub const BINDINGS: &[Binding] = table! {
    Action::Open, "nav.open", ["enter"], OPENABLE, "open, go into the pane, fold or unfold, choose", "open";
    Action::Up, "nav.up", ["up", "k"], Scope::ALL, "one up";
    Action::Down, "nav.down", ["down", "j"], Scope::ALL, "one down";
    Action::NewKey, "keys.create", ["c"], KEYS, "make an API key; its secret is shown once", "new" => Role::Member;
    Action::RevokeKey, "keys.revoke", ["d"], KEYS, "revoke the selected key, after a question", "revoke" => Role::Member;
    Action::NewProject, "projects.create", ["c"], PROJECTS, "make a project", "new" => Role::Member;
    Action::Archive, "projects.archive", ["A"], PROJECTS, "archive the selected project, after a question", "archive" => Role::Owner;
    Action::Unarchive, "projects.unarchive", ["U"], PROJECTS, "let the selected project take traces again", "restore" => Role::Owner;
    Action::Autoship, "projects.autoship", ["P"], PROJECTS, "ship prompts that passed their test without approval, or not", "autoship" => Role::Owner;
    Action::ShowArchived, "projects.archived", ["h"], ARCHIVED, "show archived projects too, or not", "archived";
    Action::Evaluate, "evals.run", ["c"], EVALS, "run an evaluation, on the trace of this row or another", "run" => Role::Member;
    Action::EditFilter, "evals.filter", ["/"], EVALS, "edit the filter; tab completes, up recalls", "filter";
    Action::Rules, "evals.rules", ["r"], OF_EVALS, "the rules that run evaluations, or the evaluations", "rules";
    Action::OpenTrace, "evals.trace", ["t", "g t"], EVALS, "go to the trace that was judged", "trace";
    Action::Baseline, "evals.baseline", ["g b"], EVALS, "go to the baseline that a remediated output is compared with";
    Action::WidenTime, "evals.widen", ["w"], EVALS, "drop the filter's time bounds";
    Action::NewRule, "rules.create", ["a", "c"], RULES, "add a rule that judges new traces", "add" => Role::Member;
    Action::Enable, "rules.enable", ["E"], RULES, "enable, disable, or let a paused rule try again", "on/off" => Role::Member;
    Action::DeleteRule, "rules.delete", ["d"], RULES, "delete the selected rule, after a question", "delete" => Role::Member;
    Action::TestRule, "rules.test", ["t"], RULES, "try the rule on a trace; nothing is stored", "test" => Role::Member;
    Action::Why, "rules.why", ["w"], RULES, "why the rule ran on a trace, or did not", "why";
    Action::EditSearch, "search.edit", ["/", "i"], SEARCH, "type what to look for; tab completes, up recalls", "search";
    Action::Neighbours, "search.near", ["x"], SEARCH, "spans like the selected one, by its own vector", "like";
    Action::EditFilter, "list.filter", ["/"], LIST, "edit the server filter; tab completes, up recalls", "filter";
    Action::FailuresOnly, "list.failures", ["F"], LIST, "show failed traces only, or all", "failures";
    Action::Pause, "list.pause", ["space"], LIST, "pause or resume the live list", "pause";
    Action::Left, "metrics.earlier", ["left", "h"], METRICS, "the column before", "cursor";
    Action::Right, "metrics.later", ["right", "l"], METRICS, "the column after";
    Action::PreviousTab, "metrics.shorter", ["["], METRICS, "a shorter time", "window";
    Action::NextTab, "metrics.longer", ["]"], METRICS, "a longer time";
    Action::Numbers, "metrics.numbers", ["v"], METRICS, "the numbers in place of the chart, or the chart", "numbers";
    Action::Auto, "metrics.auto", ["t"], METRICS, "ask again by itself, or only with R", "auto";
    Action::Left, "nav.left", ["left", "h"], DETAIL, "fold", "fold";
    Action::Right, "nav.right", ["right", "l"], DETAIL, "unfold";
    Action::Zoom, "detail.zoom", ["z"], DETAIL, "zoom the pane over the whole body", "zoom";
    Action::NextTab, "detail.next-tab", ["]", "tab"], DETAIL, "next tab of the pane", "tab";
    Action::PreviousTab, "detail.previous-tab", ["[", "shift-tab"], DETAIL, "previous tab of the pane";
    Action::NextTab, "manage.next-tab", ["]", "right"], MANAGE, "next of keys, projects and plan", "tab";
    Action::PreviousTab, "manage.previous-tab", ["[", "left"], MANAGE, "previous of keys, projects and plan";
    Action::Find, "find.start", ["f"], FOUND, "find in what is loaded", "find";
    Action::FindNext, "find.next", ["n"], FINDABLE, "next hit";
    Action::FindPrevious, "find.previous", ["N"], FINDABLE, "previous hit";
    Action::Bookmark, "bookmark.toggle", ["m"], MARKED, "mark the trace, or take the mark away", "mark";
    Action::CopyId, "copy.id", ["y i", "y y"], COPIED, "copy the id of what is selected", "copy";
    Action::CopyText, "copy.text", ["y d"], READ, "copy the input and output, or the text of the pane";
    Action::CopyUrl, "copy.url", ["y u"], READ, "copy the address of the trace";
    Action::CopyJson, "copy.json", ["y j"], COPIED, "copy the record as JSON";
    Action::CopyCurl, "copy.curl", ["y c"], CURL, "copy a curl command, without the credential";
    Action::Evaluate, "trace.evaluate", ["c"], OF_TRACES, "run an evaluation of this trace" => Role::Member;
    Action::Why, "trace.why", ["w"], DETAIL, "why the project's rules judged this trace, or did not";
    Action::TraceEvals, "trace.evals", ["g e"], OF_TRACES, "the evaluations of this trace, on screen 2";
    Action::NextTrace, "detail.next-trace", ["J"], DETAIL, "next trace of the list";
    Action::PreviousTrace, "detail.previous-trace", ["K"], DETAIL, "previous trace of the list";
    Action::Split, "detail.split", ["\\"], DETAIL, "one pane or two, where the width allows two";
    Action::TextMode, "detail.text-mode", ["t"], DETAIL, "show JSON as a tree or as plain text";
    Action::Export, "app.export", ["e"], WRITTEN, "write what is shown to a file: ndjson, csv or json", "export";
    Action::Palette, "app.palette", [":", "ctrl-p"], SCREENS, "find an action, a screen, a project or a filter by name", "cmd";
    Action::Sort, "list.sort", ["s"], LIST, "sort the loaded rows by the next column", "sort";
    Action::Bookmarks, "bookmark.list", ["M"], SCREENS, "the marked traces";
    Action::Projects, "app.project", ["p"], SCREENS, "show another project, or all", "project";
    Action::Contexts, "app.context", ["ctrl-o"], SCREENS, "go to another context: its server and credential";
    Action::Refresh, "nav.refresh", ["R"], FRESH, "ask the server again now", "refresh";
    Action::WidenTime, "list.widen", ["w"], LIST, "drop the filter's time bounds";
    Action::PageUp, "nav.page-up", ["pgup", "ctrl-u"], Scope::ALL, "one page up";
    Action::PageDown, "nav.page-down", ["pgdn", "ctrl-d"], Scope::ALL, "one page down";
    Action::Top, "nav.top", ["g g", "home"], Scope::ALL, "to the first";
    Action::Bottom, "list.bottom", ["end"], LIST, "to the last loaded row";
    Action::Bottom, "nav.bottom", ["G", "end"], TEXTS, "to the last";
    Action::Follow, "list.follow", ["G"], LIST, "to the newest, and follow";
    Action::Back, "nav.back", ["esc"], Scope::ALL, "back, or clear find and the filter; never quits", "back";
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
