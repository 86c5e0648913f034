//! Display of policies for terminals.

use present::format;
use serde_json::Value;

use crate::{
    commands::{
        action_config::{add_lines, summary},
        evals::view::text_member,
    },
    output::{
        Column, View,
        cell::{self, Cell, Style, Tone},
        sheet::Sheet,
    },
};

/// Table of policies.
pub const POLICY_VIEW: View = View {
    plural: "policies",
    id: "id",
    columns: &[
        Column::new("STATE", "enabled", state),
        Column::new("NAME", "name", |row, style| cell::text(row, "name", style)).elastic(),
        Column::new("ON", "trigger", |row, _| Cell::plain(trigger(row))).elastic(),
        Column::new("ACTION", "action_type", |row, style| cell::text(row, "action_type", style)).elastic(),
        Column::new("CHANGE", "action_config", |row, style| cell::text_or_none(summary(row), style))
            .elastic()
            .optional(),
        Column::new("APPROVAL", "require_approval", approval),
        Column::new("RETRIES", "max_retry_depth", |row, style| cell::count(row, "max_retry_depth", style))
            .right()
            .wide(),
        Column::new("CASCADE", "max_cascade_depth", |row, style| {
            cell::count(row, "max_cascade_depth", style)
        })
        .right()
        .wide(),
        Column::new("COOLDOWN", "cooldown_seconds", |row, style| cell::text_or_none(cooldown(row), style))
            .right()
            .wide(),
        Column::new("BUDGET", "daily_budget_usd", |row, style| cell::money(row, "daily_budget_usd", style))
            .right()
            .optional(),
        Column::new("PROJECT", "project_id", |row, style| cell::short_id(row, "project_id", style)).wide(),
        Column::new("CHANGED", "updated_at", |row, style| cell::date(row, "updated_at", style)).wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[
        "id",
        "project_id",
        "name",
        "enabled",
        "trigger",
        "action_type",
        "action_config",
        "require_approval",
        "max_retry_depth",
        "max_cascade_depth",
        "cooldown_seconds",
        "daily_budget_usd",
        "created_at",
        "updated_at",
    ],
};

fn flag(row: &Value, name: &str) -> bool {
    row.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn state(row: &Value, _: &Style) -> Cell {
    if flag(row, "enabled") { Cell::toned("on", Tone::Good) } else { Cell::toned("off", Tone::Dim) }
}

fn approval(row: &Value, style: &Style) -> Cell {
    if flag(row, "require_approval") { Cell::plain("required") } else { cell::none(style) }
}

/// Formats a trigger: `timeout, rate_limit`, or `faithfulness <= 0.5`; `request` without one.
fn trigger(row: &Value) -> String {
    let trigger = row.get("trigger").unwrap_or(&Value::Null);
    match (text_member(trigger, "type"), trigger.get("max_score").and_then(Value::as_f64)) {
        ("evaluation", Some(score)) => format!("{} <= {score}", text_member(trigger, "metric_name")),
        ("failure", _) => {
            let types = trigger.get("failure_types").and_then(Value::as_array).into_iter().flatten();
            types.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        ("", _) => "request".to_owned(),
        // A type of a newer server.
        (other, _) => other.to_owned(),
    }
}

/// Formats the cool-down in its largest unit that is whole: `30s`, `10m`, `1h`; empty without one.
fn cooldown(row: &Value) -> String {
    match row.get("cooldown_seconds").and_then(Value::as_i64).unwrap_or_default() {
        0 => String::new(),
        seconds if seconds % 86_400 == 0 => format!("{}d", seconds / 86_400),
        seconds if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

/// Formats one policy in full.
pub fn sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    let depth = |name: &str| row.get(name).map_or_else(String::new, Value::to_string);
    let limits = format!(
        "{} retries, {} actions on a trace; more are escalated",
        depth("max_retry_depth"),
        depth("max_cascade_depth")
    );
    let acts = match (text_member(row.get("trigger").unwrap_or(&Value::Null), "type"), trigger(row)) {
        ("failure", types) => format!("failures: {types}"),
        ("evaluation", scores) => format!("evaluations: {scores}"),
        _ => "only when an action is requested with the policy".to_owned(),
    };
    let approval =
        if flag(row, "require_approval") { "required before each action" } else { "only for escalations" };
    let budget = row.get("daily_budget_usd").and_then(Value::as_f64);
    let sheet = Sheet::new(style, columns)
        .head(&state(row, style), &[text_member(row, "name"), text_member(row, "action_type")])
        .line("id", text_member(row, "id"))
        .line("project", text_member(row, "project_id"))
        .line("acts on", acts);
    add_lines(sheet, row)
        .line("approval", approval)
        .line("limits", limits)
        .line("cool-down", cooldown(row))
        .line("budget", budget.map_or("no limit".to_owned(), |it| format!("{} a day", format::money(it))))
        .line("created", cell::date(row, "created_at", style).text)
        .line("changed", cell::date(row, "updated_at", style).text)
        .text()
}

#[cfg(test)]
mod tests {
    use present::Glyphs;
    use serde_json::json;

    use super::*;
    use crate::output::table;

    #[test]
    fn narrow_table_keeps_readable_names() {
        let style = Style { colour: false, glyphs: Glyphs::UNICODE, utc: true, now: Default::default() };
        let row = json!({
            "id": "01980f6e-0000-7000-8000-00005e1f09aa", "name": "retry timeouts of the shop", "enabled": true,
            "action_type": "prompt_modification", "action_config": { "system_suffix": "Be brief." },
            "trigger": { "type": "failure", "failure_types": ["timeout", "rate_limit"] },
            "require_approval": true,
        });
        let table = table::render(&POLICY_VIEW.select_columns(&[], false), &[row], &style, Some(60));
        assert!(table.contains("on     retry tim") && table.contains("  5e1f09aa"), "{table}");
    }

    #[test]
    fn trigger_is_shown_in_words() {
        for (given, shown) in [
            (json!({ "type": "failure", "failure_types": ["timeout", "rate_limit"] }), "timeout, rate_limit"),
            (
                json!({ "type": "evaluation", "metric_name": "faithfulness", "max_score": 0.5 }),
                "faithfulness <= 0.5",
            ),
            (json!({ "type": "moon" }), "moon"),
            (Value::Null, "request"),
        ] {
            assert_eq!(trigger(&json!({ "trigger": given })), shown);
        }
    }

    #[test]
    fn cooldown_is_shown_in_its_largest_whole_unit() {
        for (seconds, shown) in [(0, ""), (90, "90s"), (600, "10m"), (7_200, "2h"), (604_800, "7d")] {
            assert_eq!(cooldown(&json!({ "cooldown_seconds": seconds })), shown);
        }
    }
}
