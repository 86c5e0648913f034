//! Draws the selected evaluation: its score, its reasoning, or its error.

use api::eval::{Evaluation, EvaluationStatus};
use ratatui::{buffer::Buffer, layout::Rect};

use super::{remediated, rule};
use crate::screen::evals::keys::EVALS_SCOPE;
use crate::{
    evaluations::{is_unfinished, score},
    keymap::Action,
    layout,
    screen::evals::state::Evals,
    shell::Shell,
    theme::Tone,
    widgets::table::{Pieces, packed, put},
};
use present::{
    format::{elapsed, latency, moment, money, short_id, thousands},
    text::{clean, wrap},
};

/// Maximum number of bytes of a reasoning or an error that are laid out.
const MAX_SHOWN_BYTES: usize = 64 * 1024;
/// Seconds after which the wait for a worker is explained.
const LATE_AFTER_SECS: i64 = 30;

/// Draws the pane below the list.
pub fn draw(evals: &Evals, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let theme = &shell.theme;
    let cols = usize::from(area.width);
    let Some(it) = evals.current() else { return };
    put(buffer, area, 0, &title(evals, shell, it, cols).line(theme, false));
    let room = usize::from(area.height.saturating_sub(1));
    let lines = lines(evals, shell, it, cols, false);
    let cut = lines.len() > room;
    let more = format!("  {} {} shows all", theme.glyphs.ellipsis, shell.key(EVALS_SCOPE, Action::Open));
    for (at, line) in lines.into_iter().take(room).enumerate() {
        let last = cut && at + 1 == room;
        let line = if last { Pieces::new().add(Tone::Dim, more.clone()) } else { line };
        put(buffer, area, 1 + at, &line.cut(cols, theme).line(theme, false));
    }
}

/// Draws the evaluation over the whole body.
pub fn zoomed(evals: &Evals, shell: &Shell, buffer: &mut Buffer, area: Rect) {
    let (theme, cols) = (&shell.theme, usize::from(area.width));
    let (Some(it), Some(top)) = (evals.current(), evals.zoom) else { return };
    put(buffer, area, 0, &title(evals, shell, it, cols).line(theme, false));
    let room = usize::from(area.height.saturating_sub(1));
    let lines = lines(evals, shell, it, cols, true);
    let top = top.min(lines.len().saturating_sub(room));
    for (at, line) in lines.into_iter().skip(top).take(room).enumerate() {
        put(buffer, area, 1 + at, &line.cut(cols, theme).line(theme, false));
    }
}

/// Returns the number of lines of the selected evaluation in the whole body, for scrolling.
pub fn len(evals: &Evals, shell: &Shell) -> usize {
    let cols = usize::from(layout::frame(shell.size).body.width);
    evals.current().map_or(0, |it| lines(evals, shell, it, cols, true).len())
}

fn title(evals: &Evals, shell: &Shell, it: &Evaluation, cols: usize) -> Pieces {
    let dot = shell.theme.glyphs.dot;
    let context = if remediated(it) { format!(" {dot} remediation") } else { String::new() };
    let title = format!("{} on {}{context}", it.metric_name, short_id(it.trace_id));
    let zoomed = evals.zoom.is_some();
    let key = |action| shell.key(EVALS_SCOPE, action);
    let trace = key(Action::OpenTrace);
    let back = if zoomed { format!("{} back", key(Action::Back)) } else { String::new() };
    let trace = match (it.original_evaluation_id, cols >= 110) {
        (Some(_), true) => format!("{} baseline {dot} {trace}", key(Action::Baseline)),
        _ => trace,
    };
    let note = match (cols >= 76, zoomed) {
        (true, true) => format!("{trace} trace {dot} {back}"),
        (true, false) => format!("{trace} trace {dot} {} all", key(Action::Open)),
        (false, _) => back,
    };
    rule(&title, &note, cols, &shell.theme)
}

