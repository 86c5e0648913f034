//! Display of webhooks, deliveries and tests for terminals.

use serde_json::Value;

use crate::{
    commands::evals::view::text_member,
    output::{
        Column, View,
        cell::{self, Cell, Style, Tone},
        sheet::Sheet,
    },
};

/// Table of webhooks.
pub const WEBHOOK_VIEW: View = View {
    plural: "webhooks",
    id: "id",
    columns: &[
        Column::new("STATE", "enabled", state),
        Column::new("ADDRESS", "url", |row, style| cell::text(row, "url", style)).elastic(),
        Column::new("EVENTS", "events", |row, _| Cell::plain(events(row))).elastic(),
        Column::new("LAST DELIVERY", "last_delivery_at", |row, style| {
            cell::time(row, "last_delivery_at", style)
        }),
        Column::new("DISABLED BECAUSE", "disabled_reason", |row, style| {
            cell::text(row, "disabled_reason", style)
        })
        .elastic()
        .wide(),
        Column::new("CREATED", "created_at", |row, style| cell::date(row, "created_at", style)).wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[
        "id",
        "url",
        "events",
        "enabled",
        "disabled_reason",
        "last_delivery_at",
        "created_at",
        "updated_at",
        "secret",
    ],
};

/// Table of the rotation of a secret.
pub const ROTATION_VIEW: View = View {
    plural: "rotations",
    id: "id",
    columns: &[
        Column::new("PREVIOUS SECRET UNTIL", "previous_secret_expires_at", |row, style| {
            cell::date(row, "previous_secret_expires_at", style)
        }),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &["id", "secret", "previous_secret_expires_at"],
};

/// Table of deliveries.
pub const DELIVERY_VIEW: View = View {
    plural: "deliveries",
    id: "id",
    columns: &[
        Column::new("TIME", "created_at", |row, style| cell::time(row, "created_at", style)),
        Column::new("STATUS", "status", delivery_status),
        Column::new("EVENT", "event_type", |row, style| cell::text(row, "event_type", style)).elastic(),
        Column::new("ATTEMPTS", "attempts", |row, _| Cell::plain(attempts(row).len().to_string())).right(),
        Column::new("RESPONSE", "attempts.status", last_response).elastic(),
        Column::new("NEXT", "next_attempt_at", |row, style| cell::time(row, "next_attempt_at", style))
            .optional(),
        Column::new("COMPLETED", "completed_at", |row, style| cell::time(row, "completed_at", style)).wide(),
        Column::new("EVENT ID", "event_id", |row, style| cell::short_id(row, "event_id", style)).wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[
        "id",
        "webhook_id",
        "event_id",
        "event_type",
        "status",
        "attempts",
        "next_attempt_at",
        "created_at",
        "completed_at",
    ],
};

/// Table of a test by the server.
pub const TEST_VIEW: View = View {
    plural: "tests",
    id: "status",
    columns: &[
        Column::new("S", "status", response_mark),
        Column::new("STATUS", "status", |row, style| cell::text(row, "status", style)).right(),
        Column::new("ERROR", "error", |row, style| cell::text(row, "error", style)).elastic(),
        Column::new("BODY", "body", |row, style| cell::text(row, "body", style)).elastic(),
    ],
    fields: &["status", "body", "error"],
};

/// Table of a sample that the command line sent itself.
pub const SAMPLE_VIEW: View = View {
    plural: "samples",
    id: "event_id",
    columns: &[
        Column::new("S", "status", response_mark),
        Column::new("EVENT", "event", |row, style| cell::text(row, "event", style)),
        Column::new("STATUS", "status", |row, style| cell::text(row, "status", style)).right(),
        Column::new("LATENCY", "latency_ms", |row, style| cell::latency(row, "latency_ms", style)).right(),
        Column::new("ERROR", "error", |row, style| cell::text(row, "error", style)).elastic(),
        Column::new("BODY", "body", |row, style| cell::text(row, "body", style)).elastic(),
    ],
    fields: &["event", "event_id", "delivery_id", "status", "body", "error", "latency_ms"],
};

/// Table of the verification of a signature.
pub const VERIFICATION_VIEW: View = View {
    plural: "verifications",
    id: "header",
    columns: &[
        Column::new("S", "valid", |row, style| cell::mark(!is_valid(row), style)),
        Column::new("HEADER", "header", |row, style| cell::text(row, "header", style)),
        Column::new("RECEIVED", "received", |row, style| cell::text(row, "received", style)).elastic(),
        Column::new("COMPUTED", "computed", |row, style| cell::text(row, "computed", style)).elastic(),
        Column::new("LIKELY CAUSE", "cause", |row, style| cell::text(row, "cause", style)).elastic(),
    ],
    fields: &["valid", "header", "received", "computed", "cause"],
};

/// Table of received deliveries, which arrive one by one.
pub const RECEIVED_VIEW: View = View {
    plural: "received",
    id: "delivery_id",
    columns: &[
        Column::new("TIME", "received_at", |row, style| cell::time(row, "received_at", style)).columns(11),
        Column::new("S", "valid", |row, style| cell::mark(!is_valid(row), style)).columns(3),
        Column::new("EVENT", "event", |row, style| cell::text(row, "event", style)).elastic().columns(30),
        Column::new("SIGNATURE", "signature", signature).columns(9),
        Column::new("BYTES", "bytes", |row, style| cell::count(row, "bytes", style)).right().columns(7),
        Column::new("FORWARDED", "forward", forwarded).elastic().columns(24),
        Column::new("RESPONSE", "status", response).columns(8),
    ],
    fields: &[
        "received_at",
        "valid",
        "signature",
        "header",
        "event",
        "event_id",
        "delivery_id",
        "bytes",
        "status",
        "forward",
        "received",
        "computed",
        "cause",
        "saved",
    ],
};

fn state(row: &Value, _: &Style) -> Cell {
    let enabled = row.get("enabled").and_then(Value::as_bool).unwrap_or_default();
    match (enabled, text_member(row, "disabled_reason")) {
        (true, _) => Cell::toned("on", Tone::Good),
        (false, "") => Cell::toned("off", Tone::Dim),
        (false, _) => Cell::toned("disabled", Tone::Bad),
    }
}

fn events(row: &Value) -> String {
    let events = row.get("events").and_then(Value::as_array).into_iter().flatten();
    events.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// Formats one webhook in full.
pub fn webhook_sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    Sheet::new(style, columns)
        .head(&state(row, style), &[text_member(row, "url")])
        .line("id", text_member(row, "id"))
        .line("events", events(row))
        .toned("disabled", text_member(row, "disabled_reason"), Tone::Warn)
        .line("last", cell::date(row, "last_delivery_at", style).text)
        .line("created", cell::date(row, "created_at", style).text)
        .line("changed", cell::date(row, "updated_at", style).text)
        .text()
}

fn delivery_status(row: &Value, style: &Style) -> Cell {
    let tone = match text_member(row, "status") {
        "delivered" => Tone::Good,
        "dead" => Tone::Bad,
        "pending" => Tone::Warn,
        _ => Tone::Dim,
    };
    Cell { tone, ..cell::text(row, "status", style) }
}

fn attempts(row: &Value) -> &[Value] {
    row.get("attempts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the receiver's status in the last attempt, or why there is none.
fn last_response(row: &Value, style: &Style) -> Cell {
    let Some(last) = attempts(row).last() else { return cell::none(style) };
    match last.get("status").and_then(Value::as_u64) {
        None | Some(0) => cell::text(last, "error", style),
        Some(status) => Cell::plain(status.to_string()),
    }
}

/// Returns whether a receiver returned a status from 200 to 299.
pub fn is_success(row: &Value) -> bool {
    row.get("status").and_then(Value::as_u64).is_some_and(|status| (200..300).contains(&status))
}

fn response_mark(row: &Value, style: &Style) -> Cell {
    cell::mark(!is_success(row), style)
}

/// Formats the response of a receiver in full.
pub fn response_sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    let status = match row.get("status").and_then(Value::as_u64) {
        None | Some(0) => "no response".to_owned(),
        Some(status) => format!("status {status}"),
    };
    Sheet::new(style, columns)
        .head(&response_mark(row, style), &[text_member(row, "event"), &status])
        .line("event id", text_member(row, "event_id"))
        .line("error", text_member(row, "error"))
        .line("body", text_member(row, "body"))
        .text()
}

fn is_valid(row: &Value) -> bool {
    row.get("valid").and_then(Value::as_bool).unwrap_or_default()
}

/// Formats the verification of a signature in full.
pub fn verification_sheet(row: &Value, style: &Style, columns: Option<usize>) -> String {
    let is_stale = !is_valid(row) && row["header"].is_string();
    let verdict = match (is_valid(row), is_stale) {
        (true, _) => "the signature is valid",
        (false, true) => "the signature is valid, but the timestamp is not",
        (false, false) => "the signature is not valid",
    };
    let mut sheet = Sheet::new(style, columns)
        .head(&cell::mark(!is_valid(row), style), &[verdict])
        .line("header", text_member(row, "header"));
    if !is_valid(row) {
        sheet = sheet
            .line("received", text_member(row, "received"))
            .line("computed", text_member(row, "computed"))
            .toned("cause", text_member(row, "cause"), Tone::Warn);
    }
    sheet.text()
}

fn signature(row: &Value, style: &Style) -> Cell {
    let tone = if is_valid(row) { Tone::Good } else { Tone::Bad };
    Cell { tone, ..cell::text(row, "signature", style) }
}

/// Formats the result of forwarding: the status and the duration, or why there is none.
fn forwarded(row: &Value, style: &Style) -> Cell {
    let Some(forward) = row.get("forward").filter(|it| it.is_object()) else { return cell::none(style) };
    match forward.get("status").and_then(Value::as_u64) {
        None | Some(0) => Cell::toned(text_member(forward, "error"), Tone::Bad),
        Some(status) => {
            Cell::plain(format!("{status} in {}", cell::latency(forward, "latency_ms", style).text))
        }
    }
}

/// Returns the status of the response to the sender; `dropped` without one.
fn response(row: &Value, style: &Style) -> Cell {
    match row.get("status") {
        Some(Value::Number(_)) => cell::text(row, "status", style),
        _ => Cell::toned("dropped", Tone::Warn),
    }
}
