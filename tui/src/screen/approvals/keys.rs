//! The keys of Approvals.

use api::Role;

use super::SCREEN_DIGIT;
use crate::keymap::{
    Action, Binding, Group, Scope, bindings,
    groups::{
        COPY_CURL_KEYS, COPY_KEYS, COPY_TEXT_KEYS, END_STEP_KEYS, EXPORT_KEYS, FIND_KEYS, FIND_STEP_KEYS,
        OPEN_KEYS, REFRESH_KEYS, SCREEN_KEYS, SCREEN_STEP_KEYS,
    },
};

/// Ships the deployment, or executes the action.
pub const APPROVE_ROW: Action = Action::Custom("approvals.approve");
/// Rejects the deployment or the action.
pub const REJECT_ROW: Action = Action::Custom("approvals.reject");
/// Rolls the shipped deployment back.
pub const ROLL_BACK_ROW: Action = Action::Custom("approvals.roll-back");
/// Shows the whole diff.
pub const SHOW_DIFF: Action = Action::Custom("approvals.diff");
/// Switches between a unified diff and one with two sides.
pub const UNIFY_DIFF: Action = Action::Custom("approvals.unified");
/// Switches between the pending rows and the others.
pub const SHOW_HISTORY: Action = Action::Custom("approvals.history");

/// The decisions.
pub const DECISION_KEYS: Group = Group { name: "decisions", position: 4 };
/// The diff, the trace, the filter and the tabs.
pub const APPROVAL_KEYS: Group = Group { name: "approvals", position: 10 };

/// The queue.
pub const APPROVALS_SCOPE: Scope = Scope::screen(
    "Approvals",
    &[
        OPEN_KEYS,
        DECISION_KEYS,
        APPROVAL_KEYS,
        FIND_KEYS,
        FIND_STEP_KEYS,
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
pub const SCREEN_SCOPES: &[Scope] = &[APPROVALS_SCOPE];

/// The bindings of the screen.
pub const SCREEN_BINDINGS: &[Binding] = bindings! {
    Action::Screen(SCREEN_DIGIT), "screen.approvals", ["5"], SCREEN_KEYS, "Approvals";
    APPROVE_ROW, "approvals.approve", ["a"], DECISION_KEYS, "ship the deployment or execute the action, after a confirmation", "approve" => Role::Owner;
    REJECT_ROW, "approvals.reject", ["x"], DECISION_KEYS, "reject the deployment or the action, after a confirmation", "reject" => Role::Owner;
    ROLL_BACK_ROW, "approvals.roll-back", ["B"], DECISION_KEYS, "roll the shipped deployment back, after a confirmation", "rollback" => Role::Owner;
    SHOW_DIFF, "approvals.diff", ["="], APPROVAL_KEYS, "the whole diff: of the templates, or of the outputs of an executed action", "diff";
    UNIFY_DIFF, "approvals.unified", ["u"], APPROVAL_KEYS, "show the diff unified, or side by side", "unified";
    Action::OpenTrace, "approvals.trace", ["t", "g t"], APPROVAL_KEYS, "open the trace of the action", "trace";
    SHOW_HISTORY, "approvals.history", ["H"], APPROVAL_KEYS, "show the history, or what waits for a decision", "history";
    Action::EditFilter, "approvals.filter", ["/"], APPROVAL_KEYS, "filter the loaded rows; tab completes, up recalls";
    Action::NextTab, "approvals.next-tab", ["]", "right"], APPROVAL_KEYS, "next of pending and history";
    Action::PreviousTab, "approvals.previous-tab", ["[", "left"], APPROVAL_KEYS, "previous of pending and history";
};
