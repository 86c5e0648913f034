//! Display of evaluations for terminals: as a table and one by one.

use present::{evaluation::EvaluationMark, format};
use serde_json::Value;

use crate::output::{
    Column, View,
    cell::{self, Cell, Style, Tone},
    sheet::Sheet,
};

/// Table of evaluations.
pub const EVALUATION_VIEW: View = View {
    plural: "evaluations",
    id: "id",
    columns: &[
        Column::new("TIME", "created_at", |row, style| cell::time(row, "created_at", style)),
        Column::new("S", "status", mark),
        Column::new("METRIC", "metric_name", |row, style| cell::text(row, "metric_name", style)).elastic(),
        Column::new("SCORE", "score", cell::score).right(),
        Column::new("LABEL", "label", label),
        Column::new("STATUS", "status", |row, style| cell::text(row, "status", style)).wide(),
        Column::new("TYPE", "evaluator_type", |row, style| cell::text(row, "evaluator_type", style))
            .optional(),
        Column::new("WHY", "reasoning", reason).elastic().optional(),
        Column::new("ERROR", "error", |row, style| cell::text(row, "error", style)).elastic().wide(),
        Column::new("VERSION", "evaluator_version", |row, style| cell::text(row, "evaluator_version", style))
            .wide(),
        Column::new("CONTEXT", "context", |row, style| cell::text(row, "context", style)).wide(),
        Column::new("JUDGE", "judge_model", |row, style| cell::text(row, "judge_model", style))
            .elastic()
            .wide(),
        Column::new("COST", "cost", |row, style| cell::money(row, "cost", style)).right().wide(),
        Column::new("DONE", "completed_at", |row, style| cell::time(row, "completed_at", style)).wide(),
        Column::new("RULE", "rule_id", |row, style| cell::short_id(row, "rule_id", style)).wide(),
        Column::new("SPAN", "span_id", |row, style| cell::short_id(row, "span_id", style)).wide(),
        Column::new("TRACE", "trace_id", |row, style| cell::short_id(row, "trace_id", style)),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[
        "id",
        "trace_id",
        "project_id",
        "span_id",
        "metric_name",
        "evaluator_type",
        "evaluator_version",
        "status",
        "context",
        "score",
        "label",
        "reasoning",
        "error",
        "rule_id",
        "bulk_id",
        "source_action_id",
        "original_evaluation_id",
        "model_tier",
        "judge_model",
        "prompt_tokens",
        "completion_tokens",
        "cost",
        "created_at",
        "completed_at",
    ],
};

/// Table of the evaluations of one trace, as `traces get --evals` shows it.
pub const TRACE_EVALUATIONS_VIEW: View = View {
    columns: &[
        Column::new("S", "status", mark),
        Column::new("EVALUATION", "metric_name", |row, style| cell::text(row, "metric_name", style))
            .elastic(),
        Column::new("SCORE", "score", cell::score).right(),
        Column::new("LABEL", "label", label),
        Column::new("WHY", "reasoning", reason).elastic().optional(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    ..EVALUATION_VIEW
};

/// Returns the mark of an evaluation: pass, warn, fail, not ranked or unfinished, as in the console.
pub fn mark(row: &Value, style: &Style) -> Cell {
    let (mark, tone) = evaluation_mark(row).glyph_and_tone(&style.glyphs);
    Cell::toned(mark, tone)
}

/// Returns the result class of an evaluation. An unknown status of a newer server is not ranked.
fn evaluation_mark(row: &Value) -> EvaluationMark {
    let label = row.get("label").and_then(Value::as_str);
    match text_member(row, "status") {
        // The evaluation was not read yet.
        "" => EvaluationMark::Unfinished,
        status => status.parse().map_or(EvaluationMark::Scored, |it| EvaluationMark::of(it, label)),
    }
}

/// Returns the label, or the status while there is no label.
pub fn label(row: &Value, style: &Style) -> Cell {
    let (_, tone) = evaluation_mark(row).glyph_and_tone(&style.glyphs);
    let shown = if text_member(row, "status") == "complete" { "label" } else { "status" };
    Cell { tone, ..cell::text(row, shown, style) }
}

/// Returns the reasoning, or the error of a failed evaluation.
fn reason(row: &Value, style: &Style) -> Cell {
    let name = if text_member(row, "error").is_empty() { "reasoning" } else { "error" };
    cell::text(row, name, style)
}

/// Formats one evaluation, or the result of an eval rule's test: the verdict, its reasoning, tokens and
/// cost.
pub fn sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    let name = match text_member(row, "metric_name") {
        "" => text_member(row, "evaluator_version"),
        name => name,
    };
    let verdict = [cell::score(row, style).text, label(row, style).text].join(" ");
    let context = text_member(row, "context");
    let words =
        [name, &verdict, text_member(row, "evaluator_type"), if context == "fresh" { "" } else { context }];
    Sheet::new(style, columns)
        .head(&mark(row, style), &words)
        .line("id", text_member(row, "id"))
        .line("trace", text_member(row, "trace_id"))
        .line("span", text_member(row, "span_id"))
        .line("rule", text_member(row, "rule_id"))
        .line("evaluator", text_member(row, "evaluator_version"))
        .line(
            "asked",
            cell::timestamp(row, "created_at")
                .map_or_else(String::new, |_| cell::date(row, "created_at", style).text),
        )
        .line("done", done(row, style))
        .line("judge", judge(row))
        .line("compared to", text_member(row, "original_evaluation_id"))
        .line("action", text_member(row, "source_action_id"))
        .line("reasoning", text_member(row, "reasoning"))
        .toned("error", text_member(row, "error"), Tone::Bad)
        .text()
}

fn done(row: &Value, style: &Style) -> String {
    let Some(done) = cell::timestamp(row, "completed_at") else { return String::new() };
    let took = cell::timestamp(row, "created_at").map(|it| (done.micros() - it.micros()) / 1_000);
    let took = took.map(|ms| format!(" ({})", format::latency(ms.max(0)))).unwrap_or_default();
    cell::date(row, "completed_at", style).text + &took
}

/// Formats the judge model with its tokens and cost.
fn judge(row: &Value) -> String {
    let model = text_member(row, "judge_model");
    if model.is_empty() {
        return String::new();
    }
    let number = |name: &str| row.get(name).and_then(Value::as_i64).map(format::thousands);
    let tokens = match (number("prompt_tokens"), number("completion_tokens")) {
        (Some(read), Some(written)) => format!("{read} + {written} tokens"),
        _ => String::new(),
    };
    let cost = row.get("cost").and_then(Value::as_f64).map(format::money).unwrap_or_default();
    let tier = match text_member(row, "model_tier") {
        "" => String::new(),
        tier => format!("({tier})"),
    };
    let parts = [format!("{model} {tier}").trim_end().to_owned(), tokens, cost];
    parts.iter().filter(|it| !it.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Returns a text member; empty if it is absent.
pub fn text_member<'a>(row: &'a Value, name: &str) -> &'a str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use present::Glyphs;
    use serde_json::json;

    use super::*;

    #[test]
    fn custom_label_is_not_marked_as_success() {
        let style = Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() };
        for (status, said, shown, tone) in [
            ("complete", json!("pass"), "✓", Tone::Good),
            ("complete", json!("warn"), "!", Tone::Warn),
            ("complete", json!("fail"), "✗", Tone::Bad),
            ("complete", json!("bad"), "·", Tone::Plain),
            ("complete", Value::Null, "·", Tone::Plain),
            ("failed", Value::Null, "✗", Tone::Bad),
            ("pending", Value::Null, "…", Tone::Dim),
            ("running", Value::Null, "…", Tone::Dim),
            ("", Value::Null, "…", Tone::Dim),
            ("later", Value::Null, "·", Tone::Plain),
        ] {
            let row = json!({ "status": status, "label": said });
            assert_eq!(mark(&row, &style), Cell::toned(shown, tone), "{row}");
            assert_eq!(label(&row, &style).tone, tone, "{row}");
        }
    }
}
