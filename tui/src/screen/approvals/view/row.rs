//! The pane of the selected row: a deployment with its test and diff, or an action with its reason and original output.

use api::{
    Timestamp,
    control::{ActionStatus, ControlAction},
    deployment::{ArmStatistics, DeploymentStatus, PromptDeployment, PromptTest, TestMode},
};
use present::{
    Tone,
    format::{clock_minute, latency, money, short_id, thousands},
    text::{clean, wrap},
};

use super::{score, signed};
use crate::{
    screen::approvals::{
        queue::{ApprovalRow, requested_type},
        state::Approvals,
    },
    shell::{Shell, notice::describe},
    widgets::table::{Pieces, packed},
};

/// Maximum bytes of a text that are laid out.
const MAX_SHOWN_BYTES: usize = 64 * 1_024;

/// Returns the lines of a row above its diff.
pub fn lines(approvals: &Approvals, shell: &Shell, row: &ApprovalRow<'_>, cols: usize) -> Vec<Pieces> {
    match row {
        ApprovalRow::Deployment(it) => deployment_lines(approvals, shell, it, cols),
        ApprovalRow::Action(it) => action_lines(approvals, shell, it, cols),
    }
}

/// Returns a text, wrapped and indented.
pub fn paragraph(tone: Tone, text: &str, cols: usize) -> Vec<Pieces> {
    let text = &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)];
    let wrapped = text.lines().flat_map(|line| wrap(&clean(line), cols.saturating_sub(4)));
    wrapped.map(|part| Pieces::new().plain("  ").add(tone, part)).collect()
}

fn deployment_lines(approvals: &Approvals, shell: &Shell, it: &PromptDeployment, cols: usize) -> Vec<Pieces> {
    let mut fields = Vec::new();
    // The tab says that a row waits for approval.
    if it.status != DeploymentStatus::AbPassed {
        fields.push(("status".to_owned(), it.status.to_string()));
    }
    fields.extend(it.model.iter().map(|model| ("model".to_owned(), model.clone())));
    fields.extend(decision(shell, it.decided_by.as_deref(), it.decided_at));
    if let Some(test) = &it.ab {
        let baseline = it.baseline_id.and_then(|id| approvals.deployment(id)).map(|it| it.version);
        fields.extend(test_fields(test, it, baseline));
    }
    fields.extend(it.created_by.iter().map(|by| ("created by".to_owned(), by.clone())));
    let mut lines = packed_fields(fields, cols);
    for (tone, text) in [(Tone::Bad, &it.reason), (Tone::Plain, &it.decision_note)] {
        lines.extend(text.iter().flat_map(|text| paragraph(tone, text, cols)));
    }
    if let Some(watch) = &it.watch {
        let effect = watch.effect.map_or_else(|| shell.theme.glyphs.none.to_owned(), signed);
        let current = arm(&watch.current);
        let windows = thousands(watch.windows);
        lines.extend(packed(
            &[("watched windows", windows), ("effect since shipping", effect), ("current window", current)],
            cols,
        ));
    }
    lines
}

/// Lays fields with computed names out.
fn packed_fields(fields: Vec<(String, String)>, cols: usize) -> Vec<Pieces> {
    let fields: Vec<(&str, String)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    packed(&fields, cols)
}

/// Returns the statistics of a test: the arms, then the result.
fn test_fields(test: &PromptTest, it: &PromptDeployment, baseline: Option<i32>) -> Vec<(String, String)> {
    let old = baseline.map_or_else(|| "baseline".to_owned(), |version| format!("v{version}"));
    let mode = match it.mode {
        TestMode::Live => "live test",
        TestMode::Replay => "replay test",
    };
    let mut fields = vec![
        (mode.to_owned(), test.metric_name.clone()),
        (old, arm(&test.baseline)),
        (format!("v{}", it.version), arm(&test.candidate)),
    ];
    let needed = format!("above {}", signed(-test.max_regression));
    let bound = |value: f64| format!("{} at alpha {}, needed {needed}", signed(value), test.alpha);
    fields.extend(test.effect.map(|it| ("effect".to_owned(), signed(it))));
    fields.extend(test.lower_bound.map(|it| ("lower bound".to_owned(), bound(it))));
    fields.extend(test.p_value.map(|it| ("p".to_owned(), score(it))));
    fields
}

fn arm(it: &ArmStatistics) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), score);
    format!("n {}, mean {}, stddev {}", thousands(it.n), number(it.mean), number(it.stddev))
}

