//! The keys of Failures.

use api::Role;

use super::SCREEN_DIGIT;
use crate::keymap::{
    Action, Binding, Group, Scope, bindings,
    groups::{
        COPY_CURL_KEYS, COPY_KEYS, COPY_TEXT_KEYS, END_STEP_KEYS, EXPORT_KEYS, OPEN_KEYS, REFRESH_KEYS,
        SCREEN_KEYS, SCREEN_STEP_KEYS,
    },
};

/// Resolves the cluster, or opens it again.
pub const RESOLVE_CLUSTER: Action = Action::Custom("failures.resolve");
/// Mutes the cluster, or opens it again.
pub const MUTE_CLUSTER: Action = Action::Custom("failures.mute");
/// Shows all anomalies.
pub const SHOW_ANOMALIES: Action = Action::Custom("failures.anomalies");
/// Shows bad feedback.
pub const SHOW_FEEDBACK: Action = Action::Custom("failures.feedback");

/// The clusters.
pub const CLUSTER_KEYS: Group = Group { name: "clusters", position: 10 };
/// The trace of a row.
pub const FAILED_TRACE_KEYS: Group = Group { name: "failed traces", position: 8 };
/// The tabs of the screen.
pub const FAILURE_TAB_KEYS: Group = Group { name: "failures tabs", position: 14 };

/// The clusters.
pub const CLUSTERS_SCOPE: Scope = Scope::screen(
    "Failures: clusters",
    &[
        OPEN_KEYS,
        FAILED_TRACE_KEYS,
        CLUSTER_KEYS,
        FAILURE_TAB_KEYS,
        COPY_KEYS,
        COPY_CURL_KEYS,
        EXPORT_KEYS,
        REFRESH_KEYS,
        END_STEP_KEYS,
        SCREEN_STEP_KEYS,
    ],
);
/// The failures of a cluster.
pub const EVENTS_SCOPE: Scope = Scope::screen(
    "Failures: failures of a cluster",
    &[
        OPEN_KEYS,
        FAILED_TRACE_KEYS,
        COPY_KEYS,
        COPY_TEXT_KEYS,
        COPY_CURL_KEYS,
        EXPORT_KEYS,
        REFRESH_KEYS,
        END_STEP_KEYS,
        SCREEN_STEP_KEYS,
    ],
);
/// The anomalies.
pub const ANOMALIES_SCOPE: Scope = Scope::screen(
    "Failures: anomalies",
    &[
        OPEN_KEYS,
        FAILURE_TAB_KEYS,
        COPY_KEYS,
        COPY_CURL_KEYS,
        EXPORT_KEYS,
        REFRESH_KEYS,
        END_STEP_KEYS,
        SCREEN_STEP_KEYS,
    ],
);
/// Bad feedback.
pub const FEEDBACK_SCOPE: Scope = Scope::screen(
    "Failures: feedback",
    &[
        OPEN_KEYS,
        FAILED_TRACE_KEYS,
        FAILURE_TAB_KEYS,
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
pub const SCREEN_SCOPES: &[Scope] = &[CLUSTERS_SCOPE, EVENTS_SCOPE, ANOMALIES_SCOPE, FEEDBACK_SCOPE];

/// The bindings of the screen.
pub const SCREEN_BINDINGS: &[Binding] = bindings! {
    Action::Screen(SCREEN_DIGIT), "screen.failures", ["4"], SCREEN_KEYS, "Failures";
    Action::OpenTrace, "failures.trace", ["t", "g t"], FAILED_TRACE_KEYS, "open the newest sample trace, or the trace of the row", "trace";
    Action::TraceApproval, "failures.approval", ["g a"], FAILED_TRACE_KEYS, "the action on that trace that waits for a decision, on screen 5";
    RESOLVE_CLUSTER, "failures.resolve", ["x"], CLUSTER_KEYS, "resolve the cluster, or open it again", "resolve" => Role::Member;
    MUTE_CLUSTER, "failures.mute", ["u"], CLUSTER_KEYS, "mute the cluster, or open it again", "mute" => Role::Member;
    Action::EditFilter, "failures.filter", ["/"], CLUSTER_KEYS, "edit the filter; tab completes, up recalls", "filter";
    Action::WidenTime, "failures.widen", ["w"], CLUSTER_KEYS, "drop the filter's time bounds";
    Action::NextTab, "failures.next-tab", ["]", "right"], FAILURE_TAB_KEYS, "next of clusters, anomalies and feedback", "tab";
    Action::PreviousTab, "failures.previous-tab", ["[", "left"], FAILURE_TAB_KEYS, "previous of clusters, anomalies and feedback";
    SHOW_ANOMALIES, "failures.anomalies", ["A"], FAILURE_TAB_KEYS, "all anomalies";
    SHOW_FEEDBACK, "failures.feedback", ["F"], FAILURE_TAB_KEYS, "all bad feedback";
};
