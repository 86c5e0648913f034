//! The remediation diff of an action: scores, lengths and latencies above the diff of the outputs.

use api::control::{DiffResponse, EvalDelta, RemediationDiff};
use present::{
    Glyphs, Tone,
    format::{latency, thousands},
    text::{clean, fit, fit_right},
};
use uuid::Uuid;

use super::{row::paragraph, score, signed};
use crate::{
    keymap::Action,
    screen::approvals::{keys::APPROVALS_SCOPE, state::Approvals},
    shell::{Shell, notice, notice::describe},
    widgets::table::{Pieces, packed},
};

/// Columns of a score.
const SCORE_COLS: usize = 8;

/// Returns the lines above the diff of the outputs, or the progress of the evaluations.
pub fn lines(approvals: &Approvals, shell: &Shell, action: Uuid, cols: usize) -> Vec<Pieces> {
    let glyphs = &shell.theme.glyphs;
    let plain = |tone, text: String| Pieces::new().plain("  ").add(tone, clean(&text).into_owned());
    if !shell.has_session() {
        let sentence = "Remediation diffs need a session token; there is only an API key.";
        let lines = notice::session_needed(shell, sentence);
        return lines.into_iter().map(|(tone, text)| plain(tone, text)).collect();
    }
    let Some(state) = approvals.remediations.get(action) else { return Vec::new() };
    let wait = state.next.map(|at| format!(", next in {}s", shell.seconds_until(at))).unwrap_or_default();
    if let Some(error) = &state.error {
        let mut lines = paragraph(Tone::Bad, &format!("{}{wait}", describe(error)), cols);
        let advice = match error.code.as_deref() {
            Some("invalid_state") => vec!["Only an action that was executed has a diff.".to_owned()],
            _ => notice::advice(shell, error),
        };
        lines.extend(advice.into_iter().flat_map(|text| paragraph(Tone::Plain, &text, cols)));
        let again = shell.key(APPROVALS_SCOPE, Action::Refresh);
        lines.push(plain(Tone::Dim, format!("{again} requests the diff again.")));
        // The diff that was complete before stays.
        lines.extend(state.diff().map(|diff| complete_lines(diff, glyphs, cols)).unwrap_or_default());
        return lines;
    }
    match &state.response {
        None => vec![plain(Tone::Dim, format!("loading{}", glyphs.ellipsis))],
        Some(DiffResponse::Evaluating(progress)) => {
            let text = format!(
                "evaluation still running: {} of {} done, checked {}x{wait}",
                progress.completed, progress.total, state.checks
            );
            let mut lines = paragraph(Tone::Warn, &text, cols);
            lines.push(plain(Tone::Dim, "The diff is shown here as soon as it is complete.".to_owned()));
            lines
        }
        Some(DiffResponse::Complete(diff)) => complete_lines(diff, glyphs, cols),
    }
}

fn complete_lines(diff: &RemediationDiff, glyphs: &Glyphs, cols: usize) -> Vec<Pieces> {
    let none = || glyphs.none.to_owned();
    let sign = |value: i64| if value < 0 { "-" } else { "+" };
    let latency_delta = diff
        .latency_delta_ms
        .map(|ms| format!("{}{}", sign(ms), latency(i64::try_from(ms.unsigned_abs()).unwrap_or(i64::MAX))));
    let tokens =
        diff.token_length_delta.map(|count| format!("{}{}", sign(count), thousands(count.unsigned_abs())));
    let mut lines = Vec::new();
    if !diff.eval_deltas.is_empty() {
        let name = cols.saturating_sub(3 * (SCORE_COLS + 1) + 16).clamp(12, 32);
        let head = format!("  {}{}", fit("METRIC", name, glyphs), heads(["BEFORE", "AFTER", "DELTA"]));
        lines.push(Pieces::new().add(Tone::Dim, head));
        lines.extend(diff.eval_deltas.iter().map(|it| delta_line(it, name, glyphs)));
    }
    lines.extend(packed(
        &[
            ("output tokens", tokens.unwrap_or_else(none)),
            ("latency", latency_delta.unwrap_or_else(none)),
            ("embedding similarity", diff.embedding_similarity.map_or_else(none, score)),
        ],
        cols,
    ));
    lines
}

fn heads(names: [&str; 3]) -> String {
    names.iter().map(|name| format!(" {name:>SCORE_COLS$}")).collect()
}

fn delta_line(it: &EvalDelta, name: usize, glyphs: &Glyphs) -> Pieces {
    let number = |value: Option<f64>| value.map_or_else(|| glyphs.none.to_owned(), score);
    let right = |text: &str| format!(" {}", fit_right(text, SCORE_COLS, glyphs));
    let delta = it.delta.map_or_else(|| glyphs.none.to_owned(), signed);
    let (tone, mark) = match (it.regressed, it.delta) {
        (true, _) => (Tone::Bad, format!("  {} regression", glyphs.fall)),
        (false, Some(delta)) if delta >= 0.0 => (Tone::Good, format!("  {}", glyphs.ok)),
        (false, Some(_)) => (Tone::Warn, "  lower".to_owned()),
        (false, None) => (Tone::Dim, String::new()),
    };
    Pieces::new()
        .plain(format!("  {}", fit(&it.metric_name, name, glyphs)))
        .add(
            Tone::Number,
            format!("{}{}", right(&number(it.original_score)), right(&number(it.remediated_score))),
        )
        .add(tone, format!("{}{mark}", right(&delta)))
}
