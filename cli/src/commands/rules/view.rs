//! Display of eval rules and their decisions for terminals.

use api::eval_rule::PauseReason;
use present::{evaluation::decision_tone, share};
use serde_json::Value;

use crate::{
    commands::{
        evals::view::{label, mark, sheet as verdict, text_member},
        rule_filter::filter_terms,
    },
    output::{
        Column, View,
        cell::{self, Cell, Style, Tone},
        sheet::Sheet,
    },
};

/// Table of eval rules.
pub const RULE_VIEW: View = View {
    plural: "eval_rules",
    id: "id",
    columns: &[
        Column::new("STATE", "enabled", state),
        Column::new("METRIC", "metric_name", |row, style| cell::text(row, "metric_name", style)).elastic(),
        Column::new("TYPE", "evaluator_type", |row, style| cell::text(row, "evaluator_type", style)),
        Column::new("TIER", "model_tier", tier).optional(),
        Column::new("SAMPLE", "sample_rate", sample).right(),
        Column::new("DROP", "min_score_drop", |row, style| cell::text(row, "min_score_drop", style))
            .right()
            .optional(),
        Column::new("FILTER", "filter", |row, _| Cell::plain(filter_terms(row))).elastic(),
        Column::new("CONFIG", "config", |row, style| cell::text(row, "config", style)).elastic().wide(),
        Column::new("PAUSED", "paused_reason", |row, style| {
            pause_sentence(row).map_or_else(|| cell::none(style), Cell::plain)
        })
        .elastic()
        .wide(),
        Column::new("PROJECT", "project_id", |row, style| cell::short_id(row, "project_id", style)).wide(),
        Column::new("CHANGED", "updated_at", |row, style| cell::date(row, "updated_at", style)).wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[
        "id",
        "project_id",
        "metric_name",
        "evaluator_type",
        "config",
        "enabled",
        "model_tier",
        "min_score_drop",
        "filter",
        "sample_rate",
        "paused_reason",
        "paused_detail",
        "created_at",
        "updated_at",
    ],
};

/// Table of rule decisions.
pub const DECISION_VIEW: View = View {
    plural: "decisions",
    id: "trace_id",
    columns: &[
        Column::new("TIME", "decided_at", |row, style| cell::time(row, "decided_at", style)),
        Column::new("DECISION", "decision", decision),
        Column::new("DETAIL", "detail", |row, style| cell::text(row, "detail", style)).elastic(),
        Column::new("TRACE", "trace_id", |row, style| cell::short_id(row, "trace_id", style)),
        Column::new("EVALUATION", "evaluation_id", |row, style| cell::short_id(row, "evaluation_id", style)),
        Column::new("RULE", "rule_id", |row, style| cell::short_id(row, "rule_id", style)).wide(),
    ],
    fields: &["rule_id", "trace_id", "decision", "detail", "evaluation_id", "decided_at"],
};

/// Table of the result of an eval rule's test.
pub const RULE_TEST_VIEW: View = View {
    plural: "tests",
    id: "trace_id",
    columns: &[
        Column::new("S", "status", mark),
        Column::new("DECISION", "decision", decision),
        Column::new("SCORE", "score", cell::score).right(),
        Column::new("LABEL", "label", label),
        Column::new("EVALUATOR", "evaluator_version", |row, style| {
            cell::text(row, "evaluator_version", style)
        }),
        Column::new("REASONING", "reasoning", |row, style| cell::text(row, "reasoning", style)).elastic(),
        Column::new("ERROR", "error", |row, style| cell::text(row, "error", style)).elastic(),
        Column::new("STATUS", "status", |row, style| cell::text(row, "status", style)).wide(),
        Column::new("TRACE", "trace_id", |row, style| cell::short_id(row, "trace_id", style)),
    ],
    fields: &[
        "trace_id",
        "decision",
        "detail",
        "status",
        "score",
        "label",
        "reasoning",
        "error",
        "evaluator_version",
        "judge_model",
        "prompt_tokens",
        "completion_tokens",
        "cost",
    ],
};

/// Returns the state of an eval rule: `on`, `off`, or `paused` although it is enabled.
fn state(row: &Value, _: &Style) -> Cell {
    let enabled = row.get("enabled").and_then(Value::as_bool).unwrap_or_default();
    match (enabled, text_member(row, "paused_reason")) {
        (false, _) => Cell::toned("off", Tone::Dim),
        (true, "") => Cell::toned("on", Tone::Good),
        (true, _) => Cell::toned("paused", Tone::Warn),
    }
}

/// Returns a sentence that says why an enabled eval rule is paused; `None` if it is not paused.
pub fn pause_sentence(row: &Value) -> Option<String> {
    let (reason, detail) = (text_member(row, "paused_reason"), text_member(row, "paused_detail"));
    (!reason.is_empty()).then(|| PauseReason::describe(reason, Some(detail)))
}

/// Returns the model tier; code evaluators have none.
fn tier(row: &Value, style: &Style) -> Cell {
    if text_member(row, "evaluator_type") == "rule" {
        cell::none(style)
    } else {
        cell::text(row, "model_tier", style)
    }
}

fn sample(row: &Value, style: &Style) -> Cell {
    let rate = row.get("sample_rate").and_then(Value::as_f64);
    rate.map_or_else(|| cell::none(style), |it| Cell::plain(share::text(it)))
}

/// Returns a rule decision in the colour that the console also uses.
fn decision(row: &Value, style: &Style) -> Cell {
    let tone = text_member(row, "decision").parse().map_or(Tone::Plain, decision_tone);
    Cell { tone, ..cell::text(row, "decision", style) }
}

/// Formats one eval rule in full.
pub fn sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    let pause_sentence = pause_sentence(row).unwrap_or_default();
    let state = state(row, style);
    let config = row.get("config").filter(|it| it.as_object().is_none_or(|it| !it.is_empty()));
    let drop = match row.get("min_score_drop").and_then(Value::as_f64) {
        Some(drop) if drop > 0.0 => format!("smaller than {drop} raises no alert"),
        _ => "any raises an alert".to_owned(),
    };
    let judge = match text_member(row, "evaluator_type") {
        "llm" => format!("{} tier", text_member(row, "model_tier")),
        _ => String::new(),
    };
    Sheet::new(style, columns)
        .head(&state, &[text_member(row, "metric_name"), text_member(row, "evaluator_type")])
        .line("id", text_member(row, "id"))
        .line("project", text_member(row, "project_id"))
        .line("traces", filter_terms(row))
        .line("sample", sample(row, style).text)
        .line("judge", judge)
        .line("config", cell::raw(config))
        .line("score drop", drop)
        .toned("paused", pause_sentence, Tone::Warn)
        .line("created", cell::date(row, "created_at", style).text)
        .line("changed", cell::date(row, "updated_at", style).text)
        .text()
}