fn lines(evals: &Evals, shell: &Shell, it: &Evaluation, cols: usize, whole: bool) -> Vec<Pieces> {
    let glyphs = &shell.theme.glyphs;
    let (mark, tone) = evals.standing(it).glyph_and_tone(glyphs);
    let field = |line: Pieces, name: &str, value: String| {
        line.add(Tone::Field, format!("{name} ")).plain(format!("{}   ", clean(&value)))
    };
    let start = || Pieces::new().plain("  ");
    let shown = it.score.map_or_else(|| glyphs.none.to_owned(), score);
    let label = it.label.clone().unwrap_or_else(|| it.status.to_string());
    let mut first =
        start().add(Tone::Field, "score ").add(tone, format!("{shown} {mark} {}   ", clean(&label)));
    if let Some(baseline) = evals.baseline(it) {
        first = field(first, "baseline", score(baseline));
    }
    let rule = it.rule_id.and_then(|id| evals.rules.get(id));
    if let Some((_, drop)) = evals.below(it) {
        first = first.add(Tone::Field, "drop ").add(Tone::Bad, format!("{drop:.2}   "));
        let least = rule.map(|rule| rule.min_score_drop.unwrap_or(0.0));
        if let Some(least) = least {
            first = field(first, "rule min_score_drop", format!("{least:.2}"));
        }
    }
    let tier = it.model_tier.map(|tier| format!(", {tier}")).unwrap_or_default();
    let by = format!("{} ({}{tier})", it.evaluator_version, it.evaluator_type);
    let mut second = vec![("by", by)];
    if let Some(model) = &it.judge_model {
        second.push(("judge", model.clone()));
    }
    if let Some(cost) = it.cost {
        second.push(("cost", money(cost)));
    }
    let tokens = it.prompt_tokens.zip(it.completion_tokens);
    if let (Some((read, written)), true) = (tokens, cols >= 100) {
        second.push(("tokens", format!("{}+{}", thousands(read), thousands(written))));
    }
    let mut third = vec![match it.rule_id {
        Some(id) => ("rule", short_id(id)),
        None if it.bulk_id.is_some() => ("requested", "in bulk".to_owned()),
        None if it.evaluator_version == "external" => ("sent", "by the application".to_owned()),
        None => ("requested", "by hand".to_owned()),
    }];
    third.push(("at", moment(shell.zone, it.created_at, shell.now)));
    if let Some(done) = it.completed_at {
        let took = (done.micros() - it.created_at.micros()) / 1_000;
        third.push(("took", latency(took)));
    }
    if let Some(span) = it.span_id {
        third.push(("span", short_id(span)));
    }
    let mut lines = vec![first.trimmed()];
    // In the pane, the reasoning is more important than the last fields.
    let most = if whole { usize::MAX } else { 1 };
    for fields in [second, third] {
        lines.extend(packed(&fields, cols).into_iter().take(most));
    }
    if whole {
        let ids = [
            ("id", Some(it.id)),
            ("trace", Some(it.trace_id)),
            ("span", it.span_id),
            ("rule", it.rule_id),
            ("bulk run", it.bulk_id),
            ("baseline", it.original_evaluation_id),
            ("action", it.source_action_id),
        ];
        for (name, id) in ids {
            if let Some(id) = id {
                lines.push(start().add(Tone::Field, format!("{name:<9} ")).plain(id.to_string()));
            }
        }
        if let Some((read, written)) = tokens.filter(|_| cols < 100) {
            let text = format!("{} read, {} written", thousands(read), thousands(written));
            lines.push(start().add(Tone::Field, format!("{:<9} ", "tokens")).plain(text));
        }
        lines.push(Pieces::new());
    }
    lines.extend(words(shell, it, cols));
    lines
}

/// Returns the reasoning, the error, or the cause of the wait.
fn words(shell: &Shell, it: &Evaluation, cols: usize) -> Vec<Pieces> {
    let mut lines = Vec::new();
    let mut add = |tone: Tone, text: &str| {
        let text = &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)];
        for line in text.lines() {
            let parts = wrap(&clean(line), cols.saturating_sub(4));
            lines.extend(parts.into_iter().map(|part| Pieces::new().plain("  ").add(tone, part)));
        }
    };
    if is_unfinished(it) {
        let age = (shell.now.micros() - it.created_at.micros()).max(0) / 1_000_000;
        let age_text = elapsed(age);
        let progress = match it.status {
            EvaluationStatus::Running => format!("A worker has been running it for {age_text}."),
            _ => format!("It has been waiting for a worker for {age_text}."),
        };
        add(Tone::Dim, &progress);
        if age >= LATE_AFTER_SECS && it.status == EvaluationStatus::Pending {
            add(
                Tone::Warn,
                "Other evaluations may be ahead of it. If none makes progress, start a worker: loupe-server worker.",
            );
        }
    }
    if let Some(error) = &it.error {
        add(Tone::Bad, error);
        if !shell.target.read_only {
            let again = shell.key(EVALS_SCOPE, Action::Evaluate);
            add(Tone::Dim, &format!("{again} requests it again once the cause is fixed."));
        }
    }
    if let Some(reasoning) = &it.reasoning {
        add(Tone::Plain, reasoning);
    } else if it.status == EvaluationStatus::Complete {
        add(Tone::Dim, "(no reasoning)");
    }
    lines
}
