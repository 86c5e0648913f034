//! Display of remediation diffs for terminals.

use present::{diff::TextDiff, format};
use serde_json::Value;

use crate::{
    commands::evals::view::text_member,
    output::{
        Column, View,
        cell::{self, Cell, Style, Tone},
        sheet::Sheet,
        table,
        text_diff::{DiffNames, side_by_side, unified},
    },
};

/// How to show the outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiffLayout {
    /// Changed lines below each other.
    #[default]
    Unified,
    /// Changed lines beside each other.
    SideBySide,
    /// Only numbers.
    Statistics,
}

/// Table of remediation diffs.
pub const DIFF_VIEW: View = View {
    plural: "diffs",
    id: "action_id",
    columns: &[
        Column::new("ACTION", "action_id", |row, style| cell::short_id(row, "action_id", style)),
        Column::new("TOKENS", "token_length_delta", tokens).right(),
        Column::new("LATENCY", "latency_delta_ms", latency).right(),
        Column::new("SIMILARITY", "embedding_similarity", |row, style| {
            number(row, "embedding_similarity", style)
        })
        .right(),
        Column::new("SCORES", "eval_deltas", |row, style| cell::text(row, "eval_deltas", style)).elastic(),
    ],
    fields: &[
        "action_id",
        "original_span_id",
        "remediated_span_id",
        "original_output",
        "remediated_output",
        "token_length_delta",
        "latency_delta_ms",
        "embedding_similarity",
        "eval_deltas",
    ],
};

/// Table of the scores before and after an action.
const DELTA_VIEW: View = View {
    plural: "eval_deltas",
    id: "rule_id",
    columns: &[
        Column::new("S", "regressed", mark),
        Column::new("METRIC", "metric_name", |row, style| cell::text(row, "metric_name", style)).elastic(),
        Column::new("BEFORE", "original_score", |row, style| number(row, "original_score", style)).right(),
        Column::new("AFTER", "remediated_score", |row, style| number(row, "remediated_score", style)).right(),
        Column::new("DELTA", "delta", delta).right(),
        Column::new("NOTE", "regressed", note),
        Column::new("RULE", "rule_id", |row, style| cell::short_id(row, "rule_id", style)),
    ],
    fields: &[],
};

