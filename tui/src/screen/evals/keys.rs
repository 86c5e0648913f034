//! The keys of Evals.

use api::Role;

use super::SCREEN_DIGIT;
use crate::keymap::{
    Action, Binding, Group, Scope, bindings,
    groups::{
        COPY_CURL_KEYS, COPY_KEYS, COPY_TEXT_KEYS, END_STEP_KEYS, EXPORT_KEYS, FIND_KEYS, FIND_STEP_KEYS,
        OPEN_KEYS, REFRESH_KEYS, SCREEN_KEYS, SCREEN_STEP_KEYS,
    },
};

/// The evaluations.
pub const EVALUATION_KEYS: Group = Group { name: "evaluations", position: 10 };
/// The rules.
pub const RULE_KEYS: Group = Group { name: "rules", position: 10 };
/// The sections of the screen.
pub const SECTION_KEYS: Group = Group { name: "evals sections", position: 10 };

/// The evaluations.
pub const EVALS_SCOPE: Scope = Scope::screen(
    "Evals: evaluations",
    &[
        OPEN_KEYS,
        EVALUATION_KEYS,
        SECTION_KEYS,
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
/// The rules.
pub const RULES_SCOPE: Scope = Scope::screen(
    "Evals: rules",
    &[
        OPEN_KEYS,
        RULE_KEYS,
        SECTION_KEYS,
        COPY_KEYS,
        COPY_CURL_KEYS,
        EXPORT_KEYS,
        REFRESH_KEYS,
        END_STEP_KEYS,
        SCREEN_STEP_KEYS,
    ],
);

/// The scopes of the screen.
pub const SCREEN_SCOPES: &[Scope] = &[EVALS_SCOPE, RULES_SCOPE];

/// The bindings of the screen.
pub const SCREEN_BINDINGS: &[Binding] = bindings! {
    Action::Screen(SCREEN_DIGIT), "screen.evals", ["2"], SCREEN_KEYS, "Evals";
    Action::Evaluate, "evals.run", ["c"], EVALUATION_KEYS, "run an evaluation, on the trace of this row or another", "run" => Role::Member;
    Action::EditFilter, "evals.filter", ["/"], EVALUATION_KEYS, "edit the filter; tab completes, up recalls", "filter";
    Action::Rules, "evals.rules", ["r"], SECTION_KEYS, "the rules that run evaluations, or the evaluations", "rules";
    Action::OpenTrace, "evals.trace", ["t", "g t"], EVALUATION_KEYS, "go to the trace that was judged", "trace";
    Action::Baseline, "evals.baseline", ["g b"], EVALUATION_KEYS, "go to the baseline that a remediated output is compared with";
    Action::WidenTime, "evals.widen", ["w"], EVALUATION_KEYS, "drop the filter's time bounds";
    Action::NewRule, "rules.create", ["a", "c"], RULE_KEYS, "add a rule that judges new traces", "add" => Role::Member;
    Action::Enable, "rules.enable", ["E"], RULE_KEYS, "enable, disable, or let a paused rule try again", "on/off" => Role::Member;
    Action::DeleteRule, "rules.delete", ["d"], RULE_KEYS, "delete the selected rule, after a question", "delete" => Role::Member;
    Action::TestRule, "rules.test", ["t"], RULE_KEYS, "try the rule on a trace; nothing is stored", "test" => Role::Member;
    Action::Why, "rules.why", ["w"], RULE_KEYS, "why the rule ran on a trace, or did not", "why";
};
