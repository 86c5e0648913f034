//! Display of control actions for terminals.

use api::control::EscalationReason;
use serde_json::Value;

use crate::{
    commands::{
        action_config::{add_lines, summary},
        decision::decided,
        evals::view::text_member,
    },
    output::{
        Column, View,
        cell::{self, Cell, Style, Tone},
        sheet::Sheet,
    },
};

/// Table of control actions.
pub const ACTION_VIEW: View = View {
    plural: "actions",
    id: "id",
    columns: &[
        Column::new("TIME", "created_at", |row, style| cell::time(row, "created_at", style)),
        Column::new("STATUS", "status", status),
        Column::new("TYPE", "action_type", |row, style| cell::text(row, "action_type", style)).elastic(),
        Column::new("CHANGE", "action_config", |row, style| cell::text_or_none(summary(row), style))
            .elastic()
            .optional(),
        Column::new("WHY", "metadata", |row, style| cell::text_or_none(reason(row), style)).elastic(),
        Column::new("ERROR", "error", |row, style| cell::text(row, "error", style)).elastic().optional(),
        Column::new("COST", "cost", |row, style| cell::money(row, "cost", style)).right().wide(),
        Column::new("CALLS", "attempts", |row, style| cell::count(row, "attempts", style)).right().wide(),
        Column::new("DECIDED BY", "decided_by", |row, style| cell::text(row, "decided_by", style))
            .elastic()
            .wide(),
        Column::new("POLICY", "policy_id", |row, style| cell::short_id(row, "policy_id", style)).wide(),
        Column::new("PROJECT", "project_id", |row, style| cell::short_id(row, "project_id", style)).wide(),
        Column::new("TRACE", "trace_id", |row, style| cell::short_id(row, "trace_id", style)).optional(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[
        "id",
        "project_id",
        "trace_id",
        "span_id",
        "policy_id",
        "action_type",
        "action_config",
        "status",
        "require_approval",
        "metadata",
        "remediated_span_id",
        "error",
        "requested_by",
        "decided_by",
        "decided_at",
        "attempts",
        "cost",
        "completed_at",
        "created_at",
        "updated_at",
    ],
};

fn status(row: &Value, style: &Style) -> Cell {
    let tone = match text_member(row, "status") {
        "pending_approval" => Tone::Warn,
        "succeeded" => Tone::Good,
        "failed" => Tone::Bad,
        _ => Tone::Dim,
    };
    Cell { tone, ..cell::text(row, "status", style) }
}

fn metadata(row: &Value) -> &Value {
    row.get("metadata").unwrap_or(&Value::Null)
}

/// Returns the type of the action that is executed: the requested one of an escalation.
pub fn executed_type(row: &Value) -> &str {
    match text_member(metadata(row), "requested_action_type") {
        "" => text_member(row, "action_type"),
        requested => requested,
    }
}

/// Returns why an action exists or waits: `retry_threshold_exceeded, 3 retries before it`, `failure`, or the user who
/// requested it. `cascade_depth_exhausted` counts actions of all types.
pub fn reason(row: &Value) -> String {
    let metadata = metadata(row);
    let count = metadata.get("retry_count").and_then(Value::as_i64);
    match (text_member(metadata, "escalation_reason"), text_member(metadata, "trigger")) {
        ("", "") => match text_member(row, "requested_by") {
            "" => String::new(),
            user => format!("requested by {user}"),
        },
        ("", trigger) => trigger.to_owned(),
        (reason, _) => {
            let (one, several) = match reason == EscalationReason::RetryThresholdExceeded.as_str() {
                true => ("retry", "retries"),
                false => ("action", "actions"),
            };
            match count {
                Some(1) => format!("{reason}, 1 {one} before it"),
                Some(count) => format!("{reason}, {count} {several} before it"),
                None => reason.to_owned(),
            }
        }
    }
}

/// Formats one control action in full.
pub fn sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    let executed = match (text_member(row, "action_type"), executed_type(row)) {
        (given, executed) if given == executed => String::new(),
        (_, executed) => executed.to_owned(),
    };
    let trigger = match text_member(metadata(row), "trigger") {
        "failure" => format!("failure of the span {}", text_member(metadata(row), "failing_span_id")),
        "evaluation" => format!("evaluation {}", text_member(metadata(row), "evaluation_id")),
        other => other.to_owned(),
    };
    let calls = row.get("attempts").and_then(Value::as_i64).filter(|it| *it > 0);
    let cost = row.get("cost").and_then(Value::as_f64).map(present::format::money);
    let date = |name: &str| cell::timestamp(row, name).map(|_| cell::date(row, name, style).text);
    let sheet = Sheet::new(style, columns)
        .head(&status(row, style), &[text_member(row, "action_type")])
        .line("id", text_member(row, "id"))
        .line("project", text_member(row, "project_id"))
        .line("trace", text_member(row, "trace_id"))
        .line("span", text_member(row, "span_id"))
        .line("executes", executed);
    add_lines(sheet, row)
        .line("why", reason(row))
        .line("trigger", trigger)
        .line("policy", text_member(row, "policy_id"))
        .line("decided", decided(row, style))
        .line("calls", calls.map(|it| it.to_string()).unwrap_or_default())
        .line("cost", cost.unwrap_or_default())
        .line("output", text_member(row, "remediated_span_id"))
        .toned("error", text_member(row, "error"), Tone::Bad)
        .line("created", date("created_at").unwrap_or_default())
        .line("completed", date("completed_at").unwrap_or_default())
        .text()
}

#[cfg(test)]
mod tests {
    use present::Glyphs;
    use serde_json::json;

    use super::*;
    use crate::output::table;

    #[test]
    fn narrow_table_keeps_the_id() {
        let style = Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() };
        let row = json!({
            "id": "01980f6e-0000-7000-8000-00005e1f09aa", "trace_id": "01980f6e-0000-7000-8000-0000c07b44d1",
            "created_at": "1970-01-01T00:00:00.000000Z", "status": "pending_approval",
            "action_type": "prompt_modification", "action_config": { "system_suffix": "Be brief." },
            "metadata": { "escalation_reason": "cascade_depth_exhausted", "retry_count": 2 },
        });
        let table = table::render(&ACTION_VIEW.select_columns(&[], false), &[row], &style, Some(60));
        assert!(table.lines().nth(1).is_some_and(|line| line.ends_with("  5e1f09aa")), "{table}");
    }

    #[test]
    fn reason_names_the_limit_the_trigger_or_the_user() {
        for (row, shown) in [
            (
                json!({ "metadata": { "escalation_reason": "retry_threshold_exceeded", "retry_count": 3, "trigger": "failure" } }),
                "retry_threshold_exceeded, 3 retries before it",
            ),
            (
                json!({ "metadata": { "escalation_reason": "retry_threshold_exceeded", "retry_count": 1 } }),
                "retry_threshold_exceeded, 1 retry before it",
            ),
            (
                json!({ "metadata": { "escalation_reason": "cascade_depth_exhausted", "retry_count": 2 } }),
                "cascade_depth_exhausted, 2 actions before it",
            ),
            (json!({ "metadata": { "trigger": "evaluation" } }), "evaluation"),
            (json!({ "metadata": {}, "requested_by": "sub-1" }), "requested by sub-1"),
            (json!({}), ""),
        ] {
            assert_eq!(reason(&row), shown, "{row}");
        }
    }

    #[test]
    fn escalation_executes_the_requested_type() {
        let metadata = json!({ "requested_action_type": "fallback_model" });
        let row = json!({ "action_type": "escalate", "metadata": metadata });
        assert_eq!(executed_type(&row), "fallback_model");
        assert_eq!(executed_type(&json!({ "action_type": "retry", "metadata": {} })), "retry");
    }
}
