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
use crate::{
    change::ExcerptLine,
    shell::{Shell, notice::describe},
};

/// Maximum number of lines of a text that an excerpt shows. Facts about the decision are never left out.
const MAX_TEXT_LINES: usize = 300;
/// Maximum bytes of an output that an excerpt shows.
const MAX_OUTPUT_BYTES: usize = 2 * 1_024;

/// Returns what a decision about a row changes, a line each.
pub fn lines(
    approvals: &Approvals,
    shell: &Shell,
    row: &ApprovalRow<'_>,
    decision: Decision,
) -> Vec<ExcerptLine> {
    match row {
        ApprovalRow::Deployment(it) => deployment_lines(approvals, it, decision),
        ApprovalRow::Action(it) => action_lines(approvals, shell, it),
    }
}

/// Returns the first lines of a text, and how many are left out.
fn limited(mut lines: Vec<ExcerptLine>) -> Vec<ExcerptLine> {
    let more = lines.len().saturating_sub(MAX_TEXT_LINES);
    if more > 0 {
        lines.truncate(MAX_TEXT_LINES);
        let are = if more == 1 { "line is" } else { "lines are" };
        lines.push(ExcerptLine::sentence(Tone::Warn, format!("({more} more {are} not shown here)")));
    }
    lines
}

fn deployment_lines(approvals: &Approvals, it: &PromptDeployment, decision: Decision) -> Vec<ExcerptLine> {
    let sentence = |tone, text: String| ExcerptLine::sentence(tone, text);
    let baseline = it.baseline_id.and_then(|id| approvals.deployment(id));
    let returns = decision == Decision::RollBack || (decision == Decision::Reject && it.status.is_served());
    let failure = it.baseline_id.and_then(|id| approvals.baselines.error(id));
    let other = baseline.map_or("", |baseline| baseline.template.as_str());
    let (old, new) = if returns { (it.template.as_str(), other) } else { (other, it.template.as_str()) };
    // The diff comes first, because a small terminal has room for its first lines only.
    let mut lines = Vec::new();
    lines.extend(
        failure.map(|error| sentence(Tone::Warn, format!("the baseline can't be read: {}", describe(error)))),
    );
    let texts = TextDiff::new(old, new);
    let mut changed = Vec::new();
    for block in &texts.blocks {
        if let DiffBlock::Changed { old, new } = block {
            changed.extend(old.iter().map(|line| ExcerptLine::removed(joined(line))));
            changed.extend(new.iter().map(|line| ExcerptLine::added(joined(line))));
        }
    }
    lines.extend(limited(changed));
    if texts.is_cut {
        lines.push(sentence(Tone::Warn, "only the first 256 KiB of the templates are compared".to_owned()));
    }
    if old == new {
        lines.push(sentence(Tone::Dim, "the templates are equal".to_owned()));
    }
    let model = |it: &PromptDeployment| it.model.clone().unwrap_or_else(|| "the application's".to_owned());
    if let Some(baseline) = baseline.filter(|baseline| baseline.model != it.model) {
        let (from, to) = if returns { (it, baseline) } else { (baseline, it) };
        lines.push(sentence(Tone::Warn, format!("model: {} to {}", model(from), model(to))));
    }
    lines.push(match baseline {
        Some(baseline) => sentence(Tone::Dim, format!("compared with the baseline v{}", baseline.version)),
        None if failure.is_some() => {
            let how = if returns { "removed" } else { "new" };
            sentence(Tone::Dim, format!("the whole template is shown as {how}"))
        }
        // A version without a baseline replaced another one if that was shipped after its creation.
        None if returns => sentence(
            Tone::Warn,
            "if no version was shipped before it, the prompt has no served version from then on, and applications \
             get 404"
                .to_owned(),
        ),
        None => sentence(Tone::Dim, "no version was shipped to compare with".to_owned()),
    });
    lines.extend(it.ab.iter().map(|test| sentence(Tone::Strong, evidence(test))));
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

fn action_lines(approvals: &Approvals, shell: &Shell, it: &ControlAction) -> Vec<ExcerptLine> {
    let mut lines = vec![ExcerptLine::sentence(Tone::Strong, format!("executes {}", requested_type(it)))];
    if let Some(reason) = it.metadata.escalation_reason {
        let count = it.metadata.retry_count.map(|count| format!(", {count} before it")).unwrap_or_default();
        lines.push(ExcerptLine::sentence(Tone::Warn, format!("{reason}{count}")));
    }
    let config = &it.action_config;
    let fields = [
        ("model", config.model.clone()),
        ("temperature", config.temperature.map(|it| it.to_string())),
        ("callback", config.callback_url.clone()),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?)));
    lines.extend(fields.map(|text| ExcerptLine::sentence(Tone::Plain, text)));
    let texts = [
        ("appended to the system message:", &config.system_suffix),
        ("the new system message:", &config.prompt_template),
    ];
    for (name, text) in texts {
        let Some(text) = text else { continue };
        lines.push(ExcerptLine::sentence(Tone::Dim, name));
        lines.extend(limited(text.lines().map(ExcerptLine::added).collect()));
    }
    if let Some(span) = approvals.originals.read(it.id).and_then(|it| it.span.as_ref()) {
        let output = span.output.as_deref().or(span.error.as_deref()).unwrap_or(shell.theme.glyphs.none);
        let shown = &output[..output.floor_char_boundary(MAX_OUTPUT_BYTES)];
        lines
            .push(ExcerptLine::sentence(Tone::Dim, format!("the output of {} that it replaces:", span.name)));
        lines.extend(limited(shown.lines().map(ExcerptLine::quoted).collect()));
        if shown.len() < output.len() {
            lines.push(ExcerptLine::sentence(
                Tone::Warn,
                "(only the first 2 KiB of the output are shown here)",
            ));
        }
    }
    lines
}