/// Returns the score deltas of a diff.
pub fn deltas(diff: &Value) -> &[Value] {
    diff.get("eval_deltas").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn has_regressed(row: &Value) -> bool {
    row.get("regressed").and_then(Value::as_bool).unwrap_or_default()
}

fn float(row: &Value, name: &str) -> Option<f64> {
    row.get(name).and_then(Value::as_f64)
}

fn number(row: &Value, name: &str, style: &Style) -> Cell {
    float(row, name).map_or_else(|| cell::none(style), |it| Cell::plain(format!("{it:.3}")))
}

/// Returns the mark of a score: worse, better, or neither.
fn mark(row: &Value, style: &Style) -> Cell {
    match (has_regressed(row), float(row, "delta")) {
        (true, _) => Cell::toned(style.glyphs.failed, Tone::Bad),
        (false, Some(delta)) if delta > 0.0 => Cell::toned(style.glyphs.ok, Tone::Good),
        (false, Some(_)) => Cell::plain(style.glyphs.healthy),
        (false, None) => cell::none(style),
    }
}

fn delta(row: &Value, style: &Style) -> Cell {
    let tone = if has_regressed(row) { Tone::Bad } else { Tone::Plain };
    float(row, "delta").map_or_else(|| cell::none(style), |it| Cell::toned(format!("{it:+.3}"), tone))
}

fn note(row: &Value, _: &Style) -> Cell {
    match (has_regressed(row), float(row, "original_score"), float(row, "remediated_score")) {
        (true, ..) => Cell::toned("regressed", Tone::Bad),
        (_, _, None) => Cell::toned("evaluation failed", Tone::Warn),
        (_, None, Some(_)) => Cell::toned("no baseline", Tone::Dim),
        _ => Cell::plain(""),
    }
}

fn tokens(row: &Value, style: &Style) -> Cell {
    let delta = row.get("token_length_delta").and_then(Value::as_i64);
    delta
        .map_or_else(|| cell::none(style), |it| Cell::plain(signed(it, format::thousands(it.unsigned_abs()))))
}

fn latency(row: &Value, style: &Style) -> Cell {
    let delta = row.get("latency_delta_ms").and_then(Value::as_i64);
    let size = |ms: i64| format::latency(i64::try_from(ms.unsigned_abs()).unwrap_or(i64::MAX));
    delta.map_or_else(|| cell::none(style), |it| Cell::plain(signed(it, size(it))))
}

fn signed(delta: i64, size: String) -> String {
    match delta {
        0 => size,
        1.. => format!("+{size}"),
        _ => format!("-{size}"),
    }
}

/// Formats a diff: the numbers, the scores and the outputs.
pub fn render(diff: &Value, layout: DiffLayout, style: &Style, columns: Option<usize>) -> String {
    let regressed = deltas(diff).iter().filter(|it| has_regressed(it)).count();
    let verdict = match (regressed, deltas(diff).len()) {
        (_, 0) => "no eval rule scored both outputs".to_owned(),
        (0, 1) => "1 eval rule, not regressed".to_owned(),
        (0, rules) => format!("{rules} eval rules, none regressed"),
        (regressed, rules) => format!("{regressed} of {rules} eval rules regressed"),
    };
    let (old, new) = (text_member(diff, "original_output"), text_member(diff, "remediated_output"));
    let texts = TextDiff::new(old, new);
    let (removed, added) = texts.changed_line_counts();
    let of_part = if texts.is_cut { ", of the first 256 KiB of the outputs" } else { "" };
    let mut text = Sheet::new(style, columns)
        .head(&cell::mark(regressed > 0, style), &["remediation", &verdict])
        .line("action", text_member(diff, "action_id"))
        .line("original", text_member(diff, "original_span_id"))
        .line("remediated", text_member(diff, "remediated_span_id"))
        .line("tokens", tokens(diff, style).text)
        .line("latency", latency(diff, style).text)
        .line("similarity", number(diff, "embedding_similarity", style).text)
        .line("lines", format!("-{removed} +{added}{of_part}"))
        .text();
    text.push_str(&table::render(&DELTA_VIEW.select_columns(&[], false), deltas(diff), style, columns));
    let is_missing = |name: &str| diff.get(name).is_none_or(Value::is_null);
    let name = |text: &str, member: &str| {
        if is_missing(member) { format!("{text} (none)") } else { text.to_owned() }
    };
    let (old_name, new_name) =
        (name("original output", "original_output"), name("remediated output", "remediated_output"));
    let names = DiffNames { old: &old_name, new: &new_name };
    match layout {
        DiffLayout::Unified => text.push_str(&unified(names, &texts, style, columns)),
        DiffLayout::SideBySide => text.push_str(&side_by_side(names, &texts, style, columns)),
        DiffLayout::Statistics => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use present::Glyphs;
    use serde_json::json;

    use super::*;

    fn style() -> Style {
        Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() }
    }

    #[test]
    fn regressed_scores_are_marked() {
        let row = |original: Value, remediated: Value, delta: Value, regressed: bool| json!({ "original_score": original, "remediated_score": remediated, "delta": delta, "regressed": regressed });
        for (row, wanted) in [
            (row(json!(0.9), json!(0.7), json!(-0.2), true), ("✗", "-0.200", "regressed")),
            (row(json!(0.4), json!(0.9), json!(0.5), false), ("✓", "+0.500", "")),
            (row(json!(0.9), json!(0.88), json!(-0.02), false), ("·", "-0.020", "")),
            (row(json!(0.9), Value::Null, Value::Null, false), ("—", "—", "evaluation failed")),
            (row(Value::Null, json!(0.9), Value::Null, false), ("—", "—", "no baseline")),
        ] {
            let shown = (mark(&row, &style()).text, delta(&row, &style()).text, note(&row, &style()).text);
            assert_eq!((shown.0.as_str(), shown.1.as_str(), shown.2.as_str()), wanted, "{row}");
        }
    }

    #[test]
    fn long_outputs_are_compared_at_their_start_in_each_layout() {
        let diff =
            json!({ "original_output": "a\n".repeat(200_000), "remediated_output": "a\n".repeat(300_000) });
        for (layout, notes) in
            [(DiffLayout::Unified, 2), (DiffLayout::SideBySide, 2), (DiffLayout::Statistics, 1)]
        {
            let text = render(&diff, layout, &style(), Some(80));
            assert_eq!(text.matches("first 256 KiB").count(), notes, "{text}");
            assert!(text.contains("-0 +0, of the first"), "{text}");
        }
    }

    #[test]
    fn deltas_have_a_sign_and_a_unit() {
        let row = |tokens: i64, ms: i64| json!({ "token_length_delta": tokens, "latency_delta_ms": ms });
        for (row, wanted) in [
            (row(1_200, -340), ["+1,200", "-340ms"]),
            (row(0, 0), ["0", "0ms"]),
            (row(-7, 61_000), ["-7", "+61.0s"]),
        ] {
            assert_eq!([tokens(&row, &style()).text, latency(&row, &style()).text], wanted);
        }
        // The extremes of the type do not overflow.
        let extreme = row(i64::MIN, i64::MIN);
        assert!(
            tokens(&extreme, &style()).text.starts_with("-9,223")
                && latency(&extreme, &style()).text.starts_with('-')
        );
        assert_eq!(tokens(&json!({}), &style()).text, "—");
    }
}
