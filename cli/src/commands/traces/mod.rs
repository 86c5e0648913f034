//! `loupe traces`: lists, shows, follows, sends, exports and deletes traces.

mod blocks;
pub mod delete;
pub mod export;
pub mod filter_args;
pub mod get;
pub mod list;
mod partial;
mod seen;
pub mod send;
mod send_otlp;
pub mod tail;
mod texts;
pub mod tree;

use api::{
    TraceState,
    client::{
        Call,
        calls::{self, Page},
    },
    filter::Filter,
    trace::TraceList,
};
use clap::Subcommand;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    ctx::Ctx,
    error::Result,
    output::{
        Column, View,
        cell::{self, Tone},
    },
};

/// Verbs of `traces`.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// List traces, newest first
    #[command(
        before_help = "Examples:\n  loupe traces list --filter 'error:true from:-1h'\n  loupe traces list --model gpt-4o --latency-min 2s --all -o ndjson\n  loupe traces list --json --jq '.traces[].id' --raw\n"
    )]
    List(list::TraceListArgs),
    /// Show one trace and its spans
    #[command(
        before_help = "Examples:\n  loupe traces get c07b44d1\n  loupe traces get c07b44d1 --full\n  loupe traces get c07b44d1 --evals\n  loupe traces get 01980f6e-5f0a-7c3e-9d2b-3c1a7b20c07b --json\n"
    )]
    Get(get::TraceGetArgs),
    /// Print new traces as they arrive
    #[command(
        before_help = "Examples:\n  loupe traces tail\n  loupe traces tail --error --show error\n  loupe traces tail -o ndjson --max 3\n  loupe traces tail --filter 'name:smoke_test' --exit-on match --for 2m\n"
    )]
    Tail(tail::TailArgs),
    /// Send traces from a file
    #[command(
        before_help = "Examples:\n  loupe traces send traces.ndjson\n  loupe traces send smoke.json -p checkout-bot\n  printf %s \"$TRACE_JSON\" | loupe traces send - --json --fields id\n  loupe traces send --otlp export.pb\n"
    )]
    Send(send::SendArgs),
    /// Write traces with their spans to a file
    #[command(
        before_help = "Examples:\n  loupe traces export yesterday.jsonl --from yesterday --to today\n  loupe traces export - --filter 'error:true from:-1h' | jq -r .id\n  loupe traces export all.jsonl --resume\n  loupe traces export spans.otlp.jsonl --format otlp\n"
    )]
    Export(export::ExportArgs),
    /// Delete traces with their spans, evaluations and feedback
    #[command(
        before_help = "Examples:\n  loupe traces delete c07b44d1\n  loupe traces list --filter 'tag:env=test' --all -o id |\n    xargs loupe traces delete --yes\n"
    )]
    Delete(delete::DeleteArgs),
}

/// Table of traces.
pub const TRACE_VIEW: View = View {
    plural: "traces",
    id: "id",
    columns: &[
        Column::new("TIME", "started_at", |row, style| cell::time(row, "started_at", style)).columns(11),
        Column::new("S", "error", mark).columns(1),
        Column::new("NAME", "name", |row, style| cell::text(row, "name", style)).elastic().columns(28),
        Column::new("MODEL", "model", |row, style| cell::text(row, "model", style)).elastic().columns(18),
        Column::new("LATENCY", "latency_ms", |row, style| cell::latency(row, "latency_ms", style))
            .right()
            .columns(7),
        Column::new("TOKENS", "total_token_count", |row, style| cell::count(row, "total_token_count", style))
            .right()
            .optional()
            .columns(6),
        Column::new("COST", "cost", |row, style| cell::money(row, "cost", style))
            .right()
            .optional()
            .columns(7),
        Column::new("TAGS", "tags", tags).elastic().wide(),
        Column::new("STATE", "state", |row, style| cell::text(row, "state", style)).wide().columns(11),
        Column::new("SPANS", "span_count", |row, style| cell::count(row, "span_count", style))
            .right()
            .wide()
            .columns(5),
        Column::new("SESSION", "session_id", |row, style| cell::text(row, "session_id", style))
            .elastic()
            .wide(),
        Column::new("USER", "user_id", |row, style| cell::text(row, "user_id", style)).elastic().wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)).columns(8),
    ],
    fields: &[
        "id",
        "project_id",
        "external_id",
        "session_id",
        "user_id",
        "name",
        "input",
        "output",
        "error",
        "model",
        "started_at",
        "ended_at",
        "latency_ms",
        "cost",
        "total_token_count",
        "prompt_tokens_total",
        "completion_tokens_total",
        "usage_details",
        "tags",
        "tag_map",
        "metadata",
        "span_count",
        "ready",
        "control_loop_depth",
        "spans",
        "events",
        "evaluations",
    ],
};

/// Returns the mark of a trace: failed, running, interrupted or successful.
fn mark(row: &Value, style: &cell::Style) -> cell::Cell {
    let state = row.get("state").and_then(Value::as_str).and_then(|it| it.parse().ok());
    match state.filter(|_| !failed(row)) {
        Some(TraceState::Running) => cell::Cell::plain(style.glyphs.unfinished),
        Some(TraceState::Interrupted) => cell::Cell::toned(style.glyphs.interrupted, Tone::Warn),
        Some(TraceState::Complete) | None => cell::mark(failed(row), style),
    }
}

/// Returns whether a trace or a span has an error.
pub fn failed(row: &Value) -> bool {
    row.get("error").is_some_and(|error| !error.is_null())
}

fn tags(row: &Value, _: &cell::Style) -> cell::Cell {
    let tags = row.get("tags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    cell::Cell::plain(tags.collect::<Vec<_>>().join(" "))
}

/// Returns the request for a page of the list, with complete texts if the output shows them.
fn page(shows_texts: bool, filter: &Filter, project: Option<Uuid>, page: &Page) -> Call<TraceList> {
    let call = if shows_texts { calls::whole_traces } else { calls::traces };
    call(filter, project, page)
}

/// Runs a verb of `traces`.
pub async fn run(ctx: &mut Ctx, command: TraceCommand) -> Result {
    match command {
        TraceCommand::List(args) => list::run(ctx, args).await,
        TraceCommand::Get(args) => get::run(ctx, args).await,
        TraceCommand::Tail(args) => tail::run(ctx, args).await,
        TraceCommand::Send(args) => send::run(ctx, args).await,
        TraceCommand::Export(args) => export::run(ctx, args).await,
        TraceCommand::Delete(args) => delete::run(ctx, args).await,
    }
}

#[cfg(test)]
mod tests {
    use present::Glyphs;
    use serde_json::json;

    use super::*;

    #[test]
    fn mark_shows_error_or_state_of_a_trace() {
        let glyphs = Glyphs::UNICODE;
        let style = cell::Style { colour: false, glyphs, utc: true, now: Default::default() };
        for (trace, expected) in [
            (json!({"error": null, "state": "complete"}), glyphs.ok),
            (json!({"error": null, "state": "running"}), glyphs.unfinished),
            (json!({"error": null, "state": "interrupted"}), glyphs.interrupted),
            (json!({"error": "boom", "state": "running"}), glyphs.failed),
            // An earlier server sends no state.
            (json!({"error": null}), glyphs.ok),
        ] {
            assert_eq!(mark(&trace, &style).text, expected, "{trace}");
        }
    }
}
