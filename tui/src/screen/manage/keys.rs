//! The keys of Keys & Projects.

use api::Role;

use super::SCREEN_DIGIT;
use crate::keymap::{
    Action, Binding, Group, Scope, bindings,
    groups::{
        ARCHIVED_KEYS, COPY_KEYS, END_STEP_KEYS, EXPORT_KEYS, OPEN_KEYS, REFRESH_KEYS, SCREEN_KEYS,
        SCREEN_STEP_KEYS,
    },
};

/// Changes of API keys. They require a session.
pub const API_KEYS: Group = Group { name: "api keys", position: 10 };
/// Changes of projects.
pub const PROJECT_ROWS: Group = Group { name: "projects", position: 10 };
/// The sections of the screen.
pub const SECTION_KEYS: Group = Group { name: "manage sections", position: 14 };

/// The API keys.
pub const KEYS_SCOPE: Scope = Scope::screen(
    "Keys & Projects: keys",
    &[API_KEYS, SECTION_KEYS, COPY_KEYS, EXPORT_KEYS, REFRESH_KEYS, END_STEP_KEYS, SCREEN_STEP_KEYS],
);
/// The projects.
pub const PROJECTS_SCOPE: Scope = Scope::screen(
    "Keys & Projects: projects",
    &[
        OPEN_KEYS,
        PROJECT_ROWS,
        ARCHIVED_KEYS,
        SECTION_KEYS,
        COPY_KEYS,
        EXPORT_KEYS,
        REFRESH_KEYS,
        END_STEP_KEYS,
        SCREEN_STEP_KEYS,
    ],
);
/// The plan and its limits.
pub const PLAN_SCOPE: Scope =
    Scope::screen("Keys & Projects: plan", &[SECTION_KEYS, REFRESH_KEYS, END_STEP_KEYS, SCREEN_STEP_KEYS]);

/// Rejected input.
pub const REJECTIONS_SCOPE: Scope = Scope::screen(
    "Keys & Projects: rejections",
    &[SECTION_KEYS, COPY_KEYS, EXPORT_KEYS, REFRESH_KEYS, END_STEP_KEYS, SCREEN_STEP_KEYS],
);

/// The scopes of the screen.
pub const SCREEN_SCOPES: &[Scope] = &[KEYS_SCOPE, PROJECTS_SCOPE, PLAN_SCOPE, REJECTIONS_SCOPE];

/// The bindings of the screen.
pub const SCREEN_BINDINGS: &[Binding] = bindings! {
    Action::Screen(SCREEN_DIGIT), "screen.keys", ["7"], SCREEN_KEYS, "Keys & Projects";
    Action::NewKey, "keys.create", ["c"], API_KEYS, "create an API key; its secret is shown once", "new" => Role::Member;
    Action::RevokeKey, "keys.revoke", ["d"], API_KEYS, "revoke the selected key, after a confirmation", "revoke" => Role::Member;
    Action::NewProject, "projects.create", ["c"], PROJECT_ROWS, "create a project", "new" => Role::Member;
    Action::Archive, "projects.archive", ["A"], PROJECT_ROWS, "archive the selected project, after a confirmation", "archive" => Role::Owner;
    Action::Unarchive, "projects.unarchive", ["U"], PROJECT_ROWS, "unarchive the selected project, which then accepts traces again", "restore" => Role::Owner;
    Action::Autoship, "projects.autoship", ["P"], PROJECT_ROWS, "ship prompts that passed their test without approval, or not", "autoship" => Role::Owner;
    Action::NextTab, "manage.next-tab", ["]", "right"], SECTION_KEYS, "next of keys, projects, plan and rejections", "tab";
    Action::PreviousTab, "manage.previous-tab", ["[", "left"], SECTION_KEYS, "previous of keys, projects, plan and rejections";
};
