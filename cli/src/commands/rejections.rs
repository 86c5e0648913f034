//! `loupe rejections`: spans and traces that ingest rejected within accepted requests.

use api::client::calls;
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{
    commands::listing::{PageArgs, list},
    ctx::Ctx,
    error::Result,
    output::{
        Column, View,
        cell::{self, Cell, Style},
    },
};

/// Verbs of `rejections`.
#[derive(Debug, Subcommand)]
pub enum RejectionCommand {
    /// List the rejections of the last 7 days, newest first: number of spans or traces, SDK and reasons
    #[command(
        before_help = "Examples:\n  loupe rejections list\n  loupe rejections list --json | jq '.rejections[0].reasons'\n  loupe rejections list --all -o ndjson\n"
    )]
    List(RejectionListArgs),
}

/// Arguments of `rejections list`.
#[derive(Debug, Args)]
pub struct RejectionListArgs {
    #[command(flatten)]
    page: PageArgs,
}

const REJECTION_VIEW: View = View {
    plural: "rejections",
    id: "id",
    columns: &[
        Column::new("TIME", "last_at", |row, style| cell::time(row, "last_at", style)),
        Column::new("PROJECT", "project_id", |row, style| cell::short_id(row, "project_id", style))
            .optional(),
        Column::new("SOURCE", "source", |row, style| cell::text(row, "source", style)),
        Column::new("SDK", "sdk", |row, style| cell::text(row, "sdk", style)),
        Column::new("VERSION", "sdk_version", |row, style| cell::text(row, "sdk_version", style)).optional(),
        Column::new("REJECTED", "rejected", |row, style| cell::count(row, "rejected", style)).right(),
        Column::new("REQUESTS", "requests", |row, style| cell::count(row, "requests", style)).right().wide(),
        Column::new("FIRST REASON", "reasons", first_reason).elastic(),
        Column::new("REQUEST", "request_id", |row, style| cell::text(row, "request_id", style)).wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)).wide(),
    ],
    fields: &[
        "id",
        "project_id",
        "source",
        "sdk",
        "sdk_version",
        "rejected",
        "requests",
        "reasons",
        "request_id",
        "received_at",
        "last_at",
    ],
};

/// Returns the cell of the first reason's message.
fn first_reason(row: &Value, style: &Style) -> Cell {
    match row.pointer("/reasons/0") {
        Some(reason) => cell::text(reason, "message", style),
        None => cell::none(style),
    }
}

/// Runs a verb of `rejections`.
pub async fn run(ctx: &mut Ctx, command: RejectionCommand) -> Result {
    let RejectionCommand::List(args) = command;
    ctx.out.check(&REJECTION_VIEW)?;
    let (client, project) = ctx.client_and_project().await?;
    list(ctx, &client, &REJECTION_VIEW, args.page, "no rejections", |page| calls::rejections(project, page))
        .await
}
