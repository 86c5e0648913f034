//! Display of everything that waits for approval.

use api::Timestamp;
use serde_json::{Value, json};

use crate::{
    commands::{
        action_config::summary,
        actions::view::{executed_type, reason},
        decision::short_id,
        deployments::view::{test_result, title},
        evals::view::text_member,
    },
    config::expiry::approximate_duration,
    output::{
        Column, View,
        cell::{self, Cell, Style},
    },
};

/// Table of approvals.
pub const APPROVAL_VIEW: View = View {
    plural: "approvals",
    id: "id",
    columns: &[
        Column::new("KIND", "kind", |row, style| cell::text(row, "kind", style)).columns(10),
        Column::new("WHAT", "what", |row, style| cell::text(row, "what", style)).elastic().columns(32),
        Column::new("REASON", "reason", |row, style| cell::text(row, "reason", style)).elastic().columns(48),
        Column::new("AGE", "waiting_since", age).right().columns(5),
        Column::new("PROJECT", "project_id", |row, style| cell::short_id(row, "project_id", style))
            .columns(8)
            .wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)).columns(8),
    ],
    fields: &["kind", "id", "what", "reason", "waiting_since", "project_id", "trace_id", "record"],
};

/// Returns the row of a deployment.
pub fn deployment_row(deployment: &Value) -> Value {
    let tested = deployment.pointer("/ab/completed_at").filter(|it| it.is_string());
    json!({
        "kind": "deployment",
        "id": deployment.get("id"),
        "what": title(deployment),
        "reason": test_result(deployment),
        "waiting_since": tested.or_else(|| deployment.get("created_at")),
        "project_id": deployment.get("project_id"),
        "trace_id": null,
        "record": deployment,
    })
}

/// Returns the row of a control action.
pub fn action_row(action: &Value) -> Value {
    let trace = short_id(&json!({ "id": action.get("trace_id") }));
    let change = match summary(action) {
        change if change.is_empty() => change,
        change => format!(" ({change})"),
    };
    let why = match reason(action) {
        reason if text_member(action, "action_type") == "escalate" => reason,
        // Only an escalation waits for a reason of its own.
        reason if reason.is_empty() => "approval required".to_owned(),
        reason => format!("approval required, {reason}"),
    };
    json!({
        "kind": "action",
        "id": action.get("id"),
        "what": format!("{} on {trace}{change}", executed_type(action)),
        "reason": why,
        "waiting_since": action.get("created_at"),
        "project_id": action.get("project_id"),
        "trace_id": action.get("trace_id"),
        "record": action,
    })
}

/// Returns the time since which a row waits.
pub fn waiting_since(row: &Value) -> Option<Timestamp> {
    cell::timestamp(row, "waiting_since")
}

fn age(row: &Value, style: &Style) -> Cell {
    match waiting_since(row) {
        Some(since) => {
            let seconds = style.now.micros().saturating_sub(since.micros()) / 1_000_000;
            Cell::plain(approximate_duration(seconds))
        }
        None => cell::none(style),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_says_what_waits_and_why() {
        let action = json!({
            "id": "01980f6e-0000-7000-8000-00005e1f09aa", "trace_id": "01980f6e-0000-7000-8000-0000c07b44d1",
            "action_type": "escalate", "created_at": "2026-11-21T14:00:00Z",
            "action_config": { "model": "gpt-4o" },
            "metadata": {
                "escalation_reason": "cascade_depth_exhausted", "retry_count": 5,
                "requested_action_type": "fallback_model",
            },
        });
        let row = action_row(&action);
        assert_eq!(row["what"], "fallback_model on c07b44d1 (gpt-4o)");
        assert_eq!(row["reason"], "cascade_depth_exhausted, 5 actions before it");
        let parked = json!({ "action_type": "retry", "metadata": { "trigger": "failure" } });
        assert_eq!(action_row(&parked)["reason"], "approval required, failure");

        let row = deployment_row(&json!({
            "prompt_name": "tone", "version": 2, "created_at": "2026-11-20T14:00:00Z",
            "ab": { "metric_name": "faithfulness", "effect": 0.04, "completed_at": "2026-11-21T14:00:00Z" },
        }));
        assert_eq!((&row["what"], &row["reason"]), (&json!("tone v2"), &json!("faithfulness +0.040")));
        assert_eq!(row["waiting_since"], "2026-11-21T14:00:00Z");
    }
}