/// Formats the test of an eval rule on a trace: the verdict, then the decision that it would make on
/// ingest.
pub fn test_sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    let would = format!("{}: {}", text_member(row, "decision"), text_member(row, "detail"));
    let ingest = Sheet::new(style, columns).line("on ingest", Cell::plain(would).text);
    verdict(row, style, columns) + &ingest.text()
}

#[cfg(test)]
mod tests {
    use present::Glyphs;
    use serde_json::json;

    use super::*;

    #[test]
    fn rule_filter_and_sample_rate_are_shown_as_flags() {
        let style = Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() };
        assert_eq!(filter_terms(&json!({"filter": {}})), "all");
        let row = json!({"sample_rate": 0.125, "filter": {"model": "gpt-4o", "error": true, "tag": null}});
        assert_eq!(filter_terms(&row), "model:gpt-4o error:true");
        assert_eq!(sample(&row, &style).text, "12.5%");
    }

    #[test]
    fn rule_decisions_have_the_tones_of_the_console() {
        let style = Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() };
        for (text_member, tone) in [
            ("queued", Tone::Good),
            ("quota", Tone::Bad),
            ("paused", Tone::Bad),
            ("not_ready", Tone::Warn),
            ("disabled", Tone::Warn),
            ("filtered", Tone::Plain),
            ("later", Tone::Plain),
        ] {
            assert_eq!(decision(&json!({ "decision": text_member }), &style), Cell::toned(text_member, tone));
        }
    }
}
