//! The keys of Traces.

use api::Role;

use super::SCREEN_DIGIT;
use crate::keymap::{
    Action, Binding, Group, Scope, bindings,
    groups::{
        COPY_CURL_KEYS, COPY_KEYS, COPY_TEXT_KEYS, END_STEP_KEYS, EXPORT_KEYS, FIND_KEYS, FIND_STEP_KEYS,
        MARK_KEYS, OPEN_KEYS, REFRESH_KEYS, SCREEN_KEYS, SCREEN_STEP_KEYS,
    },
};

/// The filter and the live list.
pub const LIST_KEYS: Group = Group { name: "list", position: 10 };
/// Folding, zoom and tabs of an opened trace.
pub const DETAIL_KEYS: Group = Group { name: "detail", position: 10 };
/// The evaluations of a trace.
pub const TRACE_KEYS: Group = Group { name: "trace", position: 30 };
/// Decisions, neighbours and text mode of an opened trace.
pub const DETAIL_EXTRA_KEYS: Group = Group { name: "detail extras", position: 30 };
/// Sorting the list.
pub const SORT_KEYS: Group = Group { name: "sort", position: 50 };
/// Removing the time bounds of the filter.
pub const WIDEN_KEYS: Group = Group { name: "widen", position: 70 };
/// The ends of the live list.
pub const END_KEYS: Group = Group { name: "list ends", position: 90 };

/// The list of traces.
pub const LIST_SCOPE: Scope = Scope::screen(
    "Traces",
    &[
        OPEN_KEYS,
        LIST_KEYS,
        FIND_KEYS,
        FIND_STEP_KEYS,
        MARK_KEYS,
        COPY_KEYS,
        COPY_TEXT_KEYS,
        COPY_CURL_KEYS,
        TRACE_KEYS,
        EXPORT_KEYS,
        SORT_KEYS,
        REFRESH_KEYS,
        WIDEN_KEYS,
        END_KEYS,
        SCREEN_STEP_KEYS,
    ],
);
/// The span tree of an opened trace.
pub const TREE_SCOPE: Scope = Scope::screen(
    "Trace detail: spans",
    &[
        OPEN_KEYS,
        DETAIL_KEYS,
        FIND_KEYS,
        FIND_STEP_KEYS,
        MARK_KEYS,
        COPY_KEYS,
        COPY_TEXT_KEYS,
        COPY_CURL_KEYS,
        TRACE_KEYS,
        DETAIL_EXTRA_KEYS,
        EXPORT_KEYS,
        REFRESH_KEYS,
        END_STEP_KEYS,
    ],
);
/// A pane of an opened trace.
pub const PANE_SCOPE: Scope = Scope::screen(
    "Trace detail: pane",
    &[
        OPEN_KEYS,
        DETAIL_KEYS,
        FIND_KEYS,
        FIND_STEP_KEYS,
        MARK_KEYS,
        COPY_KEYS,
        COPY_TEXT_KEYS,
        COPY_CURL_KEYS,
        TRACE_KEYS,
        DETAIL_EXTRA_KEYS,
        EXPORT_KEYS,
        REFRESH_KEYS,
        END_STEP_KEYS,
    ],
);

/// The scopes of the screen.
pub const SCREEN_SCOPES: &[Scope] = &[LIST_SCOPE, TREE_SCOPE, PANE_SCOPE];

/// The bindings of the screen.
pub const SCREEN_BINDINGS: &[Binding] = bindings! {
    Action::Screen(SCREEN_DIGIT), "screen.traces", ["1"], SCREEN_KEYS, "Traces";
    Action::EditFilter, "list.filter", ["/"], LIST_KEYS, "edit the server filter; tab completes, up recalls", "filter";
    Action::FailuresOnly, "list.failures", ["F"], LIST_KEYS, "show failed traces only, or all", "failures";
    Action::Pause, "list.pause", ["space"], LIST_KEYS, "pause or resume the live list", "pause";
    Action::Left, "nav.left", ["left", "h"], DETAIL_KEYS, "fold", "fold";
    Action::Right, "nav.right", ["right", "l"], DETAIL_KEYS, "unfold";
    Action::Zoom, "detail.zoom", ["z"], DETAIL_KEYS, "zoom the pane over the whole body", "zoom";
    Action::NextTab, "detail.next-tab", ["]", "tab"], DETAIL_KEYS, "next tab of the pane", "tab";
    Action::PreviousTab, "detail.previous-tab", ["[", "shift-tab"], DETAIL_KEYS, "previous tab of the pane";
    Action::Evaluate, "trace.evaluate", ["c"], TRACE_KEYS, "run an evaluation of this trace" => Role::Member;
    Action::Why, "trace.why", ["w"], DETAIL_EXTRA_KEYS, "why the project's rules judged this trace, or did not";
    Action::TraceEvals, "trace.evals", ["g e"], TRACE_KEYS, "the evaluations of this trace, on screen 2";
    Action::TraceApproval, "trace.approval", ["g a"], TRACE_KEYS, "the action on this trace that waits for a decision, on screen 5";
    Action::RemediationDiff, "detail.remediation", ["="], DETAIL_EXTRA_KEYS, "the output of the remediated span compared with the original output, on screen 5";
    Action::NextTrace, "detail.next-trace", ["J"], DETAIL_EXTRA_KEYS, "next trace of the list";
    Action::PreviousTrace, "detail.previous-trace", ["K"], DETAIL_EXTRA_KEYS, "previous trace of the list";
    Action::Split, "detail.split", ["\\"], DETAIL_EXTRA_KEYS, "one pane or two, where the width allows two";
    Action::TextMode, "detail.text-mode", ["t"], DETAIL_EXTRA_KEYS, "show JSON as a tree or as plain text";
    Action::Sort, "list.sort", ["s"], SORT_KEYS, "sort the loaded rows by the next column", "sort";
    Action::WidenTime, "list.widen", ["w"], WIDEN_KEYS, "drop the filter's time bounds";
    Action::Bottom, "list.bottom", ["end"], END_KEYS, "to the last loaded row";
    Action::Follow, "list.follow", ["G"], END_KEYS, "to the newest, and follow";
};
