//! `loupe anomalies`: periods in which a metric of a project differs from its usual values.

use api::{
    anomaly::AnomalySeverity,
    client::calls::{self, AnomalyFilter},
};
use clap::{Args, Subcommand};
use present::format;
use serde_json::Value;

use super::period::PeriodArgs;
use crate::{
    commands::{
        evals::view::text_member,
        listing::{PageArgs, list},
    },
    ctx::Ctx,
    error::Result,
    output::{
        Column, View,
        cell::{self, Cell, Style, Tone},
    },
};

/// Verbs of `anomalies`.
#[derive(Debug, Subcommand)]
pub enum AnomalyCommand {
    /// List anomalies by the time of their detection, newest first
    #[command(
        before_help = "Examples:\n  loupe anomalies list --from -24h\n  loupe anomalies list --metric latency_p95 --severity high\n  loupe anomalies list --json --jq '.anomalies[] | select(.status == \"open\")'\n"
    )]
    List(AnomalyListArgs),
}

/// Arguments of `anomalies list`.
#[derive(Debug, Args)]
pub struct AnomalyListArgs {
    /// Only of this metric: error_rate, latency_p95, cost, tokens, volume, or score:NAME
    #[arg(long)]
    metric: Option<String>,
    /// Only of this severity: low, medium or high
    #[arg(long)]
    severity: Option<AnomalySeverity>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    page: PageArgs,
}

const ANOMALY_VIEW: View = View {
    plural: "anomalies",
    id: "id",
    columns: &[
        Column::new("START", "window_start", |row, style| cell::time(row, "window_start", style)),
        Column::new("SEVERITY", "severity", severity),
        Column::new("METRIC", "metric", |row, style| cell::text(row, "metric", style)).elastic(),
        Column::new("", "direction", direction),
        Column::new("OBSERVED", "observed", |row, style| value(row, "observed", style)).right(),
        Column::new("EXPECTED", "expected", |row, style| value(row, "expected", style)).right(),
        Column::new("FROM", "expected_low", |row, style| value(row, "expected_low", style)).right().wide(),
        Column::new("TO", "expected_high", |row, style| value(row, "expected_high", style)).right().wide(),
        Column::new("STATUS", "status", status).optional(),
        Column::new("END", "window_end", |row, style| cell::time(row, "window_end", style)).optional(),
        Column::new("SCORE", "score", cell::score).right().wide(),
        Column::new("DETECTED", "created_at", |row, style| cell::time(row, "created_at", style)).wide(),
        Column::new("PROJECT", "project_id", |row, style| cell::short_id(row, "project_id", style)).wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[
        "id",
        "project_id",
        "metric",
        "direction",
        "severity",
        "status",
        "close_reason",
        "observed",
        "expected",
        "expected_low",
        "expected_high",
        "score",
        "window_start",
        "window_end",
        "created_at",
        "updated_at",
    ],
};

fn severity(row: &Value, style: &Style) -> Cell {
    let tone = match text_member(row, "severity") {
        "high" => Tone::Bad,
        "medium" => Tone::Warn,
        _ => Tone::Plain,
    };
    Cell { tone, ..cell::text(row, "severity", style) }
}

fn direction(row: &Value, style: &Style) -> Cell {
    Cell::plain(if text_member(row, "direction") == "down" { style.glyphs.fall } else { style.glyphs.rise })
}

/// Returns `open`, or the reason why the anomaly ended.
fn status(row: &Value, style: &Style) -> Cell {
    match text_member(row, "close_reason") {
        "" => cell::text(row, "status", style),
        reason => Cell::toned(reason, Tone::Dim),
    }
}

/// Formats a value in the unit of the anomaly's metric.
fn value(row: &Value, name: &str, style: &Style) -> Cell {
    let Some(value) = row.get(name).and_then(Value::as_f64) else { return cell::none(style) };
    Cell::plain(match text_member(row, "metric") {
        "error_rate" => format!("{:.1}%", value * 100.0),
        "latency_p95" => format::latency(value.round() as i64),
        "cost" => format::money(value),
        "tokens" | "volume" => format::count(value.round() as i64),
        _ => format!("{value:.3}"),
    })
}

/// Runs a verb of `anomalies`.
pub async fn run(ctx: &mut Ctx, command: AnomalyCommand) -> Result {
    let AnomalyCommand::List(args) = command;
    ctx.out.check(&ANOMALY_VIEW)?;
    let (from, to) = args.period.resolve()?;
    let (client, project_id) = ctx.client_and_project().await?;
    let filter = AnomalyFilter { project_id, metric: args.metric, severity: args.severity, from, to };
    list(ctx, &client, &ANOMALY_VIEW, args.page, "no anomalies", |page| calls::anomalies(&filter, page)).await
}