/// Returns the field of a decision.
fn decision(shell: &Shell, by: Option<&str>, at: Option<Timestamp>) -> Option<(String, String)> {
    let at = at.map(|at| format!(" {}", clock_minute(shell.zone, at, shell.now))).unwrap_or_default();
    by.map(|by| ("decided by".to_owned(), format!("{by}{at}")))
}

fn action_lines(approvals: &Approvals, shell: &Shell, it: &ControlAction, cols: usize) -> Vec<Pieces> {
    let mut lines = Vec::new();
    let reason = match (it.metadata.escalation_reason, it.status) {
        (Some(reason), _) => Some(reason.to_string()),
        (None, ActionStatus::PendingApproval) => Some("its policy requires approval".to_owned()),
        (None, _) => None,
    };
    let mut fields = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        fields.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("why", reason);
    add("retry_count", it.metadata.retry_count.map(|count| count.to_string()));
    add("executes", Some(requested_type(it).to_string()));
    add("policy", Some(policy(approvals, it)));
    add("trigger", it.metadata.trigger.map(|trigger| trigger.to_string()));
    add("requested by", it.requested_by.clone());
    if it.status == ActionStatus::PendingApproval {
        add("waits since", Some(clock_minute(shell.zone, it.created_at, shell.now)));
    } else {
        add("status", Some(it.status.to_string()));
    }
    add("calls", (it.attempts > 0).then(|| it.attempts.to_string()));
    add("cost", it.cost.map(money));
    fields.extend(decision(shell, it.decided_by.as_deref(), it.decided_at));
    lines.extend(packed_fields(fields, cols));
    lines.extend(it.error.iter().flat_map(|error| paragraph(Tone::Bad, error, cols)));
    let config = &it.action_config;
    let mut fields = Vec::new();
    fields.extend(config.model.clone().map(|model| ("model", model)));
    fields.extend(config.temperature.map(|it| ("temperature", it.to_string())));
    fields.extend(config.callback_url.clone().map(|url| ("callback", url)));
    lines.extend(packed(&fields, cols));
    let texts = [
        ("appended to the system message", &config.system_suffix),
        ("the new system message", &config.prompt_template),
    ];
    for (title, text) in texts {
        if let Some(text) = text {
            lines.push(Pieces::new().plain("  ").add(Tone::Field, title));
            lines.extend(paragraph(Tone::Text, text, cols));
        }
    }
    lines.extend(original_lines(approvals, shell, it, cols));
    lines
}

/// Returns the policy with its limits.
fn policy(approvals: &Approvals, it: &ControlAction) -> String {
    let Some(id) = it.policy_id else { return "none, default limits".to_owned() };
    match approvals.policies.read(id) {
        Some(policy) => format!(
            "{} (max_retry_depth {}, max_cascade_depth {})",
            policy.name, policy.max_retry_depth, policy.max_cascade_depth
        ),
        None => short_id(id),
    }
}

fn original_lines(approvals: &Approvals, shell: &Shell, it: &ControlAction, cols: usize) -> Vec<Pieces> {
    let glyphs = &shell.theme.glyphs;
    let note = |tone, text: &str| vec![Pieces::new().plain("  ").add(tone, clean(text).into_owned())];
    if it.span_id.is_none() {
        return note(Tone::Dim, "the trace has no span whose request could be repeated");
    }
    let Some(related) = approvals.originals.get(it.id) else {
        return note(Tone::Dim, &format!("loading the original output{}", glyphs.ellipsis));
    };
    let span = match &related.result {
        Ok(original) => original.span.as_ref(),
        Err(error) => return paragraph(Tone::Bad, &format!("the trace: {}", describe(error)), cols),
    };
    let Some(span) = span else {
        return note(Tone::Dim, "the original span is not among the first spans of the trace");
    };
    let mut facts = vec![format!("original output of {}", span.name)];
    facts.extend(span.model.clone());
    facts.extend(span.latency_ms.map(latency));
    let title = clean(&facts.join("  ")).into_owned();
    let mut lines = vec![Pieces::new().plain("  ").add(Tone::Field, title)];
    lines.extend(span.error.iter().flat_map(|error| paragraph(Tone::Bad, error, cols)));
    match span.output.as_deref() {
        Some(output) => lines.extend(paragraph(Tone::Text, output, cols)),
        None => lines.push(Pieces::new().plain("  ").add(Tone::Dim, "(no output)")),
    }
    lines
}
