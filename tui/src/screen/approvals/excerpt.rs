//! What a decision changes, for its confirmation: the changed lines of a template, or the action that is executed.

use api::{
    control::ControlAction,
    deployment::{PromptDeployment, PromptTest},
};
use present::{
    Tone,
    diff::{DiffBlock, DiffLine, TextDiff},
};

use super::{
    change::Decision,
    queue::{ApprovalRow, requested_type},
    state::Approvals,
    view::{score, signed},
};
use crate::shell::{Shell, notice::describe};

/// Maximum number of changed lines of a template that an excerpt shows.
const MAX_CHANGED_LINES: usize = 300;
/// Maximum number of lines about an action that an excerpt shows.
const MAX_ACTION_LINES: usize = 300;
/// Maximum bytes of a text within an excerpt that is not a template.
const MAX_TEXT_BYTES: usize = 2 * 1_024;

/// Returns what a decision about a row changes, a line each.
pub fn lines(
    approvals: &Approvals,
    shell: &Shell,
    row: &ApprovalRow<'_>,
    decision: Decision,
) -> Vec<(Tone, String)> {
    match row {
        ApprovalRow::Deployment(it) => deployment_lines(approvals, it, decision),
        ApprovalRow::Action(it) => limited(action_lines(approvals, shell, it), MAX_ACTION_LINES),
    }
}

/// Returns the first lines, and how many are left out.
fn limited(mut lines: Vec<(Tone, String)>, maximum: usize) -> Vec<(Tone, String)> {
    if lines.len() > maximum {
        let more = lines.len() - maximum;
        lines.truncate(maximum);
        lines.push((Tone::Dim, format!("{more} more lines are not shown here")));
    }
    lines
}

fn deployment_lines(approvals: &Approvals, it: &PromptDeployment, decision: Decision) -> Vec<(Tone, String)> {
    let baseline = it.baseline_id.and_then(|id| approvals.deployment(id));
    let returns = decision == Decision::RollBack || (decision == Decision::Reject && it.status.is_served());
    let failure = it.baseline_id.and_then(|id| approvals.baselines.error(id));
    let other = baseline.map_or("", |baseline| baseline.template.as_str());
    let (old, new) = if returns { (it.template.as_str(), other) } else { (other, it.template.as_str()) };
    // The diff comes first, because a small terminal has room for its first lines only.
    let mut lines = Vec::new();
    lines.extend(
        failure.map(|error| (Tone::Warn, format!("the baseline can't be read: {}", describe(error)))),
    );
    let texts = TextDiff::new(old, new);
    let mut changed = Vec::new();
    for block in &texts.blocks {
        if let DiffBlock::Changed { old, new } = block {
            changed.extend(old.iter().map(|line| (Tone::Bad, format!("-{}", joined(line)))));
            changed.extend(new.iter().map(|line| (Tone::Good, format!("+{}", joined(line)))));
        }
    }
    lines.extend(limited(changed, MAX_CHANGED_LINES));
    if texts.is_cut {
        lines.push((Tone::Warn, "only the first 256 KiB of the templates are compared".to_owned()));
    }
    if old == new {
        lines.push((Tone::Dim, "the templates are equal".to_owned()));
    }
    let model = |it: &PromptDeployment| it.model.clone().unwrap_or_else(|| "the application's".to_owned());
    if let Some(baseline) = baseline.filter(|baseline| baseline.model != it.model) {
        let (from, to) = if returns { (it, baseline) } else { (baseline, it) };
        lines.push((Tone::Warn, format!("model: {} to {}", model(from), model(to))));
    }
    lines.push(match baseline {
        Some(baseline) => (Tone::Dim, format!("compared with the baseline v{}", baseline.version)),
        None if failure.is_some() => {
            let how = if returns { "removed" } else { "new" };
            (Tone::Dim, format!("the whole template is shown as {how}"))
        }
        None if returns => {
            (Tone::Warn, "no version was shipped before it: applications get 404 from then on".to_owned())
        }
        None => (Tone::Dim, "no version was shipped to compare with".to_owned()),
    });
    lines.extend(it.ab.iter().map(|test| (Tone::Strong, evidence(test))));
    lines
}

fn joined(line: &DiffLine<'_>) -> String {
    line.iter().map(|span| span.text).collect()
}

/// Returns the result of a test in one line.
fn evidence(test: &PromptTest) -> String {
    let mut parts = vec![test.metric_name.clone()];
    parts.extend(test.effect.map(|it| format!("effect {}", signed(it))));
    parts.extend(test.lower_bound.map(|it| format!("at least {}", signed(it))));
    parts.extend(test.p_value.map(|it| format!("p {}", score(it))));
    parts.push(format!("n {} and {}", test.baseline.n, test.candidate.n));
    parts.join("  ")
}

fn action_lines(approvals: &Approvals, shell: &Shell, it: &ControlAction) -> Vec<(Tone, String)> {
    let mut lines = vec![(Tone::Strong, format!("executes {}", requested_type(it)))];
    if let Some(reason) = it.metadata.escalation_reason {
        let count = it.metadata.retry_count.map(|count| format!(", {count} before it")).unwrap_or_default();
        lines.push((Tone::Warn, format!("{reason}{count}")));
    }
    let config = &it.action_config;
    let fields = [
        ("model", config.model.clone()),
        ("temperature", config.temperature.map(|it| it.to_string())),
        ("callback", config.callback_url.clone()),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?)));
    lines.extend(fields.map(|text| (Tone::Plain, text)));
    let texts = [
        ("+ to the system message: ", &config.system_suffix),
        ("+ as the system message: ", &config.prompt_template),
    ];
    for (name, text) in texts {
        for (at, line) in text.as_deref().unwrap_or_default().lines().enumerate() {
            lines.push((Tone::Good, format!("{}{line}", if at == 0 { name } else { "+ " })));
        }
    }
    let original = approvals.originals.read(it.id).and_then(|it| it.span.as_ref());
    if let Some(span) = original {
        let output = span.output.as_deref().or(span.error.as_deref()).unwrap_or(shell.theme.glyphs.none);
        let output = &output[..output.floor_char_boundary(MAX_TEXT_BYTES)];
        lines.push((Tone::Dim, format!("the output of {} that it replaces:", span.name)));
        lines.extend(output.lines().map(|line| (Tone::Plain, line.to_owned())));
    }
    lines
}
